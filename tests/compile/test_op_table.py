"""Every row of the op table compiled: predicted shapes, and results, two derivatives and a batch by each executor."""

from __future__ import annotations

import pytest
from rows import ROWS

from leafgrad.testing import check_op

# These have no batch: the shape of what they give depends on values, or they run sample by sample.
BATCHLESS = {"argwhere", "runs", "unique", "rnn", "gru", "lstm"}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_trace_states_the_shapes_and_dtypes_that_ops_give(row):
    for dtype in row.dtypes:
        check_op(row.op, row.draw(dtype), dtypes=(), checks="shapes")


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_compiled_equals_eager(row):
    check_op(row.op, row.draw(row.dtypes[0]), None, row.order, dtypes=(), executors=["numpy", "replay"],
             checks="compile")  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_batch_in_chunks_equals_eager(row):
    report = check_op(row.op, row.draw(row.dtypes[0]), None, row.order, dtypes=(), executors=["numpy"], checks="chunks")
    (result,) = report.results
    assert result.outcome == ("skipped" if str(row) in BATCHLESS else "passed"), result.reason
