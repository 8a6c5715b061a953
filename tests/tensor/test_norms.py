"""Norms of slices."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad.autograd import gradcheck

x = leafgrad.randn(4, 5, dtype=leafgrad.float64, generator=leafgrad.Generator().manual_seed(0))


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_gradients_of_norms_of_zeros_and_ones(p):
    x = leafgrad.tensor([[0.0, 1.0, -1.0], [-2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, -1.0, 0.0]], dtype=leafgrad.float64)
    norms = leafgrad.tensor([2, 2**p + 1, 1, 1], dtype=leafgrad.float64).unsqueeze(1) ** (1 / p)  # of zeros, anything
    x.requires_grad_().norm(p, 1).sum().backward()
    leafgrad.testing.assert_close(x.grad, x.sign() * x.abs() ** (p - 1) * norms ** (1 - p))


@pytest.mark.parametrize("p", [1, 2, 3.5, float("inf")])
def test_renorm(p):
    got = leafgrad.renorm(x, p, 1, 1.5)
    norms = np.linalg.norm(x.numpy(), p, axis=0)
    np.testing.assert_allclose(got, x.numpy() * np.where(norms > 1.5, 1.5 / (norms + 1e-7), 1), rtol=1e-12)
    assert (x.clone().renorm_(p, 1, 1.5) == got).all()
    assert gradcheck(lambda x: x.renorm(p, 1, 1.5), x.clone().requires_grad_())


@pytest.mark.parametrize("p", [np.inf, -np.inf, -1.0, 2.0])
def test_no_vectors_have_no_norms(p):
    """Where each has elements, but there is none."""
    for norm in (leafgrad.linalg.vector_norm, leafgrad.compile(leafgrad.linalg.vector_norm)):
        assert norm(leafgrad.zeros(0, 3), p, dim=-1).shape == (0,)
        assert norm(leafgrad.zeros(2, 0, 3), p, dim=(0, 2), keepdim=True).shape == (1, 0, 1)


@pytest.mark.parametrize("order", [1, 2, np.inf, "nuc", "fro"])
@pytest.mark.parametrize("shape", [(4, 0), (0, 4), (2, 0, 0)])
def test_matrices_without_elements_have_the_norm_0(shape, order):
    linalg, empty = leafgrad.linalg, leafgrad.zeros(shape)
    zeros = leafgrad.zeros(shape[:-2])
    assert leafgrad.equal(linalg.matrix_norm(empty, order), zeros)
    square = leafgrad.zeros(*shape[:-2], 0, 0)
    assert leafgrad.equal(linalg.cond(square, order), zeros)
    if isinstance(order, str):
        with pytest.raises(RuntimeError, match="square matrices"):
            linalg.cond(leafgrad.zeros(0, 3), order)
    else:
        assert linalg.cond(leafgrad.zeros(0, 3), order) == 0


@pytest.mark.parametrize(("order", "regular"), [("fro", 2.5), (1, 2.0), (-np.inf, 0.5), ("nuc", 4.5)])
def test_a_singular_matrix_is_of_infinite_condition_beside_others(order, regular):
    x = leafgrad.tensor([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 4.0]]], requires_grad=True)
    found = leafgrad.linalg.cond(x, order)
    assert found.tolist() == pytest.approx([np.inf, regular])
    found[1].backward()
    assert leafgrad.equal(x.grad[0], leafgrad.zeros(2, 2))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, np.inf])
def test_rows_without_elements_are_not_apart(p):
    assert leafgrad.equal(leafgrad.cdist(leafgrad.zeros(3, 0), leafgrad.zeros(2, 0), p), leafgrad.zeros(3, 2))


def test_nuclear_norms_by_their_older_name():
    x = leafgrad.randn(2, 3, 4, dtype=leafgrad.float64)
    leafgrad.testing.assert_close(leafgrad.norm(x[0], "nuc"), leafgrad.linalg.svdvals(x[0]).sum())
    for dim in ((0, 2), (2, 1)):
        leafgrad.testing.assert_close(x.norm("nuc", dim), leafgrad.linalg.matrix_norm(x, "nuc", dim))
    assert leafgrad.norm(x[0], "nuc", keepdim=True).shape == (1, 1)
    with pytest.raises(RuntimeError, match="dim must be a 2-tuple"):
        leafgrad.norm(x, "nuc")
