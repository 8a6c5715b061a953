"""What collectives compute on two and three ranks, their gradients, and what ranks that disagree get."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad as lg
import leafgrad.distributed as dist
from leafgrad.distributed import ops
from leafgrad.testing import check_op

VALUES = """
    x = lg.arange(4.0) + rank
    def reduced(op, x=x):
        x = x.clone()
        assert dist.all_reduce(x, op) is None
        return x
    total = sum(range(size))
    assert reduced(dist.ReduceOp.SUM).equal(size * lg.arange(4.0) + total)
    assert reduced(dist.ReduceOp.AVG).equal(lg.arange(4.0) + total / size)
    assert reduced(dist.ReduceOp.MIN).equal(lg.arange(4.0))
    assert reduced(dist.ReduceOp.MAX).equal(lg.arange(4.0) + size - 1)
    assert reduced(dist.ReduceOp.PRODUCT)[1] == {2: 2, 3: 6}[size]
    for dtype in (lg.float16, lg.float64, lg.int8, lg.uint8, lg.int16, lg.int32, lg.int64):
        assert reduced(dist.ReduceOp.SUM, x.to(dtype)).equal((size * lg.arange(4.0) + total).to(dtype)), dtype
    assert reduced(dist.ReduceOp.MAX, lg.tensor([rank == 1, False])).tolist() == [True, False]
    turned = lg.arange(6.0).reshape(2, 3).T + rank
    assert reduced(dist.ReduceOp.MIN, turned).equal(lg.arange(6.0).reshape(2, 3).T)
    assert reduced(dist.ReduceOp.SUM, lg.zeros(0, 3)).shape == (0, 3)
    assert reduced(dist.ReduceOp.SUM, lg.tensor(1.0)).item() == size
    for src in range(size):
        y = lg.full((2, 2), float(rank))
        dist.broadcast(y, src)
        assert y.equal(lg.full((2, 2), float(src)))
    parts = [lg.empty(3, dtype=lg.int64) for _ in range(size)]
    dist.all_gather(parts, lg.arange(3) * rank)
    assert [p.tolist() for p in parts] == [[0, i, 2 * i] for i in range(size)]
    found, told = [None] * size, [rank, {"a": rank}]
    dist.all_gather_object(found, (rank, "x"))
    dist.broadcast_object_list(told, src=1)
    assert found == [(i, "x") for i in range(size)] and told == [1, {"a": 1}]
    assert dist.shard(lg.arange(6)).tolist() == list(range(6))[rank * 6 // size:(rank + 1) * 6 // size]
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    print("right", flush=True)
"""


@pytest.mark.parametrize("count", [2, 3])
def test_values(ranks, count):
    assert ranks(VALUES, count).stdout.count("right") == count


def test_gradients_are_those_of_the_sum_over_all_ranks(ranks):
    """One process has all inputs in a row each; each rank computes with its own row."""
    code = """
    lg.manual_seed(0)
    rows, weights = lg.randn(size, 3, dtype=lg.float64), lg.randn(size, 3, dtype=lg.float64)
    f = dist.functional
    cases = {
        "sum": (lambda x: f.all_reduce(x * x), lambda X: (X * X).sum(0, keepdim=True).expand(size, 3)),
        "avg": (lambda x: f.all_reduce(x.sin(), dist.ReduceOp.AVG), lambda X: X.sin().mean(0).expand(size, 3)),
        "broadcast": (lambda x: f.broadcast(x * x, 1), lambda X: (X[1] * X[1]).expand(size, 3)),
        "gather": (lambda x: f.all_gather(x * x).prod(0), lambda X: (X * X).prod(0).expand(size, 3)),
        "twice": (lambda x: f.all_reduce(f.all_reduce(x) * x), lambda X: (X.sum(0) * X).sum(0).expand(size, 3)),
    }
    for name, (own, together) in cases.items():
        x, X = rows[rank].clone().requires_grad_(), rows.clone().requires_grad_()
        g, = lg.autograd.grad((own(x) * weights[rank]).sum(), x, create_graph=True)
        G, = lg.autograd.grad((together(X) * weights).sum(), X, create_graph=True)
        assert lg.allclose(g, G[rank], rtol=1e-12), name
        h, = lg.autograd.grad((g * g * weights[rank]).sum(), x)
        H, = lg.autograd.grad((G * G * weights).sum(), X)
        assert lg.allclose(h, H[rank], rtol=1e-12), name
        print("right", flush=True)
    """
    assert ranks(code).stdout.count("right") == 10


def test_order_in_compiled_functions(ranks):
    """Ranks whose parts differ in size, so that their programs do, still meet in the order of the calls."""
    code = """
    def f(x, y):
        unused = dist.functional.all_reduce(y.sum())
        a = dist.functional.all_reduce((x * x).sum())
        b = dist.functional.all_reduce(y.sin().sum(), dist.ReduceOp.MAX)
        c = dist.functional.all_reduce((x * x).sum())
        return (x * a).sum() + b * c
    compiled = lg.compile(f)
    for n in (1, 200, 3000):
        x, y = lg.rand(n + 5000 * rank, 4, dtype=lg.float64), lg.rand(7 - rank, dtype=lg.float64)
        for _ in range(3):
            assert lg.allclose(compiled(x, y), f(x, y), rtol=1e-12)
    print("right", flush=True)
    """
    for executor in ("numpy", "native"):
        assert ranks(code, LEAFGRAD_EXECUTOR=executor).stdout.count("right") == 2


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("dist.all_reduce(lg.zeros(2 + rank))", "rank 0: all_reduce(sum of float32 (2,)); rank 1: all_reduce(sum of"),
        ("dist.all_reduce(lg.zeros(2, dtype=[lg.float32, lg.int32][rank]))", "int32 (2,)"),
        ("dist.all_reduce(lg.zeros(2)) if rank else dist.barrier()", "rank 0: barrier(); rank 1: all_reduce"),
        ("dist.broadcast(lg.zeros(2), src=rank)", "broadcast(from rank 1, float32 (2,))"),
        ("dist.barrier() if rank else None", "rank 0: the end of the program; rank 1: barrier()"),
        ("sys.exit(3) if rank else dist.barrier()", "rank 0: barrier(); rank 1: the end of the program"),
        ("raise KeyError('oh') if rank else dist.barrier()", "leafgrad: rank 1 of 2: ends by KeyError; all ranks are"),
    ],
)
def test_ranks_that_disagree_all_end(ranks, code, told):
    process = ranks(f"if True:\n    {code}" if code.startswith("dist") else code_of(code), status=1)
    assert told in process.stderr


def code_of(expression):
    """``a if b else c`` as statements, for ``raise`` is none."""
    first, _, rest = expression.partition(" if ")
    condition, _, other = rest.partition(" else ")
    return f"if {condition}:\n    {first}\nelse:\n    {other}\n"


def test_a_rank_that_is_killed_ends_all_and_is_named(ranks):
    process = ranks("import os; os.kill(os.getpid(), 9) if rank else dist.barrier()", status=9)
    assert "rank 1 of 2" in process.stderr
    assert "all ranks are stopped" in process.stderr


@pytest.fixture
def alone():
    dist.init_process_group()
    yield
    dist.destroy_process_group()


def test_a_process_alone_is_a_group(alone):
    x = lg.tensor([1.0, 2.0], requires_grad=True)
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "mpi")
    assert dist.functional.all_reduce(x).equal(x)
    assert dist.functional.all_gather(x).shape == (1, 2)
    assert dist.shard(x).equal(x)
    with pytest.raises(RuntimeError, match="twice"):
        dist.init_process_group()
    with pytest.raises(ValueError, match="src: expected a rank from 0 to 0, got 1"):
        dist.broadcast(x, 1)
    with pytest.raises(ValueError, match="expected SUM for integers"):
        dist.all_reduce(lg.tensor([1]), dist.ReduceOp.AVG)


def test_wrong_groups():
    assert not dist.is_available()
    with pytest.raises(ValueError, match="world_size: expected 1"):
        dist.init_process_group(world_size=2)
    with pytest.raises(ValueError, match="backend: expected 'mpi', got 'gloo'"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.get_rank()


def test_rows_that_cannot_be_divided(ranks):
    told = ranks("dist.shard(lg.arange(5))", status=1).stderr
    assert "shard: tensor: expected a multiple of 2 rows, one part for each rank, got 5" in told


def test_the_ops_by_the_kit(alone):
    x = np.random.default_rng(0).random((3, 2)) + 0.1
    check_op(ops.all_sum, [((x,), {"mean": False}), ((x,), {"mean": True})]).require()
    check_op(ops.from_rank, [((x,), {"src": 0})]).require()
    check_op(ops.all_stacked, [((x,), {})]).require()
