"""The examples run as their users run them: long runs, and burgers.py in tests/faults/, in processes of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(line, text):
    found = re.search(rf"^{line}:? (\S+)", text, re.MULTILINE)
    assert found, text
    return float(found[1])


@pytest.mark.slow  # tests/faults/test_training.py goes on with such a run
def test_burgers_writes_its_results(tmp_path):
    printed = run(EXAMPLES / "burgers.py", "--quick", "--steps", 50, "--out", tmp_path)
    assert number("relative L2 error", printed) < 1
    assert number("reference error", printed) < 1e-12
    assert (tmp_path / "burgers.png").stat().st_size > 10_000
    assert (tmp_path / "checkpoint-000002.safetensors").exists()


@pytest.mark.slow
def test_burgers_resumes_where_it_stopped(tmp_path):
    run(EXAMPLES / "burgers.py", "--quick", "--steps", 25, "--out", tmp_path / "two")
    resumed = run(EXAMPLES / "burgers.py", "--quick", "--steps", 50, "--out", tmp_path / "two", "--resume")
    whole = run(EXAMPLES / "burgers.py", "--quick", "--steps", 50, "--out", tmp_path / "one")
    assert number("relative L2 error", resumed) == number("relative L2 error", whole)


@pytest.mark.slow
def test_burgers_quick_reaches_its_error(tmp_path):
    assert number("relative L2 error", run(EXAMPLES / "burgers.py", "--quick", "--out", tmp_path)) <= 5e-3


@pytest.mark.slow
def test_digits_reaches_its_accuracy(tmp_path):
    assert number("test accuracy", run(EXAMPLES / "digits.py", "--out", tmp_path)) >= 0.97


def test_conv_digits_learns(tmp_path, example):
    printed = example("conv_digits.py", "--quick", "--epochs", 1, "--out", tmp_path)
    assert number("test accuracy", printed) >= 0.8


def test_an_example_stops_at_nan(tmp_path, example):
    with pytest.raises(FloatingPointError, match=r"step \d+: loss is (nan|inf); "):
        example("conv_digits.py", "--lr", "1e30", "--epochs", 3, "--out", tmp_path)


@pytest.mark.slow
def test_conv_digits_reaches_its_accuracy(tmp_path):
    assert number("test accuracy", run(EXAMPLES / "conv_digits.py", "--out", tmp_path)) >= 0.985


def test_sine_lstm_continues_waves(tmp_path, example):
    printed = example("sine_lstm.py", "--quick", "--steps", 3, "--out", tmp_path)
    assert number("root mean square error over 200 steps", printed) < 0.5
    assert (tmp_path / "sine_lstm.png").stat().st_size > 10_000


def test_char_transformer_learns(tmp_path, example):
    printed = example("char_transformer.py", "--quick", "--steps", 10, "--out", tmp_path)
    assert number("bits per character", printed) < 6


@pytest.mark.slow
def test_char_transformer_quick_reaches_its_bits(tmp_path):
    assert number("bits per character", run(EXAMPLES / "char_transformer.py", "--quick", "--out", tmp_path)) < 3.6


def test_vae_draws_digits(tmp_path, example):
    printed = example("vae.py", "--epochs", 1, "--out", tmp_path)
    assert -35 < number("log p of 360 test images, at least", printed) < -19
    assert number("log p with independent pixels", printed) == -25.21
    assert (tmp_path / "vae.png").stat().st_size > 10_000


@pytest.mark.slow
def test_vae_knows_more_than_pixels(tmp_path):
    assert number("log p of 360 test images, at least", run(EXAMPLES / "vae.py", "--out", tmp_path)) > -20.6


def test_sdf_finds_distances(tmp_path, example):
    printed = example("sdf.py", "--steps", 20, "--out", tmp_path)
    assert number("distance, root mean square error", printed) < 0.5
    assert (tmp_path / "sdf.png").stat().st_size > 10_000


@pytest.mark.slow
def test_sdf_is_near_the_closed_form(tmp_path):
    printed = run(EXAMPLES / "sdf.py", "--out", tmp_path)
    assert number("distance, root mean square error", printed) < 0.006
    assert number("normals, degrees", printed) < 3


def test_neural_ode_foretells(tmp_path, example):
    printed = example("neural_ode.py", "--steps", 1, "--out", tmp_path)
    assert number("relative error after that", printed) < 3
    assert (tmp_path / "neural_ode.png").stat().st_size > 10_000


@pytest.mark.slow
def test_neural_ode_foretells_well(tmp_path):
    printed = run(EXAMPLES / "neural_ode.py", "--out", tmp_path)
    assert number("relative error after that", printed) < 0.03
