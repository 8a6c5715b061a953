"""Every row of the op table compiled: predicted shapes, and results, two derivatives and a batch by each executor."""

from __future__ import annotations

import pytest
from rows import ROWS

from leafgrad.testing import check_op

TESTS = "compile.ir.replay"

# These have no batch: the shape of what they give depends on values, or they run sample by sample.
BATCHLESS = {"argwhere", "ldl_solve", "runs", "unique", "rnn", "gru", "lstm"}

# All elementwise ops go through chunks by one rule, others by those of their traits or of the ops that they become;
# some of each kind stand for it beside those with a rule of their own. The slow set has all.
ELEMENTWISE = [row for row in ROWS if "elementwise" in getattr(row.op, "traits", ())]
OWN = [row for row in ROWS if not getattr(row.op, "origins", {}).get("chunk", "trait ").startswith("trait ")]
OTHERS = [row for row in ROWS if row not in ELEMENTWISE and row not in OWN]
CHUNKED = [row for row in ROWS if row in OWN or row in ELEMENTWISE[::8] or row in OTHERS[::2]]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_trace_states_the_shapes_and_dtypes_that_ops_give(row):
    samples = [sample for dtype in row.dtypes for sample in row.draw(dtype)]  # in one trace
    check_op(row.op, samples, dtypes=(), checks="shapes")


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_program_equals_eager(row):
    compare(row, row.few(row.dtypes[0]), [])


@pytest.mark.every(8)
@pytest.mark.parametrize("executor", ["numpy", "replay"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_compiled_equals_eager(row, executor):
    """The same program, behind guards and called several times, on all samples."""
    compare(row, row.draw(row.dtypes[0]), [executor])


def compare(row, samples, executors):
    check_op(row.op, samples, None, row.order, dtypes=(), executors=executors, checks="compile")


@pytest.mark.every(2)
@pytest.mark.parametrize("row", CHUNKED, ids=str)
def test_a_batch_in_chunks_equals_eager(row):
    chunks(row, row.few(row.dtypes[0]), [])


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_each_sample_as_a_batch_that_is_compiled_equals_eager(row):
    chunks(row, row.draw(row.dtypes[0]), ["numpy"])


def chunks(row, samples, executors):
    """Part of a batch at a time, by the program itself; and in compiled steps, where executors are given."""
    report = check_op(row.op, samples, None, row.order, dtypes=(), executors=executors, checks="chunks")
    (result,) = report.results
    assert result.outcome == ("skipped" if str(row) in BATCHLESS else "passed"), result.reason
