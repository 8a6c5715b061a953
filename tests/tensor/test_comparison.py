"""How many elements ``topk`` and ``kthvalue`` are asked for."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize("name", ["topk", "kthvalue"])
def test_k_is_an_int_of_anyone(t, name):
    x, function = t.tensor([3.0, 1.0, 2.0]), getattr(t, name)
    for k in (np.int64(2), np.array(2), t.tensor(2)):
        assert function(x, k).values.tolist() == function(x, 2).values.tolist()
    for k in (2.0, True, "2"):
        with pytest.raises(TypeError, match=rf"{name}\(\): argument 'k' .*must be int, not"):
            function(x, k)
