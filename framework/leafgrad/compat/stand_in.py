"""Modules that stand in for PyTorch's, and the finder that makes them.

``torch.a.b`` is made of ``leafgrad.compat.torch.a.b``, which has what PyTorch has and leafgrad has not under the same
name, and of ``leafgrad.a.b``. Where neither exists, neither does ``torch.a.b``, unless ``torch.a`` has a class of this
name: PyTorch has many a class in a module of its own, as ``distributions.half_normal.HalfNormal``.

``leafgrad.a.b``, where there is no such module, is made in the same way; ``leafgrad.lazy`` finds it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from leafgrad.lazy import absent
from leafgrad.plugins.added import PUBLISHED, lacking

# What leafgrad has of its own, or under the name of something else in PyTorch.
HIDDEN_MODULES = frozenset(
    "backends batching cli compat compile devices dtypes errors lazy modes ops plugins rules tensor testing threads "
    "utils.serialization".split()
)
HIDDEN_NAMES = frozenset("bool_ float_ forward int_ op publish".split())

TOPS = ("torch", "functorch")

# Modules of PyTorch whose contents leafgrad has in others.
_LAYERS = {
    "channelshuffle": "resampling", "container": "containers", "conv": "convolution", "distance": "margin_loss",
    "flatten": "linear", "fold": "convolution", "instancenorm": "batchnorm", "pixelshuffle": "resampling",
    "rnn": "recurrent", "sparse": "embedding", "upsampling": "resampling",
    **{
        name: name
        for name in (
            "activation adaptive batchnorm dropout lazy linear loss module normalization padding pooling transformer"
        ).split()
    },
}  # fmt: skip
ELSEWHERE = {
    "_dynamo.eval_frame": "compat.torch._dynamo",
    "amp.autocast_mode": "compat.torch.amp",
    "amp.grad_scaler": "compat.torch.amp",
    "autograd.anomaly_mode": "autograd",
    "autograd.grad_mode": "autograd",
    "autograd.profiler": "profiler",
    "autograd.profiler_util": "profiler.events",
    "autograd.variable": "autograd",
    "cuda.amp.autocast_mode": "compat.torch.cuda.amp",
    "cuda.amp.grad_scaler": "compat.torch.cuda.amp",
    "cuda.memory": "compat.torch.cuda",
    "cuda.random": "compat.torch.cuda",
    "cuda.streams": "compat.torch.cuda",
    "distributed.distributed_c10d": "distributed",
    "distributions.relaxed_categorical": "distributions",
    "functional": "",
    "nn.modules": "nn",
    **{f"nn.modules.{name}": f"nn.{place} nn" for name, place in _LAYERS.items()},
    "nn.utils.clip_grad": "nn.utils",
    "nn.utils.convert_parameters": "nn.utils",
    "multiprocessing.spawn": "compat.torch.multiprocessing",
    "nn.utils.stateless": "func",
    "signal.windows.windows": "compat.torch.signal.windows",
    "storage": "tensor.storage",
    "torch_version": "compat.torch.version",
    "utils.data._utils": "utils.data",
    "utils.data._utils.collate": "utils.data",
    "utils.data._utils.worker": "utils.data",
    "utils.data.dataloader": "utils.data",
    "utils.data.distributed": "utils.data",
}

# What stands for a module that a plugin brings, where the plugin is not installed.
UNPLUGGED = {"onnx": "leafgrad.compat.unplugged_onnx"}


def lacks(name: str) -> str:
    """What to say of a name that is not there."""
    room, _, rest = name.removeprefix("torch.").partition(".")
    if rest and room in PUBLISHED and f"leafgrad.{room}" in sys.modules:
        return f"{name}: {PUBLISHED[room]}, which is installed, has no {rest!r}"
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
        ours = full.startswith("leafgrad.")
        raise absent(f"module {self.__name__!r} has no attribute {name!r}" if ours else lacks(full), name, self.__dir__)

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
        return sorted({*vars(self), *names, *modules(self.__name__)})


def shows(source: ModuleType, name: str) -> bool:
    """Whether a module of leafgrad's lends ``name`` to its stand-in."""
    offered = getattr(source, "__all__", None)
    if offered is not None:
        return name in offered
    return not name.startswith("_") and name not in HIDDEN_NAMES and hasattr(source, name)


