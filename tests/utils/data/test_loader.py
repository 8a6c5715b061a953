"""DataLoader: batches, orders and seeds, workers and how they fail. Those that PyTorch shares run on it too."""

from __future__ import annotations

import importlib
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import leafgrad
from leafgrad.backends import by_device_type
from leafgrad.testing import fake
from leafgrad.utils import data
from leafgrad.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate, get_worker_info

pytestmark = pytest.mark.usefixtures("forks")
TESTS = "utils.data.fetch utils.data.transport utils.data.worker utils.data.workers"


@pytest.fixture
def d(t):
    """``utils.data`` of leafgrad, and of PyTorch where it is installed."""
    return importlib.import_module(f"{t.__name__}.utils.data")


def lists(loader):
    return [batch.tolist() for batch in loader]


class Numbers(Dataset):
    """0, 1, 2, …; ``act`` is called for each index first."""

    def __init__(self, count=8, act=None):
        self.count, self.act = count, act

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.act is not None:
            self.act(index)
        return index


class Stream(IterableDataset):
    """Each worker's own numbers."""

    def __iter__(self):
        info = get_worker_info()
        first = 10 * info.id if info else 0
        yield from range(first, first + 3 + (info.id if info else 0))


# ---- in one process -------------------------------------------------------------------------------------------------


