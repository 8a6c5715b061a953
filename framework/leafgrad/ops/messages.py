"""The words of errors: what was expected, what came, in the op's own argument names, and the remedy."""

from __future__ import annotations

import itertools
import os
import re
import sys
import warnings
from types import FrameType
from typing import Any

from leafgrad import backends, dtypes
from leafgrad.errors import FreedGraphError, LinAlgError, OpDefinitionError
from leafgrad.signals import raised_by_handler

PACKAGE = os.path.dirname(os.path.dirname(__file__))


def outside(packages: str | tuple[str, ...]) -> tuple[FrameType, int]:
    """The innermost frame whose file is in none of ``packages``, and its level as the caller's warnings count it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(packages):
        frame, level = frame.f_back, level + 1
    return frame, level


def user_line() -> str:
    """``file:line: source`` of the innermost frame outside this package."""
    import linecache

    frame, _ = outside(PACKAGE)
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}: {source}".rstrip(": ")


def warn(text: str, category: type[Warning] = UserWarning, packages: str | tuple[str, ...] = PACKAGE) -> None:
    """A warning that points at the innermost line outside ``packages``, the starts of file names."""
    warnings.warn(text, category, stacklevel=outside(packages)[1])


def definition(name: str, problem: str) -> OpDefinitionError:
    return OpDefinitionError(f"op {name!r}: {problem}")


def describe(value: Any) -> str:
    """A value in few words: ``float32 (3, 4)`` for a tensor, else its repr, shortened."""
    data = getattr(value, "_data", value)
    if hasattr(data, "shape") and hasattr(data, "dtype"):
        return f"{data.dtype} {tuple(data.shape)}"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def describe_op(op: Any) -> str:
    reads = sorted(set().union(*op.uses) - {"g"})
    rules = [a for a, r in zip(op.signature.arguments, op.uses, strict=True) if r]
    text = f"<op {op.name}({op.signature})"
    if rules:
        text += f", d/d{{{', '.join(rules)}}}"
    if reads:
        text += f", saves {{{', '.join(reads)}}}"
    return text + ">"


def position(op: Any, i: int) -> str:
    """``[2]`` behind the name of a variadic argument."""
    first = len(op.signature.arguments) - 1
    return f"[{i - first}]" if op.signature.variadic and i >= first else ""


def call(op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> str:
    """``mul(x: float32 (3,), y: float32 (4,), dim=0)``, without defaults and the stream of random numbers."""
    names = op.signature.arguments
    parts = [f"{names[op.signature.slot(i)]}{position(op, i)}: {describe(a)}" for i, a in enumerate(args) if names]
    stream, defaults = "generator" if "random" in op.traits else "", op.signature.parameters
    parts += [f"{k}={describe(v)}" for k, v in params.items() if k != stream and v is not defaults.get(k)]
    return f"{op.name}({', '.join(parts)})"


class RefusedError(Exception):
    """What a forward raises to have its first argument, an exception, raised as it is."""


def failed(op: Any, args: tuple[Any, ...], params: dict[str, Any], error: Exception) -> Exception:
    """The exception to raise when a forward failed: arguments first, then broadcasting, then the cause."""
    if raised_by_handler(error):
        return error
    count, need = len(args), op.signature.required
    top = len(op.signature.arguments)
    if count < need or (count > top and not op.signature.variadic):
        expected = str(need) if need == top else f"{need} to {top}"
        by_name = ", ".join(op.signature.parameters) if count > top else ""
        remedy = f"; give {by_name} by name" if by_name else ""
        return TypeError(f"{op.name}: expected {expected} tensors ({op.signature}), got {count}{remedy}")
    unknown = set(params) - set(op.signature.parameters)
    if unknown:
        return TypeError(f"{op.name}: unexpected parameter {sorted(unknown)[0]!r}; expected {op.name}({op.signature})")
    if isinstance(error, RefusedError):
        refused: Exception = error.args[0]
        return refused
    if isinstance(error, MemoryError):  # NumPy's own class of them wants a shape
        held = "" if any(map(str.isdigit, str(error))) else f"; its arguments have {_nbytes(args):,} bytes"
        return MemoryError(f"{call(op, args, params)}: {error}{held}")
    if isinstance(error, (IndexError, LinAlgError, NotImplementedError)):
        return type(error)(f"{call(op, args, params)}: {_dimension(error)}")
    mismatch = _broadcast_mismatch(args) if op.traits & {"elementwise", "promote"} else None
    if mismatch:
        return RuntimeError(f"{mismatch}, in {call(op, args, params)}")
    if isinstance(error, TypeError) and "numpy boolean" in str(error):
        if op.no_bool is not None:
            return RuntimeError(op.no_bool)
        error = RuntimeError("not supported for bool; use a logical or bitwise op, or convert with .to(dtype)")
    return RuntimeError(f"{call(op, args, params)}: {_dimension(error)}{_hint(op, args, params, error)}")


def _hint(op: Any, args: tuple[Any, ...], params: dict[str, Any], error: Exception) -> str:
    """What may have led to an error in a forward: a Tensor as a parameter, or a number where it expects an array."""
    given = [name for name, value in params.items() if hasattr(value, "_data")]
    if given:
        return (
            f"; the parameter {given[0]!r} is a Tensor, which the forward is given as it is, without gradients: give a "
            "number, or let the op have it as an argument, before *"
        )
    numbers = [i for i, a in enumerate(args) if isinstance(a, (int, float, complex))]
    if numbers and isinstance(error, AttributeError):
        name = op.signature.arguments[op.signature.slot(numbers[0])] + position(op, numbers[0])
        return f"; {name!r} is a number, which the forward is given as it is: give a tensor, or use xp.asarray there"
    return ""


def _nbytes(args: tuple[Any, ...]) -> int:
    """The memory that arguments take."""
    return sum(a.nbytes for a in args if hasattr(a, "nbytes"))


def cause(op: Any, error: Exception) -> Exception | None:
    """What Python shows above what ``failed`` gives: the error in a plugin's forward; one in ours says no more."""
    ours = op.forward.__code__.co_filename.startswith(PACKAGE)
    return None if ours or raised_by_handler(error) else error


