"""Graphs with other sizes."""

import leafgrad
from leafgrad.compile.ir.lengths import Length, changed, lengths_in, resized
from leafgrad.compile.run.inputs import graph_of


def any_length(n):
    return lambda part: Length("n") if type(part) is int and part == n else part


def test_a_graph_at_another_length_is_the_one_that_is_recorded_there():
    def f(x):
        return x[1:].tanh().sum() + x.mean()

    seven, nine = (graph_of(f, (leafgrad.ones(n, 3),), {}) for n in (7, 9))
    general = resized(resized(seven, any_length(7)), lambda part: Length("n - 1") if part == 6 else part)
    assert {length.text for length in lengths_in(general)} == {"n", "n - 1"}
    sizes = {"n": 9, "n - 1": 8}
    again = resized(general, lambda part: sizes[part.text] if type(part) is Length else part)
    assert again == nine
    assert again != seven


def test_what_has_no_length_stays_the_same():
    graph = graph_of(lambda x: (x * 2).sum(), (leafgrad.ones(7, 3),), {})
    same = resized(graph, lambda part: part)
    assert all(a is b for a, b in zip(same.equations, graph.equations, strict=True))
    assert list(same.inputs) == list(graph.inputs)
    params = {"at": ((0, 7, 1), None), "dims": [1, 2], "name": "n"}
    assert changed(params, lambda part: part) is params
    found = changed(params, any_length(7))
    assert found == {"at": ((0, Length("n"), 1), None), "dims": [1, 2], "name": "n"}
    assert repr(Length("n")) == "n"
