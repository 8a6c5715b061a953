"""Memory of results that is used again."""

import threading
import weakref

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.ir.reused import LARGE, Reused

SHAPE = (LARGE // 4,)


@pytest.fixture
def reused():
    """Of a call that makes two arrays of a kind, whose memory no other test has."""
    shape = (LARGE // 4 + next(SIZES),)
    return Reused([(shape, "float32")] * 2, np.empty).maker(shape, "float32")


SIZES = iter(range(1, 1000))


def address(array):
    return array.__array_interface__["data"][0]


def test_what_nobody_has_is_used_again(reused):
    first = reused()
    second = reused()
    assert address(first) != address(second)
    place = address(first)
    del first
    third = reused()
    assert address(third) == place


@pytest.mark.parametrize(
    "hold",
    [
        lambda a: a,
        lambda a: a[1:],
        lambda a: a[1:].reshape(-1, 1).T,
        memoryview,
        np.frombuffer,
        lambda a: leafgrad.from_numpy(a).detach(),
        lambda a: leafgrad.from_dlpack(leafgrad.from_numpy(a)),
        lambda a: [[a]],
        lambda a: lambda: a,
    ],
    ids=["itself", "view", "view of a view", "memoryview", "buffer", "tensor", "DLPack", "list", "closure"],
)
def test_what_somebody_has_is_not(reused, hold):
    array = reused()
    place, held = address(array), hold(array)
    del array
    others = [reused() for _ in range(5)]
    assert place not in map(address, others)
    del held
    assert place in map(address, [reused() for _ in range(5)])


def test_memory_whose_address_is_known_is_left_to_those_who_know_it(reused):
    array = reused()
    leafgrad.from_numpy(array).data_ptr()
    left = weakref.ref(array)
    del array
    reused()
    assert left() is None


def test_no_more_is_kept_than_two_calls_return():
    shape = (LARGE // 4 + next(SIZES),)
    reused = Reused([(shape, "float32")] * 2, np.empty)
    held = [reused(shape, "float32") for _ in range(20)]
    (shelf,) = reused.shelves.values()
    assert len(shelf.arrays) == 4
    del held
    assert len(shelf.arrays) == 4


def test_arrays_of_another_class_are_new():
    """What owns their memory does not know of views that are views of that."""
    kind = (LARGE + next(SIZES),), "bfloat16"
    reused = Reused([kind], lambda shape, dtype: leafgrad.empty(shape, dtype=leafgrad.bfloat16)._data)
    part = np.asarray(reused(*kind))
    other = reused(*kind)
    assert not np.may_share_memory(part, other)


def test_small_arrays_are_new():
    reused = Reused([((8,), "float32"), (SHAPE, "uint8")], np.empty)
    assert not reused.shelves


def test_programs_share_a_kind_and_nothing_stays_without_them():
    shape = (LARGE // 4 + next(SIZES),)
    one, two = (Reused([(shape, "float32")], np.empty) for _ in range(2))
    place = address(one(shape, "float32"))
    assert address(two(shape, "float32")) == place
    shelf = two.shelves[shape, "float32"]
    assert one.shelves[shape, "float32"] is shelf
    del one, two, shelf
    again = Reused([(shape, "float32")], np.empty)
    assert not again.shelves[shape, "float32"].arrays


def test_threads_never_get_the_same():
    shape = (LARGE // 4 + next(SIZES),)
    reused = Reused([(shape, "float32")] * 3, np.empty)
    wrong = []

    def work(number):
        for turn in range(400):
            mine = [reused(shape, "float32") for _ in range(3)]
            for k, array in enumerate(mine):
                array[:8] = number * 3 + k
            if any((array[:8] != number * 3 + k).any() for k, array in enumerate(mine)):
                wrong.append(turn)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("executor", ["numpy", "replay", None])
def test_gradients_results_and_copies_that_a_training_keeps_stay_as_they_were(executor):
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 200))
    adam = optim.Adam(net.parameters(), lr=0.01)

    def step(x):
        adam.zero_grad()
        out = net(x)
        (out**2).mean().backward()
        adam.step()
        return out, out.detach() * 2

    compiled = leafgrad.compile(step, executor=executor)
    kept, copies = [], []
    for n in range(12):
        out, twice = compiled(leafgrad.rand(200, 200))
        found = [out, twice.T, net[0].weight.grad, net[2].weight.grad.numpy(), net[0].weight.data[3:].clone()]
        kept.append(found if n % 3 else found[1:4])
        copies.append([np.array(np.asarray(leafgrad.as_tensor(t).detach())) for t in kept[-1]])
    for found, before in zip(kept, copies, strict=True):
        for t, copy in zip(found, before, strict=True):
            np.testing.assert_array_equal(np.asarray(leafgrad.as_tensor(t).detach()), copy)
