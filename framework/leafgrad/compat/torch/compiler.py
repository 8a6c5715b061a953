"""``torch.compile`` by ``leafgrad.compile``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import plugins
from leafgrad.compile import compile as compile_with
from leafgrad.ops.messages import warn

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """``leafgrad.compile``, with PyTorch's arguments.

    Args:
        model: a function, a method or a Module. Without it, the result is a decorator.
        fullgraph: leafgrad always compiles the whole; what it cannot compile is an error either way.
        dynamic: True warns: each shape gets a program of its own.
        backend: "inductor" is leafgrad's default executor, "eager" and "aot_eager" run without compiling; otherwise
            the name of one of leafgrad's executors.
        mode: PyTorch's modes, which only tune speed, are accepted.
        options: options of inductor, which are refused.
        disable: return ``model`` as it is.

    Raises:
        RuntimeError: an unknown mode or backend, options, or both of mode and options.
    """
    if model is None:
        return lambda given: compile(
            given, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if options:
        raise RuntimeError(f"torch.compile: options are inductor's, and leafgrad has none of them; got {options}")
    if dynamic:
        warn("torch.compile: dynamic=True has no effect in leafgrad: each shape gets a program of its own")
    if disable or backend in ("eager", "aot_eager"):
        return model
    return compile_with(model, executor=None if backend == "inductor" else executor(backend))


def executor(backend: Any) -> str:
    """``backend`` if leafgrad has an executor of this name."""
    try:
        return plugins.executor(backend).name
    except (plugins.UnknownNameError, TypeError) as error:
        raise RuntimeError(
            f"torch.compile: backend: 'inductor', 'eager' or an executor of leafgrad's, not {backend!r}; {error}"
        ) from None


def is_compiling() -> bool:
    """False: leafgrad runs a function as it is while it compiles it."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """``fn`` as it is: ``@disable`` or ``@disable()``. Inside a function that is compiled it is compiled with it."""
    return (lambda given: given) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """``fn``: functions are compiled with whatever they call."""
    return fn


assume_constant_result = allow_in_graph


def reset() -> None:
    """Nothing to forget: each compiled function has its own programs."""


def cudagraph_mark_step_begin() -> None:
    """Has no effect."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """What ``torch.compile`` takes as ``backend``, besides "eager"."""
    plugins.load()
    return ["inductor", *sorted(found.name for found in plugins.executors())]