def sources(name: str) -> list[ModuleType]:
    """The modules that ``torch.…`` is made of, those of plugins too; none if leafgrad does not provide it."""
    found, rest = files(name), name.removeprefix("torch.")
    if found or "." in rest or rest == name or rest in HIDDEN_MODULES:
        return found
    try:
        return [import_module(f"leafgrad.{rest}")]
    except ModuleNotFoundError as error:
        if error.name != f"leafgrad.{rest}":
            raise
        return [import_module(UNPLUGGED[rest])] if rest in UNPLUGGED else []


def files(name: str) -> list[ModuleType]:
    """The modules that ``torch.…``, or ``leafgrad.…``, is made of, without those of plugins."""
    top, _, rest = name.partition(".")
    top = "torch" if top == "leafgrad" else top
    rooms = {".".join(rest.split(".")[: i + 1]) for i in range(rest.count(".") + 1)}
    ours = (
        []
        if top != "torch" or rooms & HIDDEN_MODULES
        else [f"leafgrad.{n}" for n in ELSEWHERE.get(rest, rest).split(" ")]
    )
    mirror = f"leafgrad.compat.{top}.{rest}"
    found = [import_module(n.rstrip(".")) for n in (mirror, *ours) if exists(n.rstrip("."))]
    return found or of_class(rest)


def of_class(name: str) -> list[ModuleType]:
    """What has the class that PyTorch has in a module ``torch.a.name_of_it``."""
    parent, _, last = name.rpartition(".")
    if not parent or parent in ELSEWHERE or not last[:1].islower():
        return []
    plain = last.replace("_", "").lower()
    return [s for s in sources(f"torch.{parent}") if any(_is_class(s, n, plain) for n in [*vars(s)])][:1]


def _is_class(module: ModuleType, name: str, plain: str) -> bool:
    return name.lower() == plain and shows(module, name) and isinstance(getattr(module, name), type)


@functools.cache
def exists(name: str) -> bool:
    """Whether there is a file for the module of this name."""
    parent, _, _ = name.rpartition(".")
    if not parent:
        return True
    return exists(parent) and PathFinder.find_spec(name, getattr(import_module(parent), "__path__", [])) is not None


def modules(name: str) -> set[str]:
    """The names of the public modules within ``torch.…`` or ``leafgrad.…`` that leafgrad provides."""
    inside = f"{name.partition('.')[2]}.".lstrip(".")
    rooms = {room.name for source in sources(name) for room in iter_modules(getattr(source, "__path__", ()))}
    rooms |= {n.removeprefix(inside).partition(".")[0] for n in ELSEWHERE if n.startswith(inside)}
    return {room for room in rooms if not room.startswith("_") and sources(f"{name}.{room}")}


@functools.cache
def lent(name: str) -> frozenset[str]:
    """The public names that the mirror of a module of leafgrad's has: ``leafgrad.compat.torch.nn`` of leafgrad.nn."""
    mirror = f"leafgrad.compat.torch{name.removeprefix('leafgrad')}"
    offered = import_module(mirror).__all__ if exists(mirror) else ()
    return frozenset(n for n in offered if not n.startswith("_"))


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
        module.__file__ = module._sources[0].__file__  # or it would look like a namespace package
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the names of its sources, since libraries read its ``__dict__``; of torch they are many."""
        if isinstance(module, StandIn) and module.__name__ not in TOPS:
            for source in module._sources:
                for name in getattr(source, "__all__", ()):
                    lent = not isinstance(getattr(source, name, None), ModuleType)
                    if lent or sources(f"{module.__name__}.{name}"):
                        getattr(module, name, None)


def beside(name: str) -> ModuleSpec | None:
    """How to make a module ``leafgrad.…`` that has no file, as the one of the same name in ``torch``."""
    return ModuleSpec(name, Finder(), is_package=True) if files(name) else None
