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


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x, name: t.pow(**{name: 2, "exponent": x}),
        lambda t, x, name: t.float_power(**{name: 2, "exponent": x}),
        lambda t, x, name: t.xlogy(**{name: 2, "other": x}),
        lambda t, x, name: t.remainder(**{name: 2, "other": x}),
        lambda t, x, name: t.bitwise_and(**{name: 2, "other": x.long()}),
        lambda t, x, name: t.searchsorted(x[0], **{name: 2}).expand(1, 1),
        lambda t, x, name: t.bucketize(boundaries=x[0], **{name: 2}).expand(1, 1),
        lambda t, x, name: t.where(x > 2, **{name: 2, "other": x}),
    ],
)
def test_a_number_that_comes_first_is_self(t, call):
    x = t.arange(1.0, 13.0).reshape(3, 4)
    expected = call(leafgrad, leafgrad.arange(1.0, 13.0).reshape(3, 4), "input").tolist()
    assert call(t, x, "self").tolist() == [pytest.approx(row) for row in expected]


def test_names_of_places_to_split_at(t):
    x = t.arange(24.0).reshape(2, 4, 3)
    assert len(t.tensor_split(x, tensor_indices_or_sections=t.tensor(2))) == 2
    assert len(t.tensor_split(x, indices=(1, 2))) == len(x.tensor_split(sections=3)) == 3
    for split in (t.hsplit, lambda x, **given: x.hsplit(**given)):
        assert [p.shape[1] for p in split(x, sections=2)] == [2, 2]
        assert [p.shape[1] for p in split(x, indices=(1,))] == [1, 3]
    assert len(t.vsplit(x, sections=2)) == len(t.dsplit(x, indices=(1,))) == 2
    with pytest.raises(TypeError):
        x.hsplit(sections=2, indices=(1,))


def test_one_element_is_looked_for_among_others():
    x = leafgrad.tensor([1, 2])
    assert leafgrad.isin(element=2, test_elements=x).item()
    assert leafgrad.isin(elements=x, test_element=2).tolist() == [False, True]
