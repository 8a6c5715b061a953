"""The plants by name, and what many of them are made of."""

from __future__ import annotations

import numpy as np

from leafgrad import op

RNG = np.random.default_rng(0)
X = RNG.uniform(0.2, 2.0, (3, 4))
Y = RNG.uniform(0.2, 2.0, (3, 4))
ONE = [((X,), {})]
TWO = [((X, Y), {})]
PLANTS = {}


def plant(check, samples=None, **options):
    """Enter what a function makes: an op, which fails by the check of that name."""

    def enter(make):
        PLANTS[make.__name__.replace("_", " ")] = (make, check, samples, options)
        return make

    return enter


def squared(*traits, name="squared", **options):
    @op(*traits, name=name, **options)
    def forward(xp, x):
        return x * x

    return forward
