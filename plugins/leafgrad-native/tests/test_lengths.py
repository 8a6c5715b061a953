"""One library serves batches of any length."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.compile.run import misses
from leafgrad.nn import functional as F
from leafgrad_native import build, check
from leafgrad_native.lengths import Known, cut, joined, of_any_sizes


def steps(net):
    adam = leafgrad.optim.Adam(net.parameters())

    def step(x, y):
        adam.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        return loss

    return step


def network(*sizes):
    leafgrad.manual_seed(0)
    layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def programs_of(compiled):
    several = [call.lengths for call in compiled._calls.programs]
    runners = [r for found in several if found is not None for r in found.runners.values()]
    return [r.program for r in [*runners, *(c.runner for c in compiled._calls.programs if c.lengths is None)]]


def libraries(compiled):
    return {program.library.entry for program in programs_of(compiled)}


def test_a_training_step_of_many_lengths_has_few_libraries(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "0")  # which would put NumPy's numbers in the place of wrong ones
    step = steps(network(4, 20, 3))
    compiled = leafgrad.compile(steps(network(4, 20, 3)), executor="native", closed=True)
    lengths = [64, 64, 64, 100, 65, 333, 1000, 2500]  # two of which are many chunks, one of them in many parts
    for n in lengths:
        x, y = leafgrad.randn(n, 4), leafgrad.randint(0, 3, (n,))
        np.testing.assert_allclose(compiled(x, y).item(), step(x, y).item(), rtol=1e-5)
    programs = programs_of(compiled)
    assert len(programs) == len(set(lengths))
    assert sum(program.any_length for program in programs) == len(programs) - 1
    assert len(libraries(compiled)) <= 3  # one for the first, one for the second, one where a batch has several parts


def test_the_second_length_is_the_last_that_needs_the_compiler(monkeypatch):
    monkeypatch.setattr(misses, "EARLY", 1000)
    made, compared = [], []
    library, agreement = build.library, check.Checked.compare
    monkeypatch.setattr(build, "library", lambda *args, **more: made.append(args) or library(*args, **more))
    monkeypatch.setattr(check.Checked, "compare", lambda *args: compared.append(args) or agreement(*args))
    compiled, step = leafgrad.compile(steps(network(4, 20, 3)), executor="native"), steps(network(4, 20, 3))
    for n in (100, 100, 101, 101, *range(102, 128)):
        x, y = leafgrad.randn(n, 4), leafgrad.randint(0, 3, (n,))
        for _ in range(2):
            np.testing.assert_allclose(compiled(x, y).item(), step(x, y).item(), rtol=1e-5)
    assert len(programs_of(compiled)) == 28
    assert len(made) == 2
    assert len(compared) <= 2 + 3 * 2  # phases of the first program, and of three lengths of the other


def test_a_program_without_any_size_in_its_text_does_not_read_those_of_its_call(monkeypatch):
    """Its text is like that of steps of other shapes, which read from their calls what differs."""
    monkeypatch.setattr(misses, "EARLY", 1000)
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "0")

    def step(x, y):
        return leafgrad.cat([y.expand(-1, 4), x])[y.shape[0] :] * 2

    compiled = leafgrad.compile(step, executor="native")
    for n, m in ((3, 6), (3, 6), (2, 6), (2, 7), (2, 7), (2, 7), (2, 8), (2, 9), (2, 40)):
        x, y = leafgrad.rand(n, 4), leafgrad.rand(m, 1)
        np.testing.assert_array_equal(compiled(x, y).numpy(), step(x, y).numpy())


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_whole_arrays_of_many_lengths_lie_apart(monkeypatch, kind):
    """Which lie where, and how products are cut, is another matter at each length."""
    monkeypatch.setattr(misses, "EARLY", 1000)
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "0")
    leafgrad.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0).to(getattr(leafgrad, kind))

    def step(x):
        y = layer(x)
        return y.detach(), (y @ y.transpose(1, 2)).softmax(2).cumsum(1).detach()

    compiled = leafgrad.compile(step, executor="native")
    for n in (20, 20, 21, 21, 21, *range(2, 70, 3), 127, 128, 129):
        x = leafgrad.rand(3, n, 16).to(getattr(leafgrad, kind))
        for ours, right in zip(compiled(x), step(x), strict=True):
            np.testing.assert_allclose(ours.numpy(), right.numpy(), rtol=2e-4, atol=2e-5)
    (found,) = [call.lengths for call in compiled._calls.programs if call.lengths is not None]
    assert len(found.runners) > 2 * len(found.made)
    assert any(made.planned is not None for made in found.made)


def test_what_is_divided_by_the_length_is_right_at_each():
    def step(x):
        return ((x.sin() - x.sin().mean(0)) ** 2).mean() / len(x)

    compiled = leafgrad.compile(step, executor="native", closed=True)
    for n in (128, 128, 200, 300, 1024):
        x = leafgrad.randn(n, 3, dtype=leafgrad.float64)
        compiled(x)
        np.testing.assert_allclose(compiled(x).item(), step(x).item(), rtol=1e-12)
    assert any(program.any_length for program in programs_of(compiled))


def test_networks_of_other_widths_share_nothing():
    found = set()
    for width in (20, 24, 28):
        compiled = leafgrad.compile(steps(network(4, width, 3)), executor="native")
        for _ in range(3):
            compiled(leafgrad.randn(64, 4), leafgrad.randint(0, 3, (64,)))
        assert not any(call.runner.program.any_length for call in compiled._calls.programs)
        found |= libraries(compiled)
    assert len(found) == 3


@pytest.mark.parametrize("text", ["", "x", "7", "a1 = b[64] * 12L - 1e-05 + 2.5e+3; // 3\n#if 4\nq = 0x10 + 1.0f;"])
def test_a_text_that_is_cut_is_put_together_again(text):
    assert joined(*cut(text), {}) == text


def test_names_lengths_of_arrays_with_values_and_what_the_preprocessor_reads_keep_their_numbers():
    assert cut("lg_vf32 a0[4] = {{0}}, a1[4] = {{0}};\nfloat t[64] = {0};\n#pragma GCC unroll 8\n")[1] == []
    assert cut("    #define x(i) x0[(i) * 64]\n")[1] == ["64"]
    pieces, numbers = cut("r1 = x0[64] * 12L + 1e-05 + 0.5;\n#if LG_PARTS & 4\n")
    assert numbers == ["64", "12L", "1e-05", "0.5"]
    assert joined(pieces, numbers, {0: 1, 1: 1, 2: 0}) == (
        "r1 = x0[call->sizes[1]] * call->sizes[1] + call->reals[0] + 0.5;\n#if LG_PARTS & 4\n"
    )


def test_extents_are_read_from_the_call():
    assert of_any_sizes("x[size3] * (8 + 2*size0*size3)L + size1L / real2;") == (
        "x[call->sizes[3]] * (8 + 2*call->sizes[0]*call->sizes[3]) + call->sizes[1] / call->reals[2];"
    )


def test_sizes_and_other_numbers_are_never_taken_for_each_other():
    assert cut("x[64] + 1")[0] != cut("x[64.0] + 1")[0]


def test_numbers_that_are_equal_at_each_length_are_one():
    known = Known("64 + 64 + 3 + 64")
    assert not known.is_of(b"another step")
    assert known.read(["96", "96", "3", "64"]) == ["96"]
    assert known.slots == {0: 0, 1: 0}
    assert known.read(["10", "20", "3", "64"]) == ["10", "20"]
    assert known.slots == {0: 0, 1: 1}
    assert known.read(["5", "5", "3", "64"]) == ["5", "5"]  # once apart, always
    assert known.slots == {0: 0, 1: 1}


def test_sequences_of_many_lengths_are_one_text():
    layer = nn.LSTM(3, 16, batch_first=True)
    step = leafgrad.compile(lambda x: layer(x)[0].square().mean(), executor="native", closed=True)
    for n in (5, 8, 11, 14):
        x = leafgrad.randn(4, n, 3)
        for _ in range(5):
            found = step(x)
        assert found.item() == pytest.approx(layer(x)[0].square().mean().item(), rel=1e-5)
    programs = [call.runner.program for call in step._calls.programs]
    assert sum(program.any_length for program in programs) == len(programs) - 1 == 3
    assert len(libraries(step)) == 2


def test_products_of_many_rows_are_one_text():
    step = leafgrad.compile(lambda x, w: (x.cumsum(0) @ w).cumsum(0) @ w, executor="native", closed=True)
    w = leafgrad.randn(16, 16, dtype=leafgrad.float64)
    for n in (300, 300, 420, 433, 480):  # which blocks of 6 and 12 rows fill, or not
        x = leafgrad.randn(n, 16, dtype=leafgrad.float64)
        step(x, w)
        np.testing.assert_allclose(step(x, w).numpy(), ((x.cumsum(0) @ w).cumsum(0) @ w).numpy(), rtol=1e-9, atol=1e-7)
    assert sum(program.any_length for program in programs_of(step)) == len(programs_of(step)) - 1 == 3


@pytest.mark.filterwarnings("ignore:.*traced again")
def test_what_is_explained_of_lengths_that_are_below_a_chunk():
    compiled = leafgrad.compile(lambda x: (x / (1 + x.abs().mean(1, keepdim=True))).mean(0), executor="native")
    for n in (128, 128, 128, 64, 65, 63, 66, 64):
        compiled(leafgrad.ones(n, 4))
    assert " at a time" in compiled.explain()
    assert "kB of scratch a thread" in compiled.explain()
