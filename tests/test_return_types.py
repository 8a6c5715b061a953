"""Results with names: tuples of their own types, which print as PyTorch's."""

from __future__ import annotations

import copy
import pickle

import pytest

import leafgrad
from leafgrad import return_types
from leafgrad.compat import as_torch

ALONG = ("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk")
MATRICES = ("eigh", "lstsq", "qr", "slogdet", "svd")


@pytest.mark.parametrize("name", ALONG)
def test_results_along_a_dimension_have_the_type_of_their_function(name):
    x = leafgrad.tensor([[3.0, 1.0], [2.0, 5.0]])
    found = getattr(leafgrad, name)(x, 1)
    assert type(found) is getattr(return_types, name)
    assert type(getattr(x, name)(1)) is type(found)
    values, indices = found
    assert found.values is values
    assert found[1] is indices
    assert found._fields == ("values", "indices")
    assert found._asdict() == {"values": values, "indices": indices}


@pytest.mark.parametrize("name", MATRICES)
def test_results_of_linalg_have_the_type_of_their_function(name):
    A = leafgrad.tensor([[2.0, 0.0], [0.0, 3.0]])
    found = getattr(leafgrad.linalg, name)(*[A] * (2 if name == "lstsq" else 1))
    assert type(found) is getattr(return_types, f"linalg_{name}")
    if name not in ("eigh", "lstsq"):  # older functions have types of their own
        assert type(getattr(leafgrad, name)(A)) is type(getattr(A, name)()) is getattr(return_types, name)


def test_printing():
    found = leafgrad.tensor([[3.0, 1.0], [2.0, 5.0]]).max(1)
    shown = "return_types.max(\nvalues=tensor([3., 5.]),\nindices=tensor([0, 1]))"
    assert repr(found) == f"leafgrad.{shown}"
    with as_torch():
        import torch

        assert str(found) == f"torch.{shown}"
        assert torch.return_types.max is return_types.max
    low_high = leafgrad.tensor([1.0, 2.0]).aminmax()
    assert repr(low_high) == "leafgrad.return_types.aminmax(\nmin=tensor(1.),\nmax=tensor(2.))"


def test_copies_and_programs_keep_the_type():
    x = leafgrad.tensor([[3.0, 1.0], [2.0, 5.0]])
    found = x.topk(1)
    assert type(pickle.loads(pickle.dumps(found))) is type(copy.deepcopy(found)) is return_types.topk
    assert type(leafgrad.func.vmap(lambda row: row.sort())(x)) is return_types.sort
    assert type(leafgrad.compile(lambda x: x.max(1))(x)) is return_types.max
