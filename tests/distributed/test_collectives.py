"""What collectives compute on two and three ranks, their gradients, and what ranks that disagree get."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import leafgrad as lg
import leafgrad.distributed as dist
from leafgrad.distributed import launcher, ops
from leafgrad.testing import check_op

TESTS = "backends.communicator distributed.functional distributed.process_group distributed.reduce_op"


def slow(*values):
    """Parameters like others, which need processes of their own, too."""
    return pytest.param(*values, marks=pytest.mark.slow)


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
    for dtype in (lg.complex64, lg.complex128):
        z = (lg.arange(4.0) + rank * 1j).to(dtype)
        assert reduced(dist.ReduceOp.SUM, z).equal((size * lg.arange(4.0) + total * 1j).to(dtype)), dtype
        assert reduced(dist.ReduceOp.AVG, z).equal((lg.arange(4.0) + total / size * 1j).to(dtype)), dtype
        assert reduced(dist.ReduceOp.SUM, z[1]).item() == size + total * 1j
        for op in (dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
            try:
                raise SystemExit(reduced(op, z))
            except ValueError as error:
                assert "on complex tensors" in str(error)
        y = z.clone().reshape(2, 2).T
        dist.broadcast(y, 1)
        assert y.equal((lg.arange(4.0) + 1j).to(dtype).reshape(2, 2).T)
        rows = [lg.empty(4, dtype=dtype) for _ in range(size)]
        dist.all_gather(rows, z)
        assert [row[0].item() for row in rows] == [i * 1j for i in range(size)]
        z.requires_grad_()
        all_sum = dist.functional.all_reduce(z * (rank + 1j))
        slope = lg.autograd.grad((all_sum.abs() ** 2).sum(), z)[0]
        assert lg.allclose(slope, size * 2 * all_sum.detach() * (rank - 1j)), slope
    assert reduced(dist.ReduceOp.MAX, lg.tensor([rank == 1, False])).tolist() == [True, False]
    for dtype in (lg.float16, lg.bfloat16, lg.float32):
        one = lg.tensor([float("nan") if rank == i else float(rank) for i in range(size)] + [1.0], dtype=dtype)
        for op in (dist.ReduceOp.MIN, dist.ReduceOp.MAX):
            assert reduced(op, one).isnan().tolist() == [True] * size + [False], (dtype, op)
    assert reduced(dist.ReduceOp.AVG, lg.tensor([6e4], dtype=lg.float16)).item() == lg.tensor(6e4).half().item()
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


@pytest.mark.parametrize("count", [3, pytest.param(2, marks=pytest.mark.slow)])
def test_values(ranks, count):
    assert ranks(VALUES, count).stdout.count("right") == count


CASES = {
    # One process has all inputs in a row each; each rank computes with its own row.
    "gradients are those of the sum over all ranks": """
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
    """,
    # Ranks whose parts differ in size, so that their programs do, still meet in the order of the calls.
    "order in compiled functions": """
    def f(x, y):
        unused = dist.functional.all_reduce(y.sum())
        a = dist.functional.all_reduce((x * x).sum())
        b = dist.functional.all_reduce(y.sin().sum(), dist.ReduceOp.MAX)
        c = dist.functional.all_reduce((x * x).sum())
        return (x * a).sum() + b * c
    for executor in ("numpy", "native"):
        compiled = lg.compile(f, executor=executor)
        for n in (1, 3000):
            x, y = lg.rand(n + 5000 * rank, 4, dtype=lg.float64), lg.rand(7 - rank, dtype=lg.float64)
            for _ in range(3):
                assert lg.allclose(compiled(x, y), f(x, y), rtol=1e-12)
    """,
    "ranks that disagree": """
    def refused(act, told):
        try:
            act()
        except (RuntimeError, ValueError) as error:
            assert told in str(error), error
        else:
            raise AssertionError("no error")
    def backward():
        w = lg.ones((), requires_grad=True)
        for _ in range(2):
            (dist.functional.all_reduce(w.detach() if rank else w) + w).backward()
    refused(
        lambda: dist.all_reduce(lg.zeros(2 + rank)),
        "rank 0: all_reduce(sum of float32 (2,)); rank 1: all_reduce(sum of float32 (3,))",
    )
    refused(lambda: dist.all_reduce(lg.zeros(2, dtype=[lg.float32, lg.int32][rank])), "int32 (2,)")
    refused(
        lambda: dist.all_reduce(lg.zeros(2)) if rank else dist.barrier(), "rank 0: barrier(); rank 1: all_reduce"
    )
    refused(lambda: dist.broadcast(lg.zeros(2), src=rank), "broadcast(from rank 1, float32 (2,))")
    refused(backward, "rank 0: all_reduce(gradient, sum of float32 ()); rank 1: all_reduce(sum of float32 ())")
    refused(
        lambda: dist.shard(lg.arange(5)),
        "shard: tensor: expected a multiple of 2 rows, one part for each rank, got 5",
    )
    """,
}


@pytest.fixture(scope="module")
def went_well(ranks_for_all):
    """Checks that a case went well on both of two ranks."""
    return ranks_for_all(CASES)


@pytest.mark.parametrize("name", CASES)
def test_on_two_ranks(went_well, name):
    went_well(name)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("dist.all_reduce(lg.zeros(2 + rank))", "rank 0: all_reduce(sum of float32 (2,)); rank 1: all_reduce(sum of"),
        slow("dist.barrier() if rank else None", "rank 0: the end of the program; rank 1: barrier()"),
        ("sys.exit() if rank else dist.barrier()", "rank 0: barrier(); rank 1: the end of the program"),
        slow(
            "raise KeyError('oh') if rank else dist.barrier()", "leafgrad: rank 1 of 2: ends by KeyError; all ranks are"
        ),
    ],
)
def test_ranks_that_disagree_all_end(ranks, code, told):
    process = ranks(code_of(code) if code.startswith(("sys", "raise")) else f"if True:\n    {code}", status=1)
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


@pytest.mark.parametrize("code", ["os._exit(0) if rank else dist.barrier()", slow("os._exit(0)")])
def test_a_rank_that_does_not_leave_is_no_success(ranks, code):
    process = ranks(f"import os; {code}", status=1)
    assert "os._exit(0) without destroy_process_group(); all ranks are stopped" in process.stderr


@pytest.mark.parametrize(
    ("code", "status"), [("raise KeyError('early')", 1), slow("sys.exit(7)", 7), ("os._exit(3)", 3), ("os._exit(0)", 1)]
)
def test_a_rank_that_ends_before_it_met_the_others_ends_all(code, status, launch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\nimport leafgrad.distributed as dist\n"
        f"if int(os.environ.get('PMI_RANK', os.environ.get('OMPI_COMM_WORLD_RANK', 0))) == 1:\n    {code}\n"
        "dist.init_process_group()\n"
    )
    done = launch(script)
    assert done.returncode == status
    assert "rank 1 ended without the others; all ranks are stopped" in done.stderr


@pytest.mark.parametrize(("code", "status"), [slow("sys.exit(5)", 5), ("sys.exit('no')", 1), ("sys.exit(300)", 44)])
def test_a_rank_that_ends_while_others_wait_gives_its_status(code, status, launch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport leafgrad.distributed as dist\ndist.init_process_group()\n"
        f"if dist.get_rank() == 1:\n    {code}\ndist.barrier()\n"
    )
    done = launch(script)
    assert done.returncode == status
    assert "rank 1: the end of the program, with exit status" in done.stderr


@pytest.mark.usefixtures("hangups")
@pytest.mark.parametrize("number", [signal.SIGINT, slow(signal.SIGTERM), signal.SIGHUP])
def test_signals_to_the_launcher_alone_reach_the_ranks(number, mpi, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, time\nimport leafgrad.distributed as dist\ndist.init_process_group()\n"
        "print(f'{os.getpid()}\\n', end='', flush=True)\ntime.sleep(100)\n"
    )
    command = [sys.executable, "-m", "leafgrad", "run", "--ranks", "2", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.send_signal(number)
        process.stdout.read()
        assert process.wait(30) != 0
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.every(2)
@pytest.mark.parametrize("said", [0, 6], ids=["nothing", "aborted"])
@pytest.mark.parametrize(
    ("code", "status"), [("if dist.get_rank(): dist.barrier()", 1), ("raise KeyboardInterrupt", 130)]
)
def test_a_rank_that_ends_all_gives_the_status_whatever_mpiexec_says(code, status, said, mpi, tmp_path, monkeypatch):
    script, forgetful = tmp_path / "script.py", tmp_path / "mpiexec"
    script.write_text(f"import leafgrad.distributed as dist\ndist.init_process_group()\n{code}\n")
    forgetful.write_text(f'#!/bin/sh\n{launcher.mpiexec()} "$@"\nexit {said}\n')
    forgetful.chmod(0o755)
    monkeypatch.setattr(launcher, "mpiexec", lambda: str(forgetful))
    assert launcher.run_ranks([sys.executable, str(script)], 2) == status


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
    with pytest.raises(TypeError, match="argument 'src' must be int, not float"):
        dist.broadcast(x, 0.0)
    with pytest.raises(ValueError, match="expected SUM for integers"):
        dist.all_reduce(lg.tensor([1]), dist.ReduceOp.AVG)
    with pytest.raises(ValueError, match=r"op: expected ReduceOp.SUM, .*, got 'SUM'"):
        dist.all_reduce(x.detach(), "SUM")
    for collective in (dist.all_reduce, dist.broadcast, dist.shard, dist.functional.all_gather):
        with pytest.raises(TypeError, match="argument 'tensor' must be Tensor, not ndarray"):
            collective(np.ones(2))
    for to in (lg.empty(1, 2), lg.empty(2, dtype=lg.int64)):
        with pytest.raises(ValueError, match=r"tensor_list\[0\]: expected leafgrad.float32 \(2,\), as tensor, got"):
            dist.all_gather([to], x)


def test_wrong_groups():
    assert not dist.is_available()
    with pytest.raises(ValueError, match="world_size: expected 1"):
        dist.init_process_group(world_size=2)
    with pytest.raises(ValueError, match="backend: expected 'mpi', got 'gloo'"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.get_rank()


def test_the_ops_by_the_kit(alone):
    x = np.random.default_rng(0).random((3, 2)) + 0.1
    check_op(ops.all_sum, [((x,), {"mean": False}), ((x,), {"mean": True})], executors=["numpy"]).require()
    check_op(ops.from_rank, [((x,), {"src": 0})], executors=["numpy"]).require()
    check_op(ops.all_stacked, [((x,), {})], executors=["numpy"]).require()
