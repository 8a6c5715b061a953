"""Workers of a DataLoader that end before their time: said at once, and nothing of them stays."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import resource_tracker

import pytest

from leafgrad.utils.data import DataLoader, Dataset

pytestmark = [
    pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="asks /proc about files and processes"),
    pytest.mark.usefixtures("forks"),
]


class Workers(Dataset):
    """Process ids, and a fault at one index."""

    def __init__(self, fault=lambda: None):
        self.fault = fault

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 7:
            self.fault()
        return os.getpid()


def descriptors():
    return sorted(
        os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")
    )


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()


def processes(loader):
    """An epoch, and who worked in it."""
    return {pid for batch in loader for pid in batch.tolist()}


@pytest.fixture
def nothing_stays():
    resource_tracker.ensure_running()  # a process and a pipe of multiprocessing's own
    before = len(descriptors()), len(children())
    yield
    assert (len(descriptors()), len(children())) == before


def interrupt():
    raise KeyboardInterrupt


def signalled(number):
    return lambda: os.kill(os.getpid(), number)


FAULTS = {
    "killed by SIGKILL": signalled(signal.SIGKILL),
    "killed by SIGTERM": signalled(signal.SIGTERM),
    "killed by SIGXCPU": signalled(signal.SIGXCPU),
    "killed by SIGINT": interrupt,
    "exit code 3": lambda: os._exit(3),
}


@pytest.mark.every(2)
@pytest.mark.times(1, 20)
@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("persistent", [False, True])
def test_within_an_epoch(how, persistent, count, nothing_stays, tried):
    dataset = Workers()
    for _ in range(count):
        loader = DataLoader(dataset, batch_size=2, num_workers=2, persistent_workers=persistent)
        dataset.fault = FAULTS[how]
        with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly: {how}"):
            list(loader)
        dataset.fault = lambda: None
        assert len(processes(loader)) == 2
        del loader
    tried(f"a worker of a DataLoader: {how}", count, "an error that says so; the next epoch starts new ones")


def test_between_epochs(nothing_stays):
    loader = DataLoader(Workers(), batch_size=2, num_workers=2, persistent_workers=True)
    first = processes(loader)
    os.kill(min(first), signal.SIGKILL)
    deadline = time.monotonic() + 5
    while str(min(first)) in children() and loader._iterator.running and time.monotonic() < deadline:
        time.sleep(0.01)
    second = processes(loader)
    assert len(second) == 2
    assert not first & second
    del loader


def test_a_worker_that_cannot_start(nothing_stays):
    def unpicklable():
        raise AssertionError

    loader = DataLoader(Workers(unpicklable), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(Exception, match=r"Can't (pickle|get) local object"):
        list(loader)


def test_a_sampler_that_fails(nothing_stays):
    def order():
        yield 0
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        list(DataLoader(Workers(), sampler=order(), num_workers=2))


def test_a_loader_of_the_parent_works_in_a_child():
    loader = DataLoader(Workers(), batch_size=2, num_workers=2, persistent_workers=True)
    ours = processes(loader)
    child = os.fork()
    if not child:
        code = 1
        try:
            theirs = processes(loader)
            code = len(theirs & ours)
            loader._iterator.stop()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert processes(loader) == ours
