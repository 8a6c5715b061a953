"""Steps whose tensors are on a GPU, from eager's values to what is counted: graphs, copies, memory."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_steps import burgers, classifier, trained

import leafgrad
from leafgrad import backends, nn, optim
from leafgrad.nn import functional as F

pytestmark = pytest.mark.gpu
PLACE = "cuda:0"
OPTIMIZERS = [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Adadelta, optim.NAdam]


def agree(make, rtol=2e-4, **options):
    """A step as kernels, and op by op, on the GPU, gives what the processor's eager step gives."""
    want, _ = trained(make(**options), None)
    for executor in (None, "replay", "cuda"):
        got, run = trained(make(device=PLACE, **options), executor)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * np.abs(w).max(), err_msg=str(executor))
    return run


@pytest.mark.parametrize("rows", [64, 65, 333, 10_000])
def test_a_residual_of_second_order(rows):
    agree(burgers, rows=rows)


def test_in_float64():
    agree(burgers, dtype=leafgrad.float64, rtol=1e-9)


def test_wide_networks():
    agree(burgers, width=128, depth=3, rows=500, rtol=1e-3)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer):
    agree(classifier, optimizer=optimizer)


def test_the_same_bits_at_each_run():
    found = {tuple(a.tobytes() for a in trained(burgers(rows=3000, device=PLACE), "cuda", 20)[0]) for _ in range(4)}
    assert len(found) == 1


def test_dropout_draws_eagers_bits():
    net = nn.Sequential(nn.Linear(6, 40), nn.Dropout(0.4), nn.Tanh(), nn.Dropout(0.2), nn.Linear(40, 2)).to(PLACE)
    x = leafgrad.rand(70, 6).to(PLACE)
    run = leafgrad.compile(lambda x: net(x).tanh(), executor="cuda")
    with leafgrad.no_grad():
        leafgrad.manual_seed(3)
        want = [net(x).tanh().cpu().numpy() for _ in range(5)]
        leafgrad.manual_seed(3)
        for w in want:
            np.testing.assert_allclose(run(x).cpu().numpy(), w, rtol=1e-5, atol=1e-6)


def test_a_loop_reads_nothing_and_takes_no_memory():
    import cupy

    _, step, args = burgers(device=PLACE)
    run = leafgrad.compile(step, executor="cuda")
    for _ in range(5):
        run(*args)
    pool = cupy.get_default_memory_pool()
    leafgrad.cuda.synchronize()
    before = pool.total_bytes()
    for _ in range(50):
        run(*args)
    leafgrad.cuda.synchronize()
    assert pool.total_bytes() == before


def test_a_class_out_of_range_is_told_with_the_next_value():
    model, step, (x, y) = classifier(device=PLACE, optimizer=optim.Adam)
    wrong = y.cpu().clone()
    wrong[77] = 5
    run = leafgrad.compile(step, executor="cuda")
    for _ in range(3):
        run(x, y)
    before = [p.detach().cpu().numpy() for p in model.parameters()]
    run(x, wrong.to(PLACE))
    run(x, y)
    with pytest.raises(IndexError, match="class 5 is out of range for 5 classes"):
        next(iter(model.parameters())).detach().cpu()
    for p, old in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().cpu().numpy(), old)
    run(x, wrong.to(PLACE))
    with pytest.raises(IndexError, match="class 5"):
        leafgrad.cuda.synchronize()


def test_another_stream():
    model, step, args = burgers(device=PLACE)
    run = leafgrad.compile(step, executor="cuda")
    stream = leafgrad.cuda.Stream()
    for k in range(6):
        if k % 2:
            with leafgrad.cuda.stream(stream):
                run(*args)
            leafgrad.cuda.current_stream().wait_stream(stream)
        else:
            stream.wait_stream(leafgrad.cuda.current_stream())
            run(*args)
    want, _ = trained(burgers(), None, calls=6)
    for p, w in zip(model.parameters(), want[6:], strict=True):
        np.testing.assert_allclose(p.detach().cpu().numpy(), w, rtol=1e-3, atol=1e-4)


def test_without_memory_the_call_says_what_it_wanted():
    x = leafgrad.ones(1 << 20).to(PLACE)
    with pytest.raises(MemoryError):
        x.expand(1 << 20, 1 << 20).contiguous()
    assert float(x.sum()) == 1 << 20


def test_mixed_precision():
    net = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4)).to(PLACE)
    x, y = leafgrad.randn(128, 16).to(PLACE), leafgrad.randn(128, 4).to(PLACE)
    optimizer = optim.AdamW(net.parameters(), 1e-2)
    scaler = leafgrad.amp.GradScaler("cuda")

    def step(x, y):
        optimizer.zero_grad()
        with leafgrad.autocast("cuda", leafgrad.float16):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    run = leafgrad.compile(step)
    losses = [float(run(x, y)) for _ in range(30)]
    assert losses[-1] < 0.9 * losses[0]


def test_arrays_pass_without_a_copy():
    import cupy

    x = leafgrad.arange(6.0).to(PLACE)
    shared = cupy.from_dlpack(x)
    shared[0] = 7
    assert float(x[0]) == 7
    back = leafgrad.from_dlpack(cupy.ones(3, "float32"))
    assert str(back.device) == PLACE


def test_files_go_straight_to_the_device(tmp_path):
    state = {"w": leafgrad.rand(5, 3), "n": 3}
    leafgrad.save(state, tmp_path / "w.lg")
    found = leafgrad.load(tmp_path / "w.lg", map_location="cuda")
    assert str(found["w"].device) == PLACE
    np.testing.assert_array_equal(found["w"].cpu().numpy(), state["w"].numpy())


def test_pinned_batches():
    from leafgrad.utils.data import DataLoader, TensorDataset

    data = TensorDataset(leafgrad.rand(64, 3), leafgrad.arange(64))
    for x, y in DataLoader(data, batch_size=16, pin_memory=True):
        assert x.is_pinned()
        there = x.to(PLACE, non_blocking=True)
        np.testing.assert_array_equal(there.cpu().numpy(), x.numpy())
        assert y.to(PLACE, non_blocking=True).sum().item() == int(y.sum())


def test_memory_is_counted_and_events_tell_time():
    leafgrad.cuda.empty_cache()
    leafgrad.cuda.reset_peak_memory_stats()
    before = leafgrad.cuda.memory_allocated()
    x = leafgrad.zeros(1 << 20, device=PLACE)
    assert leafgrad.cuda.memory_allocated() - before >= 4 << 20
    del x
    assert leafgrad.cuda.max_memory_allocated() - before >= 4 << 20
    start, end = leafgrad.cuda.Event(enable_timing=True), leafgrad.cuda.Event(enable_timing=True)
    start.record()
    leafgrad.rand(1 << 20, device=PLACE).sum()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0


def test_kernels_are_timed():
    _, run = trained(burgers(device=PLACE), "cuda")
    text = str(run.explain())
    assert "measured" in text
    assert backends.by_device_type("cuda").name == "cupy"
