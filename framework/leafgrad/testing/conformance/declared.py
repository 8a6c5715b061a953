"""What is declared of an op, where, and which of it has run."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Container, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from leafgrad.ops import messages
from leafgrad.ops.declarations import spoken
from leafgrad.ops.op import Op
from leafgrad.plugins.strangers import FILES


class Declaration(NamedTuple):
    """One thing that is declared: ``"forward"``, ``"vjp x"``, ``"lower native"``; and the function that it is."""

    what: str
    function: Callable[..., Any]

    @property
    def place(self) -> str:
        """``file:line`` of the function."""
        return place_of(self.function)

    def __str__(self) -> str:
        name = "the forward" if self.what == "forward" else spoken(self.what).partition(" ")[2]
        return f"{name} ({self.place})"


def place_of(function: Callable[..., Any]) -> str:
    """``file:line`` of a function."""
    code = code_of(function)
    return "no Python source" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def code_of(function: Any) -> CodeType | None:
    """The code of a function, whatever is wrapped around it."""
    found = inspect.unwrap(getattr(function, "func", function))
    code: CodeType | None = getattr(found, "__code__", None)
    return code


def author_of(op: Any) -> Any:
    """The op that a function of pairs of real numbers stands for; else what it is."""
    return inspect.unwrap(op, stop=lambda f: isinstance(f, Op))


def declarations(op: Any) -> Iterator[Declaration]:
    """What is declared of an op itself, not what follows from a trait; of a function, itself."""
    op = author_of(op)
    if not isinstance(op, Op):
        yield Declaration("forward", op)
        return
    yield Declaration("forward", op.forward)
    for backend, kernel in op.kernels.items():
        yield Declaration(f"kernel {backend}", kernel)
    found: dict[str, Any] = {f"vjp {argument}": rule for argument, (rule, _) in op.calls.items()}
    found |= {"shape": op.shaping, "chunk": op.chunking, "batched": op.batching, "summed": op.summing}
    found |= {"jet": None if op.expanding is None else op.expanding[0]}
    found |= {f"rewrite {i}": rule for i, rule in enumerate(op.rewriting, 1)}
    found |= {f"lower {executor}": rule for executor, rule in op.lowering.items()}
    for what, rule in found.items():
        if rule is not None and not op.origins.get(what, "trait ").startswith(("trait ", "transpose of ")):
            yield Declaration(what, rule)


def declarations_in_words(op: Any, *kinds: str) -> str:
    """The declarations of these kinds, or all, in words, each with its place."""
    op = author_of(op)
    chosen = [str(d) for d in declarations(op) if not kinds or d.what.partition(" ")[0] in kinds or d.what in kinds]
    for word in ("c", "ufunc"):
        if (not kinds or word in kinds) and getattr(op, word, None) is not None:
            chosen.append(f"{word}={getattr(op, word)!r} ({place_of(op.forward)})")
    return ", ".join(chosen)


def raised_in(op: Any, error: BaseException | None) -> str:
    """Where an error, or what led to it, was raised: in which declaration.

    If in none, in which line outside leafgrad, and where all declarations are, one of which has led to it.
    """
    known = {code: d for d in declarations(op) for code in codes(code_of(d.function))}
    found, line = None, ""
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            found = known.get(code, found)
            if not code.co_filename.startswith((messages.PACKAGE, "<")):
                line = f"{code.co_filename}:{trace.tb_lineno}"
            trace = trace.tb_next
        error = error.__cause__ or error.__context__
    if found is not None:
        return f", in {found}"
    return (f", at {line}" if line else "") + f". Declared: {declarations_in_words(op)}"


def codes(code: CodeType | None) -> Iterator[CodeType]:
    """A code object, and those of the functions in it."""
    if code is not None:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from codes(constant)


class DeclarationWatch:
    """Notes which lines of the declarations of an op run, until all have, since it slows down whatever runs beside.

    Where a debugger or a coverage tool traces, it does nothing.

    Args:
        active: whether it is to note any.
        files: names of those that write files, and try the rules for them.

    Attributes:
        left: for each code object, by its id, the lines that have not run: to hash one takes longer than to run it.
    """

    def __init__(self, op: Any, active: bool, files: Container[str] = ()) -> None:
        left_out = {f"lower {name}" for name in FILES if name not in files}
        self.declared = [d for d in declarations(op) if d.what not in left_out]
        self.codes = [code for d in self.declared for code in codes(code_of(d.function))]  # which keep their ids
        self.left = {id(code): {line for *_, line in code.co_lines() if line is not None} for code in self.codes}
        self.alone = active and sys.gettrace() is None

    def __enter__(self) -> DeclarationWatch:
        if self.alone:
            sys.settrace(self.call)
        return self

    def __exit__(self, *_: object) -> None:
        if self.alone:
            sys.settrace(None)

    def call(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Follow a frame of one of the functions alone."""
        left = self.left.get(id(frame.f_code))
        if not left:
            return None
        self.seen(left, frame.f_code.co_firstlineno)
        return self.line

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A line is to run."""
        self.seen(self.left[id(frame.f_code)], frame.f_lineno)
        return self.line

    def seen(self, left: set[int], line: int) -> None:
        """Cross a line out."""
        left.discard(line)
        if not left and not any(self.left.values()):
            sys.settrace(None)

    def unseen(self) -> Iterator[str]:
        """What has not run: whole declarations, or lines of them."""
        for d in self.declared if self.alone else ():
            code = code_of(d.function)
            if code is None:
                continue
            if code.co_firstlineno in self.left[id(code)]:
                yield str(d)
                continue
            lines = sorted(set().union(*(self.left[id(c)] for c in codes(code))))
            lines = [n for n in lines if executes(code.co_filename, n)]
            if lines:
                yield f"{d}, line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"


def executes(file: str, line: int) -> bool:
    """Whether a line does more than to refuse what it was given."""
    text = linecache.getline(file, line).strip()
    return not text.startswith(("raise ", ")", "@"))
