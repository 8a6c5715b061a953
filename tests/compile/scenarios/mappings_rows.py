"""Dicts of other classes than dict, given, captured, changed and returned."""

from __future__ import annotations

from collections import OrderedDict, defaultdict

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn


def three() -> float:
    return 3.0


class Filling(dict):
    def __missing__(self, key):
        self["missed"] = key
        return 7.0


@row
def default_dict_whose_key_comes_and_goes(w):
    table = defaultdict(three, n=0, z=1.0)

    def step(x):
        table["n"] = table["n"] + 1
        if "z" in table:
            return x * table.pop("z")
        return x + table["n"]

    step = w.compile(step)
    for present in w.turns(True, False, True):
        if present:
            table["z"] = 5.0
        w.call(step, points())


@row
def dict_that_fills_itself(w):
    table = Filling(k=2.0)
    step = w.compile(lambda x: x * table["k"] if "k" in table else x * table["j"])
    for present in w.turns(True, False, True):
        if present:
            table["k"] = 2.0
        else:
            table.pop("k", None)
        w.call(step, points())


@row
def ordered_dict_of_another_order(w):
    step = w.compile(lambda named: [value.sum() * i for i, value in enumerate(named.values())])
    for names in w.turns("ab", "ba", "bac"):
        w.call(step, OrderedDict((name, points() * ord(name)) for name in names))


@row
def kinds_of_dict_that_are_given(w):
    step = w.compile(lambda named: named["a"] * len(named) + named["c"] if "c" in named else named["a"])
    for kind in w.turns(dict, OrderedDict, lambda **named: defaultdict(points, named)):
        w.call(step, kind(a=points(), b=points()))


@row
def default_dict_with_a_new_default(w):
    step = w.compile(lambda named: named["a"] * named["absent"])
    for default in w.turns(1.0, 2.0, 3.0):
        w.call(step, defaultdict(lambda default=default: default, a=points()))


@row
def given_dict_that_is_filled(w):
    def step(named, x):
        named["new"] = x * 2
        named["count"] = named.get("count", 0) + 1
        named.pop("old", None)
        return named

    step = w.compile(step)
    kept = OrderedDict(old=1)
    for scale in w.turns(1.0, 2.0, 3.0):
        w.call(step, kept, points() * scale)
        w.call(step, defaultdict(three, old=scale), points())
        w.see("the default", w.call(step, defaultdict(three), points())["missing"])


@row
def returned_dicts(w):
    def step(x):
        table = defaultdict(list)
        table["a"].append(x * 2)
        return OrderedDict(b=x + 1, a=x), table

    step = w.compile(step)
    for scale in w.turns(1.0, 2.0, 3.0):
        ordered, table = w.call(step, leafgrad.ones(2) * scale)
        table["later"].append(scale)
        w.see("they are", list(ordered), table, type(ordered).__name__, type(table).__name__)


@row
def state_under_a_parameter(w):
    weight, state = nn.Parameter(points()), {}

    def step(x):
        if weight in state:
            x = x + state[weight]
        state[weight] = x * 2
        return state[weight] + weight.detach()

    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points() * k)
