"""Functions whose runs are functions of their own do what they did, whatever stays and whatever is raised."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import random
import types

import pytest

from leafgrad.compile.run.outline import Outline
from leafgrad.compile.run.source import tree_of
from leafgrad.compile.run.split import span

NOTED: list[object] = []
TOTAL = 0


def note(value=0, *more, **names):
    NOTED.append((str(value), more, names) if more or names else value)
    return value


def branches(a, b=2):
    if a > b:
        c = note(a - b)
    else:
        note(b)
    for i in range(a):
        if i == 3:
            break
        c = note(i)
    else:
        note("all")
    return note(c)


def errors(a):
    total = 0
    try:
        total = note(a)
        last = note(10 // a)
        total = note(last)
    except ZeroDivisionError as error:
        note(str(error))
    finally:
        note(total)
    with contextlib.suppress(ValueError):
        total = note(-1)
        total = int(note("no number"))
        total = note(5)
    return note(total), last


def functions(a, *rest, scale=3):
    parts = [note(scale * r) for r in rest]
    made = [lambda x: 2 * x + a]
    b = note(made[0](1))
    made.append(lambda: b)
    note(made[1]())
    b = note(7)
    note(made[1]())
    del parts[0]
    return note(sum(parts)), made[1]()


def counts(a):
    global TOTAL
    TOTAL += note(a)
    while (left := note(TOTAL)) > 10:
        TOTAL -= 5
        if note(left) == 12:
            return "left"
    if left > 100:
        del a
    return note(a)


def deletes(a):
    """Variables that are deleted in blocks and branches, and read where they may be gone."""
    b, c, d = note(a), note(a + 1), note(a + 2)
    with contextlib.suppress(ValueError):
        note(1)
        del b
    for i in range(a):
        if i == 1:
            note(i)
            del c
    try:
        note(c)
        if note(a):
            del d
        note(2)
    except UnboundLocalError:
        note("gone")
    try:
        return note(d)
    except UnboundLocalError:
        return note(3)


def made():
    kept = 1

    def inner(a):
        nonlocal kept
        kept = note(kept + a)
        match note((a, kept)):
            case (1, k):
                b = note(k)
            case (_, 4 | 5 as k):
                note(k)
        note(kept)
        return b

    return inner


def expressions(a, *rest):
    held = [1, 2, 3]
    note(str([*note(held), note(a)]) + f"{held} {held.pop()}")
    held[note(0)] = note(a) if note(a) > 1 and note(2) else note(len(held)) * note(3) ** 2
    a += note(held[note(0) : note(2)])[0] - note(*rest, b=1, a=note(a))
    if note(a) < note(2) * note(-1) or not note(0):
        return {note("key"): note(a)}, (note(1), note(2))[note(-1)]
    for i in note([note(1), 2]):
        held.append(note(i) + next(note(j) for j in held))
    return note(held).index(note(1)) + note(a)


def nested(a, b=2):
    early = note(a)

    def inner(c, *more, d=note):
        e = note(c + a)
        try:
            e = note(e // c) + late
            note([early * i + e for i in more])
        except ZeroDivisionError:
            note(("divided", e))

        def innermost(e):
            note(d(e))
            note(b)
            return note((lambda: early + e)())

        for c in (1, 2):
            note(c)
            e = note(innermost(c))
        return note(e), c

    if note(a) > 1:
        early, late = note(7), 3
    note(inner(a))
    late = note(5)
    found = [note(f(1, 2, 3)) for f in (inner, lambda *rest: note(sum(rest)) + note(late))]
    return note(inner(2)), found


(LAMBDA,) = [lambda a, b=3: note(note(a) + b) * (note(2) if a > 1 else note(b)) + sum(note(i) for i in range(a))]


class Owner:
    def __init__(self):
        self.__private = 1

    def method(self, a):
        self.__private += note(a)
        note(self.__private)
        b = super().__hash__() is not None
        return note(b), self.__private


CALLS = {
    branches: [(1,), (3,), (9, 1), (2, 5)],
    errors: [(0,), (3,)],
    functions: [(1, 2, 3), (4,)],
    expressions: [(1, 2), (3,), (0, 0)],
    nested: [(0,), (1,), (2,), (3, 4)],
    LAMBDA: [(1,), (2, 5)],
    counts: [(5,), (12,), (30,)],
    deletes: [(0,), (1,), (2,)],
    made(): [(1,), (2,), (9,)],
    Owner.method: [(Owner(), 2)],
}


def result_of(function, arguments):
    """What a call returns or raises, and what it notes."""
    global TOTAL
    TOTAL = 0
    NOTED.clear()
    try:
        found = function(*arguments)
    except Exception as error:
        found = type(error)
    return found, [*NOTED], TOTAL


def outlined(function, chosen, depth):
    """A function in which runs around what is chosen are functions, in which the same is done again."""
    tree = tree_of(function)
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)) and node is not tree]
    picked = chosen.sample(nodes, min(len(nodes), 2))

    @functools.cache
    def again(found):
        divisible = isinstance(found, types.FunctionType) and tree_of(found) is not None
        return outlined(found, chosen, depth - 1) if depth and divisible else found

    return Outline(function, set(map(span, picked)), again, again).outlined or function


@pytest.mark.times(4, 20)
@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__qualname__)
def test_it_does_what_it_did(function, count):
    cells = [(cell, cell.cell_contents) for cell in function.__closure__ or ()]
    for arguments in CALLS[function]:
        private = [vars(a).copy() for a in arguments if isinstance(a, Owner)]

        def again(arguments=arguments, private=private):
            for cell, held in cells:
                cell.cell_contents = held
            for a in arguments[:1] if private else ():
                vars(a).update(private[0])

        again()
        expected = result_of(function, arguments)
        for seed in range(count):
            again()
            assert result_of(outlined(function, random.Random(seed), seed % 3), arguments) == expected
    for cell, held in cells:
        cell.cell_contents = held


def test_a_name_that_nobody_sets_is_no_variable():
    def step(a):
        note(a)
        b = note(a)
        note(later)
        return b

    found = Outline(step, {position(step, 1)}, lambda run: run)
    assert len(found.parts) == 2
    with pytest.raises(NameError, match="later"):
        found.outlined(1)
    later = 1


def test_without_breaks_or_without_source_nothing_is_taken_out():
    def step(a):
        return note(a)

    scope = {}
    exec("def step(a):\n    note(a)\n    return a", scope)
    assert Outline(step, set(), lambda run: run).outlined is None
    assert Outline(scope["step"], {(2, 4, 2, 11)}, lambda run: run).outlined is None


def test_what_sees_the_variables_of_a_frame_stays_whole():
    def step(a):
        note(a)
        note(locals())
        return note(a)

    assert Outline(step, {(0, 0, 1000, 0)}, lambda run: run).outlined is None


def test_a_run_gives_what_is_read_after_it():
    def step(a):
        c = 0
        if a:
            b = note(a)
            c = note(b + 1)
        note("stays")
        for i in range(3):
            if not i:
                d = note(c)
            note("stays")
            c = note(c + d)
        return c

    given = []

    def noting(run):
        @functools.wraps(run)
        def noted(*args):
            given.append(run(*args))
            return given[-1]

        return noted

    stay = [position(step, 2), span(tree_of(step).body[3].body[1])]
    assert Outline(step, set(stay), noting).outlined(4) == step(4) == 20
    assert given == [5, 5, 10, 5, 15, 5, 20]


HIDES = """
total = 0


def step(a, note):
    if a > 3:
        note("stays")
        return total + 1
    else:
        b = note(a)
        total = note(b)
    note("stays")
    return b
"""


def test_a_variable_that_a_run_alone_sets_hides_the_global_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "hides.py").write_text(HIDES)
    monkeypatch.syspath_prepend(str(tmp_path))
    step = importlib.import_module("hides").step
    body = tree_of(step).body
    found = Outline(step, {span(body[0].body[0]), span(body[1])}, lambda run: run)
    assert found.parts
    assert found.outlined(1, note) == step(1, note) == 1
    for function in (step, found.outlined):
        with pytest.raises(UnboundLocalError, match="total"):
            function(4, note)


def test_a_function_that_is_replaced_is_not_the_one_outlined():
    def step(a):
        note(a)
        return note(2 * a)

    found = Outline(step, {position(step, 0)}, lambda run: run)
    assert found.current
    step.__code__ = (lambda a: a).__code__
    assert not found.current


def position(function, index):
    """Where a statement of a function is."""
    return span(tree_of(function).body[index])
