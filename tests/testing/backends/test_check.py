"""``check_backend`` passes what keeps the contract, and names what does not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from leafgrad.backends import by_device_type
from leafgrad.backends.numpy import NumpyBackend, NumpyGenerator
from leafgrad.testing import ConformanceError, check_backend, fake
from leafgrad.testing.backends import CHECKS

TESTS = "testing.backends.*"


@pytest.mark.parametrize("device_type", ["cpu", "fake", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_what_keeps_the_contract_passes(device_type):
    fake.register()
    report = check_backend(device_type)
    assert {r.check: r.outcome for r in report.results} == dict.fromkeys(CHECKS, "passed")


class Shares(NumpyBackend):
    def from_host(self, array, index=0):
        return array


class Converts(NumpyBackend):
    def asarray(self, value, dtype=None, index=0):
        return np.array(value, dtype or "float64")


class WrapsAnything(NumpyBackend):
    def wrap(self, value):
        return np.asarray(value)


class Widens(NumpyBackend):
    def from_host(self, array, index=0):
        return np.array(array, "float64")


class CountsAround(fake.FakeBackend):
    def check_index(self, index, size, dim):
        pass


class Poor(NumpyBackend):
    xp = SimpleNamespace(**{name: getattr(np, name) for name in ("zeros", "ones", "where", "concatenate", "add")})


class Nowhere(NumpyBackend):
    def device_count(self):
        return 0


class Elsewhere(fake.FakeBackend):
    def device_index(self, array):
        return 0


class Biased(NumpyGenerator):
    def uniform(self, shape, dtype):
        return super().uniform(shape, "float64")


class Draws(NumpyBackend):
    def generator(self, index=0):
        return Biased()


class Viewless(np.ndarray):
    def reshape(self, *shape):
        return np.asarray(self).reshape(*shape).copy().view(Viewless)


class Copies(NumpyBackend):
    array_type = Viewless

    def from_host(self, array, index=0):
        made = np.ndarray.__new__(Viewless, array.shape, array.dtype)
        made[...] = array
        return made


FAULTS = {
    Shares: ("host", "then changed: expected .*, got"),
    Converts: ("asarray", "asarray"),
    WrapsAnything: ("wrap", r"wrap\(float\): expected TypeError, got"),
    Widens: ("host", "expected dtype bool, got float64"),
    CountsAround: ("indices", "check_index with 3 of 3.* expected IndexError"),
    Poor: ("namespace", "expected the functions of NumPy that ops call, got .*arange"),
    Nowhere: ("identity", "device_count.*expected at least 1, got 0"),
    Elsewhere: ("devices", r"xp.ones in device_scope\(1\): expected an array on device 1"),
    Draws: ("generators", "uniform of float16: expected float16, got 'float64'"),
    Copies: ("views", r"array.reshape\(3, 2\): base"),
}


@pytest.mark.parametrize(("kind", "fault"), FAULTS.items(), ids=lambda v: getattr(v, "__name__", None))
def test_a_fault_is_caught_by_name(kind, fault):
    name, words = fault
    with pytest.raises(ConformanceError, match=f"backend '.*' fails .*\n(?:.*\n)*  {name}: .*{words}"):
        check_backend(kind())


def test_ops_are_checked_on_the_registered_backend_alone():
    report = check_backend(NumpyBackend(), checks="ops")
    assert report.results[0].outcome == "skipped"
    assert check_backend(by_device_type("cpu"), checks=["ops"]).results[0].outcome == "passed"
    with pytest.raises(ValueError, match="unknown check 'op'; expected some of identity"):
        check_backend("cpu", checks="op")
