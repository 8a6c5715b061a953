"""When complex results are the same but for rounding."""

import numpy as np
import pytest

from leafgrad.compile.ir.rounding import close, nudged

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_close_by_their_parts(dtype):
    a = np.array([1 + 2j, 300 - 1j, 0], dtype)
    eps = np.finfo(dtype).eps
    assert close(a * (1 + eps), a)
    assert not close(a + np.array([0, 1j, 0], dtype), a)
    assert not close(a.conj(), a)
    assert close(np.asfortranarray(a.reshape(3, 1)), a.reshape(3, 1))


def test_complex_numbers_that_are_not_finite():
    a = np.array([complex(INF, NAN), 1j, complex(NAN, 2)])
    assert close(np.array([complex(INF, INF), 1j, complex(3, NAN)]), a)
    assert not close(np.array([complex(INF, INF), NAN * 1j, complex(3, NAN)]), a)
    assert not close(np.array([1.0, 1j, complex(3, NAN)]), a)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32"])
def test_nudged_numbers_are_near(dtype):
    a = np.array([[1 + 2j, 300 - 1j], [0, 5j]]).astype(dtype) if dtype[0] == "c" else np.ones((2, 2), dtype)
    moved = nudged(a, np.random.default_rng(0))
    assert (moved.dtype, moved.shape) == (a.dtype, a.shape)
    assert close(moved, a)
    assert (moved != a).any()