def no_memory(node: Any, g: Any, error: MemoryError) -> MemoryError:
    """The error of a gradient for which there is no memory."""
    given = ", ".join(map(describe, g if type(g) is tuple else [g]))
    return MemoryError(f"{node.name()}(g: {given}): {error}")


def _dimension(error: Exception) -> str:
    """An array library's words, which speak of axes."""
    return re.sub(r"out of bounds for axis (\d+) with", r"out of bounds for dimension \1 with", str(error))


def _broadcast_mismatch(args: tuple[Any, ...]) -> str | None:
    shapes = [tuple(a.shape) for a in args if hasattr(a, "shape")]
    for a, b in itertools.combinations(shapes, 2):
        for k in range(1, min(len(a), len(b)) + 1):
            if a[-k] != b[-k] and 1 not in (a[-k], b[-k]):
                at = max(len(a), len(b)) - k
                return (
                    f"The size of tensor a ({a[-k]}) must match the size of tensor b ({b[-k]}) at non-singleton "
                    f"dimension {at}; reshape or expand one of them"
                )
    return None


def no_array(op: Any, args: tuple[Any, ...]) -> TypeError:
    got = ", ".join(type(a).__name__ for a in args) or "nothing"
    return TypeError(
        f"{op.name}: expected at least one Tensor ({op.signature}), got {got}; make one with leafgrad.tensor(...)"
    )


def bad_argument(op: Any, i: int, value: Any, expected: str = "a Tensor or a number") -> TypeError:
    name = op.signature.arguments[op.signature.slot(i)] if op.signature.arguments else "argument"
    hint = "convert it with leafgrad.tensor(...)"
    if type(value) in backends.BACKENDS:
        hint = "convert it with leafgrad.from_numpy(...) or leafgrad.tensor(...)"
    return TypeError(f"{op.name}(): {name}: expected {expected}, got {type(value).__name__}; {hint}")


def devices(op: Any, found: list[str]) -> RuntimeError:
    return RuntimeError(
        f"{op.name}: Expected all tensors to be on the same device, but found at least two devices, "
        f"{found[0]} and {found[1]}! Move one of them with .to({found[0]!r})"
    )


def dtypes_differ(op: Any, args: tuple[Any, ...]) -> RuntimeError:
    found = [(op.signature.arguments[op.signature.slot(i)], a.dtype) for i, a in enumerate(args) if hasattr(a, "dtype")]
    names, kinds = zip(*found, strict=True)
    if "bilinear" in op.traits:
        names = ("m1", "m2")  # PyTorch's words
    return RuntimeError(
        f"{call(op, args, {})}: expected {' and '.join(names)} to have the same dtype, but got: "
        f"{' != '.join(str(kind).removeprefix('leafgrad.') for kind in kinds)}; "
        "convert one with .to(dtype), e.g. .float()"
    )


def freed() -> FreedGraphError:
    return FreedGraphError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). The first backward() or autograd.grad() released what it had saved. Specify "
        "retain_graph=True there if you need to go through the graph again."
    )


def modified(node: Any, data: Any, version: Any) -> RuntimeError:
    kinds = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16"}
    data = data[0] if type(data) is tuple else data  # of several results, any of which may have been written
    kind = f"{kinds.get(dtypes.of(data).name, '')}Tensor"
    where = getattr(node, "where", "")
    before, certain = version.count_at(node.seq)
    expected = f"{before}" if certain else f"{before} or an earlier one"
    source = _source(node, data)
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[leafgrad.{kind} {list(data.shape)}]{source} is at version {version.count}; expected version {expected} "
        f"instead. {node.name()} had saved it. "
        + (f"The forward line was {where}. " if where else "")
        + "Use the out-of-place operation, or clone() before writing; "
        "leafgrad.autograd.set_detect_anomaly(True) names the forward line."
    )


def _source(node: Any, data: Any) -> str:
    """``, which is output 0 of ExpBackward0,`` for a saved value that a node made."""
    if data is node.out:
        return f", which is output 0 of {node.name()},"
    for kept, edge in zip(node.saved, node.edges, strict=False):
        if getattr(kept, "_data", None) is data and edge is not None and edge.edges:
            return f", which is output {getattr(edge, 'index', 0)} of {edge.name()},"
    return ""


def bad_gradient(node: Any, edge: Any, got: str, expected: str) -> RuntimeError:
    """Of a vjp rule whose result is no gradient of its argument."""
    op = node.op
    names = getattr(getattr(op, "signature", None), "arguments", ())
    found = dict.fromkeys(
        f"{names[op.signature.slot(i)]}{position(op, i)}" for i, e in enumerate(node.edges) if e is edge and names
    )
    where = f"op {op.name!r}, rule for {' or '.join(map(repr, found))}" if found else node.name()
    return RuntimeError(f"{where}: {got}, expected {expected}")


def foreign(op: Any, backend: Any, result: Any) -> TypeError:
    """Of a forward whose result is no array of the library that its arguments are of."""
    return TypeError(
        f"op {op.name!r}: expected its forward to return an array of {backend.name!r}, as its arguments are, got "
        f"{'nothing' if result is None else type(result).__name__}; compute with xp"
    )


def no_rule(op: Any, argument: str) -> str:
    return (
        f"op {op.name!r} has no gradient for its argument {argument!r}: detach() it, or define "
        f"{op.name}.vjp({argument}=...)"
    )
