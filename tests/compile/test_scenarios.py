"""A compiled function does at every call what the eager function does, or raises an error that names the line."""

from __future__ import annotations

import importlib.util
import shutil

import pytest
from compile.scenarios import ROWS, check

TESTS = "compile.record.* compile.run.*"

NATIVE = importlib.util.find_spec("leafgrad_native") is not None and shutil.which("cc") is not None
ONCE = ("before the third call",)
SOON, LATE = ("soon",), ("late",)
LEAVES = [name for name in sorted(ROWS) if ROWS[name].leaves]
SHARE = 3  # of so many rows one is run with derivatives of its results; all of them both ways in the slow set
# Of the product a part, with each owner, way and change: the slow set has all of it.
PRODUCT = [name for name in sorted(ROWS) if ROWS[name].kind == "product"]
BY_DEFAULT = [name for name in sorted(ROWS) if name not in set(PRODUCT) - set(PRODUCT[::10])]
SERVED = ("arguments", "buffers", "networks", "numbers")  # of everyday: refusals are no answer to these
IN_C = """
arguments-shape arguments-one_tensor_in_two_places arrays-tensor_of_an_array buffers-batch_norm_keeps_statistics
buffers-dropout_in_training_and_evaluation effects-counter_in_an_attribute errors-exception_after_effects
gradients-one_of_several_is_differentiated gradients-result_differentiated_after_later_calls
groups-group_added_to_adam_late hooks-hook_of_a_parameter inplace-overlapping_slices inplace-two_arguments_that_overlap
kept-history_of_losses_as_numbers leaves-leaf_that_is_a_view_is_written_to networks-requires_grad_flipped
numbers-argument numbers-attribute numbers-minus_zero optimizers-learning_rate_of_adam optimizers-scheduler_outside
pinn-loss_weights_that_change pinn-points_drawn_by_leafgrad random-draws_outside_between_calls
results-view_of_an_argument values-branch_on_a_loss
""".split()


def served(row, refusals):
    return row.kind not in SERVED or not refusals


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_scenarios(name, record_property):
    refusals = check(ROWS[name], "numpy", SOON, derivatives=name in LEAVES[::SHARE])
    record_property("refused", refusals)
    assert served(ROWS[name], refusals), refusals


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in sorted(ROWS) if ROWS[name].kind in SERVED])
def test_by_replay(name):
    refusals = check(ROWS[name], "replay", LATE)
    assert served(ROWS[name], refusals), refusals


@pytest.mark.slow
@pytest.mark.parametrize("name", LEAVES)
def test_derivatives_of_results(name):
    """Arguments require grad, and what each call returns is differentiated outside."""
    check(ROWS[name], "numpy", ONCE, derivatives=True)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["eager", "numpy", "replay"])
@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_schedule(name, executor):
    """Eager against eager shows that nothing but the compiler can make a row fail."""
    assert served(ROWS[name], check(ROWS[name], None if executor == "eager" else executor))


@pytest.mark.skipif(not NATIVE, reason="needs leafgrad-native and a C compiler")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in IN_C else pytest.mark.slow) for name in sorted(ROWS)]
)
def test_native(name, record_property):
    record_property("refused", check(ROWS[name], "native", ONCE))


def test_the_rows_for_c_are_there():
    assert set(IN_C) <= set(ROWS)
