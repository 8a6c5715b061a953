"""One checkpoint for all ranks: stopped after the same step, resumed with the same bits."""

from __future__ import annotations

import pytest

CODE = """
    import os, signal
    from leafgrad.utils import Training

    net = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.3), nn.Tanh(), nn.Linear(4, 1))
    wrapped = DistributedDataParallel(net)
    optimizer = lg.optim.Adam(net.parameters())
    lg.manual_seed(7 + rank)
    stop, resume = int(sys.argv[1]) if len(sys.argv) > 1 else 0, len(sys.argv) > 2
    with Training("run", every=4, resume=resume, net=net, optimizer=optimizer) as training:
        for step in training.steps(10):
            optimizer.zero_grad()
            wrapped(lg.rand(6, 2)).square().mean().backward()
            optimizer.step()
            if step == stop and rank == 1:
                os.kill(os.getpid(), signal.SIGTERM)
    bits = lg.cat([p.detach().reshape(-1) for p in net.parameters()]).sum().item().hex()
    print(bits + "\\n", end="", flush=True)  # in one write, or lines of two ranks mix
"""


@pytest.mark.slow
def test_an_interrupt_of_one_rank(ranks, tmp_path):
    whole = ranks(CODE.replace("sys.argv", "['', '-1']").replace('"run"', '"whole"'))
    bits = set(whole.stdout.split())
    assert len(bits) == 1
    stopped = ranks(CODE.replace("sys.argv", "['', '5']"), status=143)
    assert "stopped by SIGTERM after 6 of 10 steps" in stopped.stderr
    assert stopped.stderr.count("stopped by") == 1
    resumed = ranks(CODE.replace("sys.argv", "['', '-1', 'resume']"))
    assert set(resumed.stdout.split()) == bits
    assert resumed.stderr.count("10/10") >= 1

    told = ranks(CODE.replace("sys.argv", "['', '-1', 'resume']"), 1, status=1).stderr
    assert "resume: expected 2 ranks, as in the checkpoint in run, got 1" in told


def test_ranks_that_find_different_steps(ranks):
    code = """
    from leafgrad.utils import Training
    net = nn.Linear(2, 1)
    for folder, count in (("a", 4), ("b", 6)):
        with Training(folder, every=100, net=net) as training:
            for _ in training.steps(count):
                pass
    Training("b" if rank else "a", every=100, resume=True, net=net)
    """
    assert "rank 1: Training(resume=True), from step 6" in ranks(code, status=1).stderr
