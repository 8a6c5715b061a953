"""compile: whole functions as programs, with their derivatives inside. The compiler is imported at the first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from leafgrad.compile.run.compiled import Compiled
    from leafgrad.compile.run.front import CompiledObject

__all__ = ["compile", "trace"]


P = ParamSpec("P")
R = TypeVar("R")


class Decorator(Protocol):
    """``compile`` with its options given."""

    def __call__(self, function: Callable[P, R], /) -> Compiled[P, R]:
        """``function``, compiled."""


class HasParameters(Protocol):
    """A module, or what is like one: its attributes are those of what ``compile`` makes of it."""

    def named_parameters(self) -> Any:
        """Its parameters."""


@overload
def compile(
    function: None = None, *, executor: str | None = None, closed: bool = False, fullgraph: bool = False
) -> Decorator: ...
@overload
def compile(
    function: HasParameters, *, executor: str | None = None, closed: bool = False, fullgraph: bool = False
) -> CompiledObject: ...
@overload
def compile(
    function: Callable[P, R], *, executor: str | None = None, closed: bool = False, fullgraph: bool = False
) -> Compiled[P, R]: ...
def compile(function: Any = None, *, executor: str | None = None, closed: bool = False, fullgraph: bool = False) -> Any:
    """Make a function run as a compiled program: whole training steps too, with derivatives of any order inside.

    The first call is traced into a program, or the second if the first made what stays, such as an optimizer's state.
    Later calls repeat the program as long as its guards hold: shapes, dtypes, devices, flags, Python values and
    everything the function read from outside are as they were. Otherwise it is traced anew;
    ``explain()`` says why. What cannot be closed runs its Python at each call, compiled or not, as it is faster. With
    ``LEAFGRAD_COMPILE=0`` in the environment every call runs as it is, with ``always`` none that can be compiled.

    Args:
        function: a function, a method, or an object that is called, such as an ``nn.Module``. Without it, the result
            is a decorator.
        executor: the name of the executor, from the plugin hook ``leafgrad_executors``; by default that of
            ``LEAFGRAD_EXECUTOR`` in the environment, else a preferred one of a plugin if it gains by the program, else
            ``"numpy"`` on the CPU and ``"replay"`` elsewhere.
        closed: make a step that would be open, so that its Python runs at each call, an error that names the line.
        fullgraph: the same, under PyTorch's name.

    Raises:
        TypeError: ``function`` is a class or cannot be called.
        TraceError: at a call, where the function needs values or does what a program cannot repeat.
    """
    from leafgrad.compile.run import front

    if function is None:
        return lambda given: front.of(given, executor, closed or fullgraph)
    return front.of(function, executor, closed or fullgraph)


def trace(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """The program of ``fn(*args, **kwargs)``, as recorded, before any pass: a Graph; ``print`` it to read it.

    Nothing is changed by it: tensors, gradients and random generators are as before. With a matrix instead of a
    function it is PyTorch's ``trace``, the sum of the diagonal.

    Args:
        fn: a function, or a matrix.
        args, kwargs: what the function is called with.

    Raises:
        TraceError: the function needs values or does what a program cannot repeat.
    """
    from leafgrad.compile.run import front

    return front.traced(fn, args, kwargs)
