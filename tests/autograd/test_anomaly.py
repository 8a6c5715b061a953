"""Anomaly detection: the forward call behind a backward pass that fails."""

from __future__ import annotations

import warnings

import pytest

import leafgrad


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def test_anomaly_detection_names_the_function(t):
    x = leaf(t, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with t.autograd.detect_anomaly():
            y = t.sqrt(x)
            with pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output\."):
                y.backward()
    assert not t.is_anomaly_enabled()


def test_anomaly_detection_names_the_line():
    x = leaf(leafgrad, 0.0)
    with leafgrad.autograd.set_detect_anomaly(True):
        y = x / x  # the culprit
    with leafgrad.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="y = x / x  # the culprit"):
        y.backward()


def test_anomaly_detection_warns_that_it_is_slow(t):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        detector = t.autograd.detect_anomaly()
    with detector:
        assert t.is_anomaly_enabled()
        assert t.is_anomaly_check_nan_enabled()


def test_anomaly_detection_without_the_search_for_nan(t):
    x = leaf(t, 0.0)
    with t.autograd.set_detect_anomaly(True, check_nan=False):
        assert not t.is_anomaly_check_nan_enabled()
        (x / x).backward()
    assert x.grad.isnan().tolist() == [True]
    assert not t.is_anomaly_enabled()


def test_anomaly_detection_as_a_switch(t):
    t.autograd.set_detect_anomaly(True)
    assert t.is_anomaly_enabled()
    t.autograd.set_detect_anomaly(False)
    assert not t.is_anomaly_enabled()


def test_a_write_in_place_is_reported_with_its_line():
    with leafgrad.autograd.set_detect_anomaly(True):
        y = leaf(leafgrad, 1.0).exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match=r"leaf\(leafgrad, 1\.0\)\.exp\(\)"):
            y.backward()
