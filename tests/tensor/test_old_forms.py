"""Orders of arguments of PyTorch's past, and other names: taken, with PyTorch's warning where it warns."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.tensor.old_forms import OLD_FORMS

A, V = leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]]), leafgrad.tensor([1.0, -2.0])
GIVEN = {
    "input": {"addmv": V + 1}, "mat": A, "vec": V, "vec1": V, "vec2": V, "mat1": A, "mat2": A + 1, "other": A,
    "tensor1": A, "tensor2": A + 2, "alpha": 3, "beta": 2, "value": 4, "batch1": A[None], "batch2": A[None] + 1,
}  # fmt: skip


def operand(name, part):
    if part != "input":
        return GIVEN[part]
    return A[None] if name == "baddbmm" else GIVEN["input"].get(name, A)


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, forms in OLD_FORMS.items() for form in forms])
def test_numbers_among_the_tensors(name, form):
    parts = form.split()
    given = {part: operand(name, part) for part in parts}
    numbers = {part: value for part, value in given.items() if not isinstance(value, leafgrad.Tensor)}
    tensors = [value for value in given.values() if isinstance(value, leafgrad.Tensor)]
    tensors.sort(key=lambda t: t is not given["input"])
    expected = getattr(leafgrad, name)(*tensors, **numbers)
    rest = [given[part] for part in parts if part != "input"]
    with pytest.warns(UserWarning, match="overload of .* is deprecated; pass .* by keyword"):
        assert getattr(leafgrad, name)(*given.values()).equal(expected)
    with pytest.warns(UserWarning, match="is deprecated"):
        assert getattr(given["input"], name)(*rest).equal(expected)
    target = given["input"].expand(expected.shape).clone()
    if hasattr(target, f"{name}_"):
        with pytest.warns(UserWarning, match="is deprecated"):
            assert getattr(target, f"{name}_")(*rest).equal(expected)


def test_gradients_flow_through_the_tensors():
    x, y = A.clone().requires_grad_(), (A + 1).requires_grad_()
    with pytest.warns(UserWarning, match="is deprecated"):
        x.clone().addcmul_(3, y, y).sum().backward()
    assert y.grad.equal(6 * y.detach())


def test_what_fits_no_form_is_refused():
    for call in (lambda: A.add(2, 3), lambda: A.addcmul(A, A, A), lambda: A.add(A, A, A), lambda: A.add(2, A, alpha=3)):
        with pytest.raises(TypeError, match="positional argument"):
            call()


def test_split_size_and_sizes_of_broadcasts():
    assert [len(part) for part in leafgrad.arange(5).split(split_size=2)] == [2, 2, 1]
    assert leafgrad.ones(1, 3).broadcast_to(2, 3).shape == (2, 3)
