"""Streams, events and memory of ``torch.cuda``, through a stand-in for CuPy that keeps times and sizes."""

from __future__ import annotations

import sys
import types

import pytest

from leafgrad import cuda, plugins
from leafgrad.backends import contract


class Pool:
    """CuPy's memory pool: blocks of 512 bytes, which it keeps."""

    def __init__(self):
        self.used, self.total = {0: 0, 1: 0}, {0: 0, 1: 0}
        self.device = 0

    def malloc(self, size):
        size = -(-size // 512) * 512
        self.used[self.device] += size
        self.total[self.device] = max(self.total[self.device], self.used[self.device])
        return types.SimpleNamespace(size=size, device=self.device)

    def free(self, block):
        self.used[block.device] -= block.size

    def used_bytes(self):
        return self.used[self.device]

    def total_bytes(self):
        return self.total[self.device]

    def free_all_blocks(self):
        self.total = dict(self.used)


class World:
    """What CuPy has: queues as lists of jobs that run when somebody waits, a clock that jobs move, memory."""

    def __init__(self):
        self.clock, self.pool, self.streams = 0.0, Pool(), []
        self.allocate = self.pool.malloc
        world = self

        class Event:
            def __init__(self, block=False, disable_timing=False):
                self.timing, self.at, self.done, self.stream = not disable_timing, None, False, None

            def record(self, stream=None):
                self.done, self.stream = False, stream
                stream.jobs.append(self.reach)

            def reach(self):
                self.at, self.done = world.clock, True

            def synchronize(self):
                while not self.done:
                    self.stream.step()

        class Stream:
            def __init__(self, null=False, non_blocking=False, priority=0):
                world.streams.append(self)
                self.ptr, self.jobs, self.priority = len(world.streams), [], priority
                self.device, self.before = world.pool.device, []

            @property
            def done(self):
                return not self.jobs

            def step(self):
                self.jobs.pop(0)()

            def synchronize(self):
                while self.jobs:
                    self.step()

            def wait_event(self, event):
                self.jobs.append(event.synchronize)

            def use(self):
                world.current = self

            def __enter__(self):
                self.before.append(world.current)
                world.current = self
                return self

            def __exit__(self, *_):
                world.current = self.before.pop()

        Stream.null = self.current = Stream()

        class Device:
            def __init__(self, index):
                self.index = index

            def __enter__(self):
                self.before, world.pool.device = world.pool.device, self.index

            def __exit__(self, *_):
                world.pool.device = self.before

            def synchronize(self): ...

        runtime = types.SimpleNamespace(
            getDeviceCount=lambda: 2, getDevice=lambda: self.pool.device, CUDARuntimeError=RuntimeError
        )
        self.cupy = types.ModuleType("cupy")
        self.cupy.ndarray = type("ndarray", (), {})
        self.cupy.get_default_memory_pool = lambda: self.pool
        self.cupy.cuda = types.SimpleNamespace(
            Device=Device,
            Event=Event,
            Stream=Stream,
            runtime=runtime,
            get_current_stream=lambda index: self.current,
            get_elapsed_time=lambda start, end: end.at - start.at,
            set_allocator=lambda allocator: setattr(self, "allocate", allocator),
        )

    def ask(self, milliseconds):
        """Work for the current queue."""
        self.current.jobs.append(lambda: setattr(self, "clock", self.clock + milliseconds))


@pytest.fixture
def world(monkeypatch):
    found = World()
    monkeypatch.setitem(sys.modules, "cupy", found.cupy)
    monkeypatch.delitem(sys.modules, "leafgrad.backends.cupy", raising=False)
    backend = contract.load(plugins.backend("cupy"))
    monkeypatch.setitem(contract._BY_DEVICE_TYPE, "cuda", backend)
    yield found
    sys.modules.pop("leafgrad.backends.cupy", None)


def test_work_goes_to_the_stream_of_the_context(world):
    side = cuda.Stream()
    with cuda.stream(side):
        assert cuda.current_stream() == side
        world.ask(5)
    with cuda.stream(None):
        assert cuda.current_stream() == cuda.default_stream() != side
    assert not side.query()
    assert cuda.default_stream().query()
    side.synchronize()
    assert side.query()
    assert world.clock == 5
    cuda.set_stream(side)
    assert cuda.current_stream() == side


def test_a_stream_waits_for_another(world):
    first, second = cuda.Stream(priority=-1), cuda.Stream()
    assert first._raw.priority == -1
    with cuda.stream(first):
        world.ask(7)
    second.wait_stream(first)
    with cuda.stream(second):
        world.ask(2)
    second.synchronize()
    assert world.clock == 9
    assert first.query()
    second.wait_event(cuda.Event())  # never recorded: nothing to wait for
    assert second.query()


def test_events_take_times(world):
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded before"):
        start.elapsed_time(end)
    start.record()
    world.ask(3.5)
    end.record()
    assert not end.query()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) == 3.5
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(cuda.Event())
    with pytest.raises(NotImplementedError, match="interprocess"):
        cuda.Event(interprocess=True)


def test_memory(world):
    blocks = [world.allocate(size) for size in (100, 2000)]
    assert cuda.memory_allocated() == 512 + 2048
    assert cuda.max_memory_allocated() == 512 + 2048
    blocks.append(world.allocate(10_000))
    world.pool.free(blocks.pop())
    assert cuda.memory_allocated() == 512 + 2048
    assert cuda.max_memory_allocated() == 512 + 2048 + 10_240
    assert cuda.memory_reserved() == 512 + 2048 + 10_240
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == 512 + 2048
    cuda.empty_cache()
    assert cuda.memory_reserved() == 512 + 2048
    assert cuda.memory_allocated("cuda:1") == cuda.max_memory_allocated("cuda:1") == 0
    with pytest.raises(RuntimeError, match="cuda:2"):
        cuda.memory_allocated("cuda:2")


def test_other_devices_have_no_streams():
    with pytest.raises(RuntimeError, match="device type 'cpu' has no streams"):
        cuda.Stream("cpu")


def test_without_a_gpu():
    if cuda.is_available():
        pytest.skip("there is one")
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    with pytest.raises((RuntimeError, ImportError), match="cuda"):
        cuda.Stream()
