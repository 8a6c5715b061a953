"""``SyncBatchNorm`` over ranks with batches of different sizes is batch norm of all of them together."""

from __future__ import annotations

import pytest

CODE = """
    from leafgrad.distributed import functional

    whole = lg.randn(7, 3, 4, dtype=lg.float64, generator=lg.Generator().manual_seed(1))
    seed = lg.randn(7, 3, 4, dtype=lg.float64, generator=lg.Generator().manual_seed(2))
    mine = slice(0, 2) if rank == 0 else slice(2, 7)
    momentum = None if len(sys.argv) > 1 else 0.1
    alone = nn.BatchNorm1d(3, momentum=momentum).double()
    both = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3, momentum=momentum)))[0].double()
    for layer in (alone, both):
        with lg.no_grad():
            layer.weight.copy_(lg.tensor([1.0, 2.0, -1.0]))
    for _ in range(2):
        x, part = whole.clone().requires_grad_(), whole[mine].clone().requires_grad_()
        y, z = alone(x), both(part)
        (y * y * seed).sum().backward()
        (z * z * seed[mine]).sum().backward()
        lg.testing.assert_close(z, y[mine])
        lg.testing.assert_close(part.grad, x.grad[mine])
    lg.testing.assert_close(both.running_mean, alone.running_mean)
    lg.testing.assert_close(both.running_var, alone.running_var)
    for a, b in zip(alone.parameters(), both.parameters(), strict=True):
        lg.testing.assert_close(functional.all_reduce(b.grad), a.grad)
    lg.testing.assert_close(both.eval()(part), alone.eval()(part))
    print("same\\n", end="", flush=True)
"""


@pytest.mark.slow
def test_two_ranks_are_one_batch(ranks):
    assert ranks(CODE).stdout.split() == ["same"] * 2
    assert ranks(CODE.replace("len(sys.argv) > 1", "True")).stdout.split() == ["same"] * 2