def test_batches(d):
    loader = d.DataLoader(range(5), batch_size=2)
    assert lists(loader) == lists(loader) == [[0, 1], [2, 3], [4]]
    assert len(loader) == 3
    assert lists(d.DataLoader(range(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert lists(d.DataLoader(range(3))) == [[0], [1], [2]]
    assert list(d.DataLoader([], batch_size=2)) == []


def test_no_batches(t, d):
    loader = d.DataLoader(d.TensorDataset(t.arange(3)), batch_size=None)
    assert [sample[0].tolist() for sample in loader] == [0, 1, 2]
    assert (len(loader), loader.batch_sampler) == (3, None)
    assert next(iter(d.DataLoader([np.float32(1)], batch_size=None))).dtype is t.float32
    assert list(d.DataLoader([1, "a"], batch_size=None)) == [1, "a"]


def test_samplers_and_collate(d):
    assert lists(d.DataLoader(range(5), batch_size=2, sampler=[4, 0, 2])) == [[4, 0], [2]]
    assert lists(d.DataLoader(range(5), batch_sampler=[[4], [0, 2, 1]])) == [[4], [0, 2, 1]]
    assert list(d.DataLoader(range(4), batch_size=2, collate_fn=sum)) == [1, 5]
    shuffled = [i for batch in lists(d.DataLoader(range(50), batch_size=8, shuffle=True)) for i in batch]
    assert sorted(shuffled) == list(range(50)) != shuffled


def test_streams(d):
    class Three(d.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    assert lists(d.DataLoader(Three(), batch_size=2)) == [[0, 1], [2]]
    assert lists(d.DataLoader(Three(), batch_size=2, drop_last=True)) == [[0, 1]]
    assert list(d.DataLoader(Three(), batch_size=None)) == [0, 1, 2]
    with pytest.raises(TypeError, match="has no len"):
        len(d.DataLoader(Three()))
    Three.__len__ = lambda self: 3
    assert [len(d.DataLoader(Three(), batch_size=2, drop_last=drop)) for drop in (False, True)] == [2, 1]


@pytest.mark.parametrize("order", ["rows", "split", "own"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_tensors_gathered_at_once_are_those_collated_one_by_one(order, requires_grad):
    x = leafgrad.arange(24.0).reshape(6, 4).requires_grad_(requires_grad)
    dataset = TensorDataset(x, leafgrad.arange(6))
    if order == "split":
        dataset = data.Subset(data.Subset(dataset, [5, 3, 1, 0]), [2, 0, 3])
    sampler = [leafgrad.tensor(1), 0, -1] if order == "own" else None
    gathered = list(DataLoader(dataset, batch_size=2, sampler=sampler))
    one_by_one = list(DataLoader(dataset, batch_size=2, sampler=sampler, collate_fn=lambda b: data.default_collate(b)))
    assert [[part.tolist() for part in batch] for batch in gathered] == [
        [part.tolist() for part in batch] for batch in one_by_one
    ]
    assert all(type(batch) is list and batch[0].requires_grad is requires_grad for batch in gathered)
    with pytest.raises(IndexError):
        list(DataLoader(TensorDataset(x), batch_size=2, sampler=[0, 6]))


def test_a_subclass_of_tensor_dataset_decides_about_its_samples():
    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return tuple(2 * part for part in super().__getitem__(index))

    assert next(iter(DataLoader(Doubled(leafgrad.arange(3)), batch_size=3)))[0].tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ValueError, {"batch_size": 0}),
        (ValueError, {"batch_size": "a"}),
        (ValueError, {"num_workers": -1}),
        (ValueError, {"timeout": -1}),
        (ValueError, {"prefetch_factor": 2}),
        (ValueError, {"num_workers": 1, "prefetch_factor": -2}),
        (ValueError, {"persistent_workers": True}),
        (ValueError, {"shuffle": True, "sampler": [1]}),
        (ValueError, {"batch_size": 2, "batch_sampler": [[1]]}),
        (ValueError, {"drop_last": True, "batch_sampler": [[1]]}),
        (ValueError, {"batch_size": None, "drop_last": True}),
        (ValueError, {"multiprocessing_context": "fork"}),
        (ValueError, {"multiprocessing_context": "foo", "num_workers": 1}),
        (TypeError, {"multiprocessing_context": 3, "num_workers": 1}),
    ],
)
def test_options_that_are_refused(d, error, options):
    with pytest.raises(error):
        d.DataLoader(range(4), **options)


@pytest.mark.parametrize("option", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_streams_have_no_order(d, option):
    class Empty(d.IterableDataset):
        def __iter__(self):
            return iter(())

    with pytest.raises(ValueError, match="with IterableDataset: expected unspecified"):
        d.DataLoader(Empty(), **option)
    d.DataLoader(Empty(), shuffle=False)


@pytest.mark.parametrize("name", ["batch_size", "dataset", "sampler", "batch_sampler", "drop_last"])
def test_attributes_that_stay(d, name):
    loader = d.DataLoader(range(4))
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
        setattr(loader, name, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": iter("ab")}, r"dataset: expected a Dataset, .*; make an iterator an IterableDataset"),
        ({"sampler": 3}, "sampler: expected a Sampler or another iterable, got int"),
        ({"collate_fn": 3}, "collate_fn: expected a function, got int"),
        ({"worker_init_fn": 3}, "worker_init_fn: expected a function, got int"),
        ({"generator": 3}, "generator: expected a Generator, got int"),
        ({"num_workers": "a"}, "argument 'num_workers' .* must be int, not str"),
    ],
)
def test_arguments_of_the_wrong_kind(options, message):
    with pytest.raises(TypeError, match=message):
        DataLoader(**{"dataset": [1, 2], **options})


def test_what_is_said():
    with pytest.warns(UserWarning, match="will create 64 worker processes"):
        DataLoader(range(3), num_workers=64)
    with pytest.warns(UserWarning, match="no device of type 'other'"):
        iter(DataLoader(range(3), pin_memory=True, pin_memory_device="other"))


class Custom:
    def pin_memory(self):
        return "pinned"


@pytest.mark.parametrize("workers", [0, 1])
def test_pinned_batches(workers, monkeypatch):
    """They lie where a device copies from by itself, and these copies are those that nobody waits for."""
    fake.register()
    backend, copied = by_device_type("fake"), []

    def from_pinned(array, index):
        copied.append(backend.is_pinned(array))
        return backend.from_host(array, index)

    def collate(samples):
        return [*default_collate(samples), Custom()]

    monkeypatch.setattr(backend, "from_pinned", from_pinned)
    samples = [(float(n), {"a": n, "s": "x"}) for n in range(5)]
    options = {"pin_memory": True, "pin_memory_device": "fake", "num_workers": workers}
    found = []
    for x, fields, custom in DataLoader(samples, batch_size=2, collate_fn=collate, **options):
        assert x.is_pinned("fake")
        assert fields["a"].is_pinned("fake")
        assert (set(fields["s"]), custom) == ({"x"}, "pinned")
        with fake.no_sync():
            found.append(x.to("fake", non_blocking=True))
            x.to("fake")
    assert [t.tolist() for t in found] == [[0, 1], [2, 3], [4]]
    assert copied == [True] * 3


# ---- workers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"prefetch_factor": 5}, {"in_order": False}])
def test_batches_from_workers(options):
    loader = DataLoader(Numbers(9), batch_size=2, num_workers=2, **options)
    for _ in range(2):
        found = lists(loader)
        expected = [[0, 1], [2, 3], [4, 5], [6, 7], [8]]
        assert (sorted(found) if options == {"in_order": False} else found) == expected


def test_the_same_order_with_and_without_workers():
    found = []
    for workers in (0, 2):
        leafgrad.manual_seed(5)
        loader = DataLoader(Numbers(20), batch_size=3, shuffle=True, num_workers=workers)
        found.append([lists(loader), lists(loader), leafgrad.rand(2).tolist()])
    assert found[0] == found[1]


def test_streams_from_workers():
    loader = DataLoader(Stream(), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert lists(loader) == [[0, 1], [10, 11], [2], [12, 13]]
    assert lists(DataLoader(Stream(), batch_size=2, num_workers=2, drop_last=True)) == [[0, 1], [10, 11], [12, 13]]


class Words(Dataset):
    """Gives back what it is asked for."""

    def __getitem__(self, index):
        return index


def test_workers_take_single_samples_whatever_they_are():
    assert sorted(DataLoader(Stream(), batch_size=None, num_workers=2)) == [0, 1, 2, 10, 11, 12, 13]
    words = ["restart", None, "ended", ["x"], np.arange(3)]
    answers = list(DataLoader(Words(), batch_size=None, sampler=words, num_workers=2))
    assert answers[:4] == words[:4]
    assert answers[4].tolist() == [0, 1, 2]


def test_large_batches_cross_and_can_be_written():
    x = leafgrad.rand(64, 5000)
    for i, (batch,) in enumerate(DataLoader(TensorDataset(x), batch_size=32, num_workers=2)):
        assert (batch == x[32 * i : 32 * (i + 1)]).all()
        batch += 1


def test_a_pass_that_is_left_early_begins_anew():
    loader = DataLoader(Numbers(), batch_size=2, num_workers=2, persistent_workers=True)
    assert next(iter(loader)).tolist() == [0, 1]
    assert lists(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_worker_info_and_seeds():
    def facts(_):
        info = get_worker_info()
        return [
            info.id,
            info.num_workers,
            info.seed,
            random.random(),
            np.random.mtrand.random(),
            leafgrad.rand(1).item(),
        ]

    def run():
        generator = leafgrad.Generator().manual_seed(0)
        loader = DataLoader(Numbers(4), batch_size=2, num_workers=2, generator=generator, collate_fn=facts)
        return list(loader)

    (a, b), again = run(), run()
    assert [a, b] == again
    assert (a[:2], b[:2], b[2] - a[2]) == ([0, 2], [1, 2], 1)
    assert all(x != y for x, y in zip(a[3:], b[3:], strict=True))
    assert get_worker_info() is None


def test_worker_init_fn():
    marks = []

    def mark(worker):
        marks.append(worker)

    def collate(batch):
        return marks, get_worker_info().seed == leafgrad.initial_seed()

    assert list(DataLoader(Numbers(2), num_workers=2, worker_init_fn=mark, collate_fn=collate)) == [
        ([0], True),
        ([1], True),
    ]
    assert marks == []


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(method):
    loader = DataLoader(TensorDataset(leafgrad.arange(4)), num_workers=1, multiprocessing_context=method)
    assert [batch[0].tolist() for batch in loader] == [[0], [1], [2], [3]]


# ---- failures -------------------------------------------------------------------------------------------------------


class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(KeyError("five"), KeyError), (Awkward(1, 2), RuntimeError), (StopIteration(), RuntimeError)],
)
def test_an_error_comes_with_its_traceback(raised, expected):
    def act(index):
        if index == 5:
            raise raised

    loader = DataLoader(Numbers(act=act), batch_size=2, num_workers=2)
    batches = iter(loader)
    assert [next(batches).tolist(), next(batches).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(expected) as caught:
        next(batches)
    text = str(caught.value)
    assert text.startswith(f"Caught {type(raised).__name__} in DataLoader worker process 0.\nOriginal Traceback (most")
    assert "raise raised" in text
    assert next(batches).tolist() == [6, 7]  # the others go on
    with pytest.raises(type(raised) if not isinstance(raised, StopIteration) else RuntimeError):
        list(DataLoader(Numbers(act=act)))


def test_errors_of_begin_and_end():
    def fail(_):
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        list(DataLoader(Numbers(), num_workers=1, worker_init_fn=fail))
    with pytest.raises(Exception, match=r"(?s)Caught \w+ in DataLoader worker process 0.*[Pp]ickle"):
        list(DataLoader(Numbers(), num_workers=1, collate_fn=lambda batch: lambda: None))


@pytest.mark.parametrize(
    ("end", "how"),
    [(lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL"), (lambda: os._exit(3), "exit code 3")],
)
def test_a_worker_that_dies_is_an_error_at_once(end, how):
    def act(index):
        if index == 5:
            end()

    loader = DataLoader(Numbers(act=act), batch_size=2, num_workers=2, persistent_workers=True)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly: {how}"):
        list(loader)
    assert time.monotonic() - start < 5
    loader.dataset.act = None
    assert lists(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]  # from new workers


def test_timeout():
    loader = DataLoader(Numbers(act=lambda i: time.sleep(0.5 * i)), num_workers=1, timeout=0.2)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        list(loader)


SCRIPT = """
    import os, sys, time
    from leafgrad.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, index):
            time.sleep(0.05)
            return os.getpid()

    def main():
        for i, batch in enumerate(DataLoader(Slow(), batch_size=2, num_workers=2)):
            print(*set(batch.tolist()), flush=True)

    if __name__ == "__main__":
        main()
"""


def gone(pid):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="asks /proc about processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_main_process(how, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        workers = {int(process.stdout.readline()) for _ in range(4)}
        assert len(workers) == 2
        if how == signal.SIGINT:
            os.killpg(process.pid, how)  # as a terminal does
        else:
            process.kill()
        _, said = process.communicate(timeout=20)
    assert all(map(gone, workers))
    if how == signal.SIGINT:
        assert said.rstrip().endswith("KeyboardInterrupt")
        assert said.count("Traceback") == 1


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_cannot_be_pickled_for_workers_is_named(method):
    loader = DataLoader(range(4), num_workers=1, collate_fn=lambda batch: batch, multiprocessing_context=method)
    with pytest.raises(pickle.PicklingError, match=rf"started by '{method}', for which .* multiprocessing_context="):
        next(iter(loader))
