"""What explain() gives: a summary, causes in the order of what they cost, guards on demand."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import leafgrad
from leafgrad import nn


def test_a_closed_step_is_summed_up_and_its_guards_are_at_hand():
    step = leafgrad.compile(lambda x, kind: x.sin() if kind == "sin" else x.cos())
    for kind in ("sin", "sin", "cos", "<b>"):
        step(leafgrad.ones(2), kind)
    found = step.explain()
    assert found.summary == str(found).splitlines()[0]
    assert found.summary.endswith(": closed; 3 programs, traced again 2 times")
    assert repr(found) == str(found)
    assert len(found.guards) == 3
    assert any(line == "x: float32 (2,) on cpu" for line in found.guards[0])
    assert "float32 (2,)" not in found
    page = found._repr_html_()
    assert page.count("<details>") == 3
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_causes_come_in_the_order_of_their_number():
    step = leafgrad.compile(lambda x, kind: x + len(kind))
    kinds = ["a", "a", "bb", "ccc", "ccc"]
    for i, kind in enumerate(kinds):
        step(leafgrad.ones(3 if i == 4 else 2), kind)
    lines = str(step.explain()).splitlines()
    assert lines[1:4] == [
        "  kind was 'a' and became 'bb'",
        "  kind was 'bb' and became 'ccc'",
        "  kind changed 2 times: keep it out of the function, or pass it as a tensor",
    ]
    assert lines[4] == "  x was float32 (2,) on cpu and became float32 (3,) on cpu"


def test_a_method_that_changes_is_named_with_its_line(monkeypatch):
    net = nn.Linear(2, 2)
    step = leafgrad.compile(lambda x: net(x))
    for _ in range(3):
        step(leafgrad.ones(1, 2))
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: 2 * x)
    assert step(leafgrad.ones(1, 2)).tolist() == [[2, 2]]
    line = str(step.explain()).splitlines()[1]
    assert line.startswith("  what is in Linear was ")
    assert "forward at linear.py:" in line
    assert "<lambda> at test_explain.py:" in line


def test_plugins_that_load_with_the_first_recording_cost_no_second_one():
    code = """
import leafgrad
from leafgrad import nn, plugins
y = leafgrad.tensor([0, 1])
step = leafgrad.compile(lambda x: nn.functional.cross_entropy(x, y), executor="numpy")
for i in range(5):
    step(leafgrad.ones(2, 3))
    if i == 2:
        plugins.load()  # leafgrad-fft brings methods of tensors
assert hasattr(leafgrad.ones(3), "stft")
assert step.explain().summary.endswith("1 program, traced again 0 times"), step.explain().summary
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


def test_an_open_step_says_why_in_its_first_line():
    step = leafgrad.compile(lambda x: (pathlib.Path().exists(), x.sin())[1])
    for _ in range(4):
        step(leafgrad.ones(2))
    assert ": open, since " in step.explain().summary
    assert step.explain().guards == ()


def test_an_open_step_of_which_nothing_is_compiled_says_so():
    def frames(x):
        return x * len(sys._getframe().f_locals)

    def small(x):
        print(end="")
        return x * 2

    for function, told in ((frames, "nothing of it can be taken out"), (small, "no part is worth it")):
        step = leafgrad.compile(function)
        for _ in range(80):
            step(leafgrad.ones(2))
        assert told in step.explain()
        assert "timed" not in step.explain()


def test_before_the_first_call_there_is_nothing_to_say():
    found = leafgrad.compile(leafgrad.sin).explain()
    assert (found, found.guards) == ("sin: has not been called", ())
