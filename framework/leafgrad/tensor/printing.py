"""How a tensor prints, as PyTorch prints it, and ``set_printoptions``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from leafgrad import backends, dtypes, modes
from leafgrad.ops import dispatch
from leafgrad.ops.node import SymbolBase
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


class PrintedText(str):
    """Lines of text, which Python's prompt and notebooks show as they are."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Options(NamedTuple):
    """See ``set_printoptions``."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {"default": Options(), "short": Options(precision=2, edgeitems=2), "full": Options(threshold=math.inf)}
_options = Options()


def get_printoptions() -> Options:
    """How tensors print now."""
    return _options


@public(only="leafgrad")
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors print, for the whole process; what is not given stays.

    Args:
        precision: digits after the point (4).
        threshold: the number of elements above which the middle is left out (1000).
        edgeitems: how many elements of each dimension are then shown at either end (3).
        linewidth: characters after which a line is broken (80).
        profile: all of these at once: "default", "short" or "full".
        sci_mode: scientific notation always (True), never (False), or where numbers differ much (None).
    """
    global _options
    base = _options
    if profile is not None:
        if not isinstance(profile, str) or profile not in PROFILES:
            raise ValueError(f"set_printoptions: profile: expected one of {', '.join(PROFILES)}, got {profile!r}")
        base = PROFILES[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name, value in changes.items():
        if not isinstance(value, (int, float) if name == "threshold" else int) or value < 0:
            raise ValueError(f"set_printoptions: {name}: expected a number of at least 0, got {value!r}")
    if sci_mode not in (None, True, False):
        raise ValueError(f"set_printoptions: sci_mode: expected True, False or None, got {sci_mode!r}")
    _options = base._replace(sci_mode=sci_mode, **changes)


@public(name="__repr__", only="Tensor")
def text(t: Tensor) -> str:
    """The repr of a tensor."""
    if isinstance(t._data, SymbolBase) and t._data.level:
        return repr(t._data)
    if modes.tracer():
        t = dispatch.alias(t._array("printing"), dispatch.inside(t)._node)
    kind, shape, options = t.dtype, tuple(t.shape), _options
    default = dtypes.get_default_dtype()
    ours = type(t).__module__.partition(".")[0] in ("leafgrad", dtypes.namespace)
    head = "tensor(" if ours else f"{type(t).__name__}("
    suffixes = [] if t.device.type == "cpu" else [f"device='{t.device}'"]
    shown = (default, default.to_complex(), dtypes.int64, dtypes.bool_)
    if t.is_meta:
        body = "..."
        suffixes.append(f"size={shape}")
        if kind is not dtypes.get_default_dtype():
            suffixes.append(f"dtype={kind}")
    elif 0 in shape:
        body = "[]"
        if len(shape) != 1:
            suffixes.append(f"size={shape}")
        if kind is not dtypes.get_default_dtype():
            suffixes.append(f"dtype={kind}")
    else:
        if not options.edgeitems:
            suffixes.append(f"size={shape}")
        if kind not in shown:
            suffixes.append(f"dtype={kind}")
        body = elements(t._data, kind, options, len(head))
    inner = dispatch.inside(t)
    lost = inner._view is not None and inner._view.cut_off(inner)
    node = None if lost else t.grad_fn
    if lost:
        suffixes.append("grad_fn=<Invalid>")
    elif node is not None:
        suffixes.append(f"grad_fn=<{node.name()}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    return joined(head, body, suffixes, options.linewidth)


def joined(head: str, body: str, suffixes: list[str], linewidth: int) -> str:
    """``head``, ``body`` and suffixes, each on a line of its own where the last one is full."""
    indent, line = len(head), head + body
    length = len(line) - line.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > linewidth:
            line += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            line += ", " + suffix
            length += len(suffix) + 2
    return line + ")"


def elements(array: Any, kind: dtypes.dtype, options: Options, indent: int) -> str:
    """The nested brackets, of which the first is ``indent`` to the right."""
    summarize = array.size > options.threshold
    host = backends.backend_of(array).to_host(corners(array, options.edgeitems) if summarize else array)
    ends = tuple(summarize and n > 2 * options.edgeitems for n in array.shape)
    write, width = number_format(host.reshape(-1).tolist(), kind, options)
    per_line = max(1, (options.linewidth - indent - max(0, array.ndim - 1)) // (width + 2))
    return brackets(host.tolist(), ends, indent, write, per_line)


def corners(array: Any, edgeitems: int) -> Any:
    """``array`` without what a summary leaves out: each long dimension cut to its ends."""
    for axis, n in enumerate(array.shape):
        if n > 2 * edgeitems:
            lead = (slice(None),) * axis
            keep = list(range(edgeitems)) + list(range(n - edgeitems, n))
            array = array[(*lead, keep)]
    return array


def brackets(values: Any, ends: tuple[bool, ...], indent: int, write: Callable[[Any], str], per_line: int) -> str:
    """``values``, nested lists, in brackets; ``ends`` says in which dimensions the middle was left out."""
    if not ends:
        return write(values)
    cut = len(values) // 2
    if len(ends) == 1:
        parts = [write(v) for v in values]
        if ends[0]:
            parts = [*parts[:cut], " ..." if parts else "...", *parts[cut:]]
        lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = [brackets(v, ends[1:], indent + 1, write, per_line) for v in values]
    if ends[0]:
        parts = [*parts[:cut], "...", *parts[cut:]]
    return "[" + ("," + "\n" * (len(ends) - 1) + " " * (indent + 1)).join(parts) + "]"


def signed(number: str) -> str:
    """An imaginary part with its sign in front."""
    bare = number.lstrip()
    return bare if bare.startswith("-") else "+" + bare


def number_format(values: list[Any], kind: dtypes.dtype, options: Options) -> tuple[Callable[[Any], str], int]:
    """A function that writes each of ``values``, and the width to which it fills them."""
    if kind.is_complex:
        first, before = number_format([v.real for v in values], kind.to_real(), options)
        second, after = number_format([v.imag for v in values], kind.to_real(), options)
        return (lambda v: first(v.real) + signed(second(v.imag)) + "j"), before + after + 2
    if not kind.is_floating_point:
        width = max((len(str(v)) for v in values), default=1)
        return (lambda v: str(v).rjust(width)), width
    numbers = [v for v in values if v and math.isfinite(v)]
    spec, suffix = f".{options.precision}f", ""
    sizes = [abs(v) for v in numbers] or [1.0]
    low, high = min(sizes), max(sizes)
    whole = all(v == math.ceil(v) for v in numbers)
    if whole:
        spec, suffix = ".0f", "."
    scientific = high / low > 1000 or high > 1e8 or (not whole and low < 1e-4)
    if numbers and (scientific if options.sci_mode is None else options.sci_mode):
        spec, suffix = f".{options.precision}e", ""
    width = max((len(format(v, spec) + suffix) for v in numbers), default=1)

    def write(v: float) -> str:
        return (format(v, spec) + (suffix if math.isfinite(v) else "")).rjust(width)

    return write, width
