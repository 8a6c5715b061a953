"""Leaves, backward and grad. The fixture ``t`` is leafgrad, and PyTorch where it is installed."""

from __future__ import annotations

import threading
import warnings

import pytest

import leafgrad
from leafgrad.ops import dispatch

TESTS = "modes ops.pull"


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def backward_with_graph(output, gradient=None):
    """``backward(create_graph=True)`` without its warning, which PyTorch gives once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        output.backward(gradient, create_graph=True)


# ---- leaves -----------------------------------------------------------------------------------------------------


def test_who_is_a_leaf(t):
    a = leaf(t, 3.0)
    c = t.tensor([5.0], dtype=t.float64)
    b, d = a * a, c * c
    assert (a.requires_grad, a.is_leaf, a.grad_fn) == (True, True, None)
    assert (b.requires_grad, b.is_leaf) == (True, False)
    assert (c.requires_grad, c.is_leaf) == (False, True)
    assert (d.requires_grad, d.is_leaf, d.grad_fn) == (False, True, None)


def test_requires_grad_can_be_set_on_a_leaf_and_returns_it(t):
    a = t.tensor([1.0])
    assert a.requires_grad_() is a
    assert a.requires_grad
    assert not a.requires_grad_(False).requires_grad
    a.requires_grad = True
    assert a.requires_grad


def test_requires_grad_of_a_non_leaf_cannot_be_taken_away(t):
    b = leaf(t, 1.0) * 2
    assert b.requires_grad_() is b
    for value in (True, False):
        with pytest.raises(RuntimeError, match="can only change requires_grad flags of leaf variables"):
            b.requires_grad = value


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_only_floating_tensors_require_grad(t, dtype):
    with pytest.raises(RuntimeError, match="floating point"):
        t.tensor([1, 0], dtype=getattr(t, dtype)).requires_grad_()


def test_an_integer_result_does_not_require_grad(t):
    assert not leaf(t, 1.5).to(t.int64).requires_grad
    assert not (leaf(t, 1.5) > 1).requires_grad


def test_detach_shares_memory_and_has_no_history(t):
    a = leaf(t, 1.0, 2.0)
    b = a.detach()
    assert (b.requires_grad, b.is_leaf) == (False, True)
    b[0] = 5.0
    assert a.tolist() == [5.0, 2.0]


def test_clone_has_memory_of_its_own_and_passes_gradients(t):
    a = leaf(t, 1.0, 2.0)
    b = a.clone()
    assert not b.is_leaf
    with t.no_grad():
        b[0] = 5.0
    assert a.tolist() == [1.0, 2.0]
    a.clone().sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]


def test_detach_in_place_makes_a_leaf(t):
    b = leaf(t, 1.0) * 2
    assert b.detach_() is b
    assert (b.is_leaf, b.requires_grad, b.grad_fn) == (True, False, None)


def test_detach_in_place_of_a_view_is_refused(t):
    with pytest.raises(RuntimeError, match=r"[vV]iew"):
        (leaf(t, 1.0, 2.0) * 2)[0].detach_()


def test_a_conversion_is_an_operation(t):
    a = t.tensor([1.0, 2.0], requires_grad=True)
    b = a.to(t.float64)
    assert not b.is_leaf
    (b * b).sum().backward()
    assert a.grad.dtype is t.float32
    assert a.grad.tolist() == [2.0, 4.0]


def test_data_is_outside_the_graph(t):
    a = leaf(t, 1.0, 2.0)
    assert not a.data.requires_grad
    a.data = t.tensor([3.0, 4.0], dtype=t.float64)
    assert a.tolist() == [3.0, 4.0]
    assert a.requires_grad


# ---- grad -------------------------------------------------------------------------------------------------------


def test_grad_is_none_at_first_and_then_a_leaf_without_history(t):
    a = leaf(t, 3.0)
    assert a.grad is None
    (a * a).backward()
    g = a.grad
    assert isinstance(g, t.Tensor)
    assert (g.requires_grad, g.is_leaf, g.retains_grad) == (False, True, False)


def test_gradients_accumulate_into_the_same_tensor(t):
    a = leaf(t, 3.0)
    (a * a).backward()
    first = a.grad
    (a * a).backward()
    assert a.grad is first
    assert a.grad.tolist() == [12.0]


def test_grad_can_be_assigned_and_cleared(t):
    a = leaf(t, 3.0)
    a.grad = t.tensor([1.0], dtype=t.float64)
    (a * a).backward()
    assert a.grad.tolist() == [7.0]
    a.grad = None
    assert a.grad is None


@pytest.mark.parametrize("wrong", ["shape", "dtype"])
def test_a_wrong_grad_is_refused(t, wrong):
    value = t.ones(2, dtype=t.float64) if wrong == "shape" else t.ones(1, dtype=t.float32)
    with pytest.raises(RuntimeError, match="grad"):
        leaf(t, 3.0).grad = value


def test_grad_that_is_no_tensor_is_refused(t):
    with pytest.raises(TypeError, match="grad"):
        leaf(t, 3.0).grad = 1.0


@pytest.mark.parametrize("error", [MemoryError("no memory"), KeyboardInterrupt()], ids=["memory", "signal"])
@pytest.mark.parametrize("step", ["copied", "as_leaf"])
def test_a_gradient_that_cannot_be_kept_is_none(monkeypatch, step, error):
    def ends(*_):
        raise error

    x = leafgrad.ones(3, requires_grad=True)
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, step, ends)
        with pytest.raises(type(error)) as caught:
            x.sum().backward()
    assert x.grad is None
    assert isinstance(error, KeyboardInterrupt) or "AccumulateGrad(g: float32 (3,)): no memory" in str(caught.value)
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_gradients_do_not_share_memory(t):
    a, b, seed = leaf(t, 1.0, 2.0), leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64)
    (a + b).backward(seed)
    with t.no_grad():
        a.grad.mul_(0)
    assert b.grad.tolist() == [1.0, 1.0]
    assert seed.tolist() == [1.0, 1.0]


def test_recorded_gradients_do_not_share_memory(t):
    a, b, seed = leaf(t, 1.0, 2.0), leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64)
    backward_with_graph(a + b, seed)
    with t.no_grad():
        a.grad.mul_(0)
    assert b.grad.tolist() == [1.0, 1.0]
    assert seed.tolist() == [1.0, 1.0]


def test_a_leaf_may_call_backward(t):
    a = t.tensor(2.0, requires_grad=True)
    a.backward()
    assert a.grad.item() == 1.0


def test_broadcast_arguments_get_gradients_of_their_own_shape(t):
    a, b, c = t.ones(3, 1, requires_grad=True), t.ones(4, requires_grad=True), t.tensor(2.0, requires_grad=True)
    (a * b * c).sum().backward()
    assert [tuple(x.grad.shape) for x in (a, b, c)] == [(3, 1), (4,), ()]
    assert a.grad.tolist() == [[8.0]] * 3
    assert c.grad.item() == 12.0


def test_a_tensor_used_twice_sums_both_gradients(t):
    a = leaf(t, 3.0)
    b = a * a
    (b * b + b).backward()
    assert a.grad.tolist() == [4 * 27.0 + 6.0]


def test_graphs_of_many_shapes_are_summed_where_they_meet(t):
    a = leaf(t, 1.0, 2.0)
    total = a.sum()
    for k in range(5):
        total = total + (a * k).sum()
    total.backward()
    assert a.grad.tolist() == [11.0, 11.0]


# ---- backward ---------------------------------------------------------------------------------------------------


def test_backward_of_several_outputs(t):
    a = leaf(t, 1.0, 2.0)
    t.autograd.backward([(a * a).sum(), a * 3], [None, t.tensor([1.0, 10.0], dtype=t.float64)])
    assert a.grad.tolist() == [5.0, 34.0]


def test_backward_into_chosen_inputs_only(t):
    a, b = leaf(t, 2.0), leaf(t, 3.0)
    mid = a * b
    (mid * mid).backward(inputs=[a])
    assert a.grad.tolist() == [36.0]
    assert b.grad is None


def test_backward_into_a_non_leaf(t):
    a = leaf(t, 2.0)
    b = a * 3
    for expected in (12.0, 24.0):
        (b * b).backward(inputs=[b], retain_graph=True)
        assert b.grad.tolist() == [expected]
    assert b.retains_grad
    assert a.grad is None


def test_backward_with_empty_inputs_is_refused(t):
    with pytest.raises(RuntimeError, match="cannot be empty"):
        leaf(t, 2.0).backward(inputs=[])


def test_backward_of_a_vector_needs_a_gradient(t):
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (leaf(t, 1.0, 2.0) * 2).backward()


def test_the_gradient_must_have_the_output_s_shape(t):
    with pytest.raises(RuntimeError, match=r"[Mm]ismatch in shape"):
        (leaf(t, 1.0, 2.0) * 2).backward(t.ones(3, dtype=t.float64))


def test_the_gradient_is_converted_to_the_output_s_dtype(t):
    a = leaf(t, 1.0, 2.0)
    (g,) = t.autograd.grad(a * 2, a, t.ones(2))
    assert (g.dtype, g.tolist()) == (t.float64, [2.0, 2.0])


def test_gradients_must_be_tensors_one_for_each_output(t):
    a = leaf(t, 1.0)
    for wrong in (2.0, "two"):
        with pytest.raises((TypeError, RuntimeError)):
            (a * 2).backward(wrong)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        t.autograd.grad((a, a), a, (None,))


def test_backward_without_history_is_refused(t):
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        t.tensor([1.0]).backward()


def test_a_second_backward_is_refused_where_something_saved_was_freed(t):
    b = leaf(t, 3.0).exp()
    b.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        b.backward()


def test_a_second_backward_runs_where_nothing_was_saved(t):
    a = leaf(t, 1.0, 2.0)
    b = (a + 1).sum()
    b.backward()
    b.backward()
    assert a.grad.tolist() == [2.0, 2.0]


def test_retain_graph_keeps_what_was_saved(t):
    a = leaf(t, 3.0)
    b = a * a
    for expected in (6.0, 12.0, 18.0):
        b.backward(retain_graph=expected < 18)
        assert a.grad.tolist() == [expected]


def test_backward_with_create_graph_retains_the_graph(t):
    a = leaf(t, 5.0)
    b = a * a
    b.retain_grad()
    backward_with_graph(b)
    assert a.grad.requires_grad
    assert not a.grad.is_leaf
    assert not b.grad.requires_grad
    assert t.autograd.grad(a.grad, a)[0].tolist() == [2.0]
    a.grad = None


def test_backward_with_create_graph_warns_of_a_cycle():
    a = leaf(leafgrad, 5.0)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        (a * a).backward(create_graph=True)


# ---- autograd.grad ----------------------------------------------------------------------------------------------


def test_grad_returns_a_tuple_and_touches_no_grad(t):
    a, b = leaf(t, 2.0), leaf(t, 3.0)
    assert [g.tolist() for g in t.autograd.grad(a * a * b, (a, b))] == [[12.0], [4.0]]
    assert a.grad is None


def test_grad_with_respect_to_an_intermediate_tensor(t):
    a = leaf(t, 2.0)
    b = a * a
    gb, ga = t.autograd.grad(b * b, (b, a))
    assert (gb.item(), ga.item()) == (8.0, 32.0)


def test_grad_of_the_output_itself(t):
    a = leaf(t, 2.0)
    b = a * a
    assert [g.item() for g in t.autograd.grad(b, (b, a))] == [1.0, 4.0]


def test_grad_sums_over_outputs(t):
    a = leaf(t, 2.0)
    assert t.autograd.grad([a * a, a * 3], a)[0].item() == 7.0
    assert t.autograd.grad([a * a, a * 3], a, [t.tensor([2.0], dtype=t.float64), None])[0].item() == 11.0


def test_derivatives_of_derivatives(t):
    a = leaf(t, 3.0)
    g = a * a * a * a
    values = []
    for _ in range(4):
        (g,) = t.autograd.grad(g, a, create_graph=True)
        values.append(g.item())
    assert values == [108.0, 108.0, 72.0, 24.0]


def test_a_linear_function_s_gradient_does_not_require_grad(t):
    a = leaf(t, 3.0)
    (g,) = t.autograd.grad(a * 2, a, create_graph=True)
    assert not g.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        t.autograd.grad(g, a)


def test_an_unused_input(t):
    a, b = leaf(t, 2.0), leaf(t, 3.0, 4.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        t.autograd.grad(a * a, (a, b))
    assert t.autograd.grad(a * a, (a, b), allow_unused=True)[1] is None
    assert t.autograd.grad(a * a, (a, b), materialize_grads=True)[1].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="materialize_grads"):
        t.autograd.grad(a * a, (a, b), allow_unused=False, materialize_grads=True)


def test_grad_with_respect_to_what_does_not_require_grad(t):
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        t.autograd.grad(leaf(t, 2.0) * 2, t.ones(1))


def test_grad_needs_inputs_and_outputs_that_are_tensors(t):
    with pytest.raises(RuntimeError, match="cannot be empty"):
        t.autograd.grad(leaf(t, 2.0) * 2, ())
    with pytest.raises((TypeError, AttributeError, RuntimeError)):
        t.autograd.grad(2.0, leaf(t, 2.0))


def test_grad_frees_the_graph_by_default(t):
    a = leaf(t, 2.0)
    b = a.exp()
    t.autograd.grad(b, a, retain_graph=True)
    t.autograd.grad(b, a)
    with pytest.raises(RuntimeError, match="second time"):
        t.autograd.grad(b, a)


def test_grad_visits_only_what_lies_between(t):
    a, b = leaf(t, 2.0), leaf(t, 3.0)
    seen = []
    b.register_hook(seen.append)
    t.autograd.grad(a * b, a)
    assert seen == []


# ---- modes ------------------------------------------------------------------------------------------------------


def test_no_grad_and_enable_grad_nest(t):
    a = leaf(t, 1.0)
    with t.no_grad():
        assert not t.is_grad_enabled()
        b = a * 2
        with t.enable_grad():
            c = a * 2
    assert t.is_grad_enabled()
    assert (b.requires_grad, c.requires_grad) == (False, True)


def test_modes_decorate_functions(t):
    a = leaf(t, 1.0)

    @t.no_grad()
    def off(x):
        """Doubles."""
        return x * 2

    @t.enable_grad()
    def on(x):
        return x * 2

    assert (off.__name__, off.__doc__) == ("off", "Doubles.")
    assert not off(a).requires_grad
    with t.no_grad():
        assert on(a).requires_grad


def test_the_mode_is_restored_after_an_error(t):
    def fail():
        with t.no_grad():
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert t.is_grad_enabled()


def test_set_grad_enabled_as_a_function_and_as_a_context(t):
    a = leaf(t, 1.0)
    t.set_grad_enabled(False)
    assert not (a * 2).requires_grad
    t.set_grad_enabled(True)
    with t.set_grad_enabled(False):
        assert not t.is_grad_enabled()
    assert t.is_grad_enabled()


def test_inference_tensors_stay_out_of_graphs(t):
    a = leaf(t, 1.0)
    with t.inference_mode():
        assert t.is_inference_mode_enabled()
        b = t.ones(1, dtype=t.float64) * 2
        assert not (a * 2).requires_grad
        assert not a.detach().is_inference()
    assert b.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        a * b
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        b.add_(1)
    assert (a * b.clone()).requires_grad


def test_each_thread_has_a_mode_of_its_own(t):
    seen = {}

    def look():
        seen["fresh"] = t.is_grad_enabled()
        with t.no_grad():
            entered.set()
            left.wait(5)

    entered, left = threading.Event(), threading.Event()
    with t.no_grad():
        thread = threading.Thread(target=look)
        thread.start()
        entered.wait(5)
    seen["here"] = t.is_grad_enabled()
    left.set()
    thread.join()
    assert seen == {"fresh": True, "here": True}


def test_threads_differentiate_graphs_of_their_own(t):
    results = [None] * 4

    def work(i):
        x = leaf(t, float(i))
        for _ in range(50):
            (g,) = t.autograd.grad((x * x).sum(), x)
        results[i] = g.item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0.0, 2.0, 4.0, 6.0]


def test_a_long_chain_runs_and_is_freed(t):
    a = leaf(t, 1.0)
    b = a
    for _ in range(20_000):
        b = b + 0.0
    b.backward()
    assert a.grad.tolist() == [1.0]
    del b


@pytest.mark.parametrize("mode", [leafgrad.no_grad(), leafgrad.no_grad, leafgrad.inference_mode()])
def test_a_decorated_generator_runs_in_the_mode_and_leaves_its_caller_alone(mode):
    @mode
    def generate(first):
        got = yield first, leafgrad.is_grad_enabled()
        try:
            yield got, leafgrad.is_grad_enabled()
        except KeyError:
            yield "caught", leafgrad.is_grad_enabled()
        return "end"

    running = generate(1)
    assert next(running) == (1, False)
    assert leafgrad.is_grad_enabled()
    assert running.send(2) == (2, False)
    assert running.throw(KeyError()) == ("caught", False)
    assert leafgrad.is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        next(running)
    assert end.value.value == "end"


def test_closing_a_decorated_generator_closes_it():
    closed = []

    @leafgrad.no_grad()
    def generate():
        try:
            yield 1
        finally:
            closed.append(leafgrad.is_grad_enabled())

    running = generate()
    next(running)
    running.close()
    assert closed == [False]
    assert leafgrad.is_grad_enabled()


def test_what_errors_of_misuse_say():
    x = leafgrad.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"gradient of size '\[2\]' to a tensor of size '\[3\]'"):
        x.grad = leafgrad.ones(2)
    with pytest.raises(RuntimeError, match=r"gradient of dtype 'leafgrad\.float64' to a tensor of dtype"):
        x.grad = leafgrad.ones(3, dtype=leafgrad.float64)
    with pytest.raises(TypeError, match="expected to be a Tensor or None but got grad of type int"):
        x.grad = 3
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
        y.backward()
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad)
    with pytest.raises(RuntimeError, match=r"expected it to return None, .* got Tensor"):
        (2 * x).sum().backward()


def test_zeros_of_a_recorded_pass_require_grad(t):
    a, b = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    _, zeros = t.autograd.grad((a * a).sum(), (a, b), create_graph=True, materialize_grads=True)
    assert zeros.requires_grad
    assert t.autograd.grad(zeros.sum(), b, materialize_grads=True)[0].tolist() == [0.0, 0.0]
    assert not t.autograd.grad((a * a).sum(), (a, b), materialize_grads=True)[1].requires_grad
