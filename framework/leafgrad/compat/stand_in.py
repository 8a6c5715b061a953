"""Modules that stand in for PyTorch's, and the finder that makes them.

``torch.a.b`` is made of ``leafgrad.compat.torch.a.b``, which has what PyTorch has and leafgrad has not under the same
name, and of ``leafgrad.a.b``. Where neither exists, neither does ``torch.a.b``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from leafgrad.plugins.added import PUBLISHED, lacking

# What leafgrad has of its own, or under the name of something else in PyTorch.
HIDDEN_MODULES = frozenset(
    "backends batching cli compat compile devices dtypes errors modes ops plugins tensor testing threads "
    "utils.serialization".split()
)
HIDDEN_NAMES = frozenset("bool_ float_ forward int_ op publish".split())

TOPS = ("torch", "functorch")

# Modules of PyTorch whose contents leafgrad has in others.
_LAYERS = (
    "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm linear "
    "loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling"
)
ELSEWHERE = {
    "autograd.anomaly_mode": "autograd",
    "autograd.grad_mode": "autograd",
    "autograd.profiler": "compat.torch.profiler",
    "autograd.variable": "autograd",
    "nn.modules": "nn",
    **{f"nn.modules.{name}": "nn" for name in _LAYERS.split()},
    "nn.parallel.data_parallel": "compat.torch.nn.parallel",
    "nn.parallel.distributed": "compat.torch.nn.parallel",
    "nn.utils.clip_grad": "nn.utils",
    "nn.utils.convert_parameters": "nn.utils",
    "optim.adamw": "optim",
    "utils.data._utils": "utils.data",
    "utils.data._utils.collate": "utils.data",
    "utils.data._utils.worker": "utils.data",
    "utils.data.dataloader": "utils.data",
    "utils.data.dataset": "utils.data",
    "utils.data.distributed": "utils.data",
    "utils.data.sampler": "utils.data",
}


def lacks(name: str) -> str:
    """What to say of a name that is not there."""
    room = name.removeprefix("torch.").partition(".")[0]
    if room in PUBLISHED:
        return f"{name}: {lacking(room)}"
    return f"leafgrad, which stands in for PyTorch here, does not provide {name}"


class StandIn(ModuleType):
    """A module of PyTorch's, made of modules of leafgrad's."""

    _sources: Sequence[ModuleType]

    def __getattr__(self, name: str) -> Any:  # called only where the ordinary look-up finds nothing
        if name == self.__name__ == "torch":  # torch.torch, which PyTorch has too
            return self
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        for source in self._sources:
            if shows(source, name) and not isinstance(value := getattr(source, name), ModuleType):
                setattr(self, name, value)
                return value
        full = f"{self.__name__}.{name}"
        if (not name.startswith("__") or name == "__config__") and sources(full):
            return import_module(full)
        raise AttributeError(lacks(full), name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        """An import puts a module into the one that holds it, except where a function has its name: ``gradcheck``."""
        if isinstance(value, StandIn) and any(
            shows(source, name) and not isinstance(getattr(source, name), ModuleType) for source in self._sources
        ):
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        names = {
            name
            for source in self._sources
            for name in dir(source)
            if shows(source, name) and not isinstance(getattr(source, name), ModuleType)
        }
        rooms = {room.name for source in self._sources for room in iter_modules(getattr(source, "__path__", ()))}
        present = {room for room in rooms if not room.startswith("_") and sources(f"{self.__name__}.{room}")}
        return sorted({*vars(self), *names, *present})


def shows(source: ModuleType, name: str) -> bool:
    """Whether a module of leafgrad's lends ``name`` to its stand-in."""
    offered = getattr(source, "__all__", None)
    if offered is not None:
        return name in offered
    return not name.startswith("_") and name not in HIDDEN_NAMES and hasattr(source, name)


def sources(name: str) -> list[ModuleType]:
    """The modules of leafgrad's that ``torch`` or ``torch.…`` is made of; none if leafgrad does not provide it."""
    top, _, rest = name.partition(".")
    rooms = {".".join(rest.split(".")[: i + 1]) for i in range(rest.count(".") + 1)}
    ours = [] if top != "torch" or rooms & HIDDEN_MODULES else ["leafgrad." + ELSEWHERE.get(rest, rest)]
    return [import_module(n.rstrip(".")) for n in (f"leafgrad.compat.{name}", *ours) if exists(n.rstrip("."))]


def exists(name: str) -> bool:
    """Whether there is a module of this name."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # what would hold it is no package
        return False


class Metadata(Distribution):
    """Name and version of the PyTorch that leafgrad stands in for."""

    def read_text(self, filename: str) -> str | None:
        """Of ``METADATA``; there are no other files."""
        if filename != "METADATA":
            return None
        version = import_module("leafgrad.compat.torch.version").__version__
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"

    def locate_file(self, path: Any) -> Any:
        """Where a file would be."""
        return Path(path)


class Finder(MetaPathFinder, Loader):
    """Finds and makes ``torch``, ``functorch`` and all below them."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """How to make a module of PyTorch's; ModuleNotFoundError if leafgrad has nothing for it."""
        if fullname.partition(".")[0] not in TOPS:
            return None
        if not sources(fullname):
            raise ModuleNotFoundError(lacks(fullname), name=fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """What ``importlib.metadata`` says of ``torch``: its version."""
        if context is not None and context.name == "torch":
            yield Metadata()

    def create_module(self, spec: ModuleSpec) -> StandIn:
        """The stand-in, with its names looked up as they are asked for."""
        module = StandIn(spec.name, f"leafgrad in place of {spec.name}.")
        module._sources = sources(spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the names of its sources, since libraries read its ``__dict__``; of torch they are many."""
        if isinstance(module, StandIn) and module.__name__ not in TOPS:
            for source in module._sources:
                for name in getattr(source, "__all__", ()):
                    getattr(module, name, None)
