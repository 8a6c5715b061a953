"""The calls that docs/architecture.md walks through enter the functions that it lists, in that order."""

import re
import sys
from pathlib import Path

import pytest

import leafgrad

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
LINE = re.compile(r"^ *([\w.]+) +([\w/]+\.py|\(generated\)|compile/guard)( |$)")


def op(x, y):
    return lambda: leafgrad.tanh(x)


def backward(x, y):
    loss = (x * y).sum()
    return loss.backward


def compiled(x, y):
    total = leafgrad.zeros(())
    step = leafgrad.compile(lambda a, b: total.add_(leafgrad.tanh(a * b).sum()) * 2)
    given = x.detach(), y
    for _ in range(4):
        step(*given)
    return lambda: step(*given)


def entered(call):
    """The functions that a call enters, each with its file."""
    found = []

    def note(frame, event, _):
        if event == "call":
            found.append((frame.f_code.co_qualname, frame.f_code.co_filename))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(("walk", "make"), [*enumerate([op, backward, compiled])], ids=["op", "backward", "compiled"])
def test_the_walks_are_true(walk, make):
    section = PAGE.read_text().split("## Three calls")[1].split("## In which order")[0]
    block = section.split("```text\n")[walk + 1].split("```")[0]
    listed = [(m[1], m[2]) for m in map(LINE.match, block.splitlines()) if m]
    assert len(listed) == len(block.splitlines())
    x, y = leafgrad.ones(3, requires_grad=True), leafgrad.ones(3)
    make(x, y)()
    frames = iter(entered(make(x, y)))
    for name, file in listed:
        where = r"<leafgrad guards>|\(written\)" if file == "(generated)" else re.escape(file)
        assert any(name == found and re.search(where, path) for found, path in frames), (name, file)
