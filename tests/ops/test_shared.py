"""Who has what the code of others returns."""

from __future__ import annotations

import numpy as np
import pytest

from leafgrad.ops.shared import Sole, is_shared

KEPT = np.arange(6.0)
VIEW = np.arange(6.0)[1:]  # of memory that has no other name
HELD = np.arange(2.0), np.arange(3.0)
OURS = {"new": lambda: KEPT + 1, "a view of new": lambda: (KEPT + 1)[::2], "a number": lambda: KEPT.sum()}
OURS |= {"a view of a view": lambda: (KEPT + 1)[::2].T, "a tuple": lambda: (KEPT + 1, 2)}
THEIRS = {"an array": lambda: KEPT, "a view": lambda: KEPT[1:], "nested": lambda: KEPT.reshape(2, 3).T[1]}
THEIRS |= {"a kept view": lambda: VIEW, "its view": lambda: VIEW[1:], "a tuple": lambda: HELD, "of it": lambda: HELD[0]}
THEIRS |= {"of bytes": lambda: np.frombuffer(bytearray(16)), "lent": lambda: np.from_dlpack(KEPT)}


@pytest.mark.parametrize("make", OURS.values(), ids=OURS)
def test_what_is_made_anew(make):
    made, sole = make(), Sole()
    assert not is_shared(made, sole)


@pytest.mark.parametrize("make", THEIRS.values(), ids=THEIRS)
def test_what_somebody_keeps(make):
    made, sole = make(), Sole()
    assert is_shared(made, sole)
