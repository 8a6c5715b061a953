"""Files of solutions that are not as they were written: one ValueError that names the field, and nothing else."""

from __future__ import annotations

import contextlib
import copy
import math
import random

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn.layers import Maker
from leafgrad_pinn.reading import read
from leafgrad_pinn.references import Reference
from leafgrad_pinn.run import Run
from leafgrad_pinn.solution import Solution
from leafgrad_pinn.windows import module_of

TIME = pinn.Time("t", 0.0, 2.0)
SQUARE = pinn.Box(x=(0.0, 1.0), y=(0.0, 1.0))


AXES = lg.ones(2, dtype=lg.float64)


def far(x, y):
    """From the unit circle, by a tensor of its own, and one of as many numbers as there are points."""
    return ((lg.stack([x, y], 1) * AXES) ** 2).sum(1).sqrt() - lg.ones(len(x), dtype=x.dtype)


def groups_of(kind):
    if kind == "hard":
        net = pinn.MLP(5, 2, embed=pinn.Fourier(4), factorised=pinn.Factorised())
        start = pinn.Hard(lambda x: -lg.sin(math.pi * x), rate=0.0)
        domain = pinn.Interval("x", -1, 1) * TIME
        return [[pinn.Field("u", domain, net, initial=start, boundary=pinn.Hard(0.0), scale=2.0)]]
    if kind == "shapes":
        holed = SQUARE - pinn.Disk(0.2, x=0.5, y=0.5)
        distance = pinn.SignedDistance(far, x=(-2, 2), y=(-2, 2))
        u, v = pinn.fields("u v", holed, pinn.ModifiedMLP(4, 1))
        return [
            [u, v, pinn.Derivative("w", u, "x", factor=-1)],
            [pinn.Field("a", pinn.Polygon([(0, 0), (1, 0), (0, 1)]), pinn.SIREN(4, 2, frequency={"x": 3.0, "y": 2.0}))],
            [pinn.Field("b", distance, pinn.PirateNet(4, 1, embed=pinn.Fourier(4)))],
        ]
    wave = pinn.MLP(4, 1, embed=pinn.Periodic(x=2), enrich=lambda x, t: lg.where(x > 0.2, x * t, lg.zeros_like(x)))
    return [[pinn.Field("p", pinn.Box("x", x=(0.0, 1.0)) * TIME, wave, initial=pinn.Hard(lambda: 1))]]


def solution(kind):
    """One that nobody trained, with everything that a file can have."""
    groups = groups_of(kind)
    moments = [0.0, 1.0, 2.0] if kind == "windows" else []
    make = Maker(np.random.default_rng(0), lg.float64, "cpu")
    modules = [module_of(group, make, moments, 2 * bool(moments)) for group in groups]
    name = groups[0][0].name
    details = {
        "errors": {name: {"l2": 0.5, "max": 1.0}},
        "unknowns": {"k": 1.5}, "deviations": {"k": math.nan}, "relative": {"interior": 0.1},
        "residuals": {"interior": {"points": np.zeros((3, 2)), "sizes": np.ones(3)}},
        "reasons": ["all steps are done"], "seconds": 1.0,
        "history": [{"step": 1, "stage": "1 Adam", "loss": 0.5, f"error {name}": None}],
    }  # fmt: skip
    axes = {"x": np.linspace(0, 1, 4)}
    reference = Reference("by hand", axes, {name: np.zeros(4)}, {name: 1e-9}, 0.1)
    pairs = {"psi": ("u", "v")} if kind == "shapes" else {}
    return Solution(groups, [Run(0, modules, details)], reference, pairs, moments)


KINDS = ("hard", "shapes", "windows")


@pytest.fixture(scope="module", params=KINDS)
def file(request, tmp_path_factory):
    """A solution and its file."""
    path = tmp_path_factory.mktemp("files") / "s.safetensors"
    found = solution(request.param)
    found.save(path)
    return found, path


def test_what_is_read_is_what_was_saved(file):
    sol, path = file
    read = pinn.Solution.load(path)
    points = sol.domain.interior(5, "uniform", np.random.default_rng(1))
    for group, (one, other) in zip(sol.groups, zip(sol.run.modules, read.run.modules, strict=True), strict=True):
        domain = group[0].domain
        inside = domain.interior(5, "uniform", np.random.default_rng(1))
        columns = {name: lg.tensor(np.ascontiguousarray(x)) for name, x in zip(domain.names, inside.T, strict=True)}
        for name, expected in one(columns).items():
            assert np.array_equal(other(columns)[name].detach().numpy(), expected.detach().numpy())
    assert read.run.reasons == sol.run.reasons
    assert read.pairs == sol.pairs
    assert len(points) == 5


OTHERS = (None, True, -1, 0, 3, 10**9, 2.5, math.nan, "", "x", "all_reduce", [], [1], {}, {"list": []}, {"dict": {}},
          ["value", 99], {"tuple": [10**9]}, lg.zeros(3), lg.zeros(2, 2, dtype=lg.int64), {"recipe": "MLP"},
          {"recipe": [1]}, {"shape": "box"}, {"shape": {}}, {"array": 3}, "float99", "int64", b"")  # fmt: skip


def places(tree, path=()):
    """The path of each value in nested dicts and lists."""
    yield path
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, (list, tuple)) else ()
    for key, value in pairs:
        yield from places(value, (*path, key))


def changed(saved, chance):
    """A copy in which something is another, is gone, stands elsewhere, or is there twice."""
    saved = copy.deepcopy(saved)
    path = chance.choice([p for p in places(saved) if p and p != ("leafgrad-pinn",)])
    *way, last = path
    parent = saved
    for key in way:
        parent = parent[key]
    kind = chance.randrange(5)
    if kind == 0:
        del parent[last]
    elif kind == 1 and isinstance(parent, dict):
        parent[chance.choice(["more", "recipe", "shape", "list", "op"])] = copy.deepcopy(chance.choice(OTHERS))
    elif kind == 2:
        source = saved
        for key in chance.choice(list(places(saved))):
            source = source[key]
        parent[last] = copy.deepcopy(source)
    elif kind == 3 and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(parent[last]))
    else:
        parent[last] = copy.deepcopy(chance.choice(OTHERS))
    return saved


def test_one_error_that_names_the_field(file, tmp_path):
    saved = lg.load(file[1])
    saved["groups"][0][0]["net"]["width"] = "wide"
    lg.save(saved, tmp_path / "file")
    message = r"load: .*file: groups\[0\]\[0\]\.net\.width: expected a whole number from 1 to \d+, .* got 'wide'"
    with pytest.raises(ValueError, match=message):
        pinn.Solution.load(tmp_path / "file")


@pytest.mark.parametrize("column", ["loss", "step", "stage"])
def test_each_row_of_a_history_has_what_is_computed_with(file, column):
    for other in (None, [], "gone"):
        saved = copy.deepcopy(lg.load(file[1]))
        row = saved["runs"][0]["details"]["dict"]["history"]["list"][0]["dict"]
        row[column] = other
        if other == "gone":
            del row[column]
        with pytest.raises(ValueError, match=rf"runs\[0\]\.details\.history\[0\]\.{column}: expected"):
            read(saved, 10**6, "cpu")


def test_claims_are_compared_with_what_is_there(file):
    saved = lg.load(file[1])
    for part, value in (("width", 14_000), ("depth", 10**9), ("width", 60)):
        claimed = copy.deepcopy(saved)
        claimed["groups"][0][0]["net"][part] = value
        with pytest.raises(ValueError, match=rf"groups\[0\]\[0\]\.net\.{part}: expected|states\[0\].*: expected"):
            read(claimed, 10_000, "cpu")


def test_values_that_stand_in_many_places():
    deep = {"list": []}
    for _ in range(60):
        deep = {"list": [deep, deep]}
    saved = {"leafgrad-pinn": 3, "groups": [[deep]], "runs": [], "moments": [], "reference": None, "pairs": {}}
    with pytest.raises(ValueError, match="expected at least one run"):
        read(saved, 3000, "cpu")
    saved["runs"] = [{"seed": 0, "dtype": "float64", "windows": 0, "states": [], "details": {}}]
    with pytest.raises(ValueError, match="expected no more values than the file has bytes"):
        read(saved, 3000, "cpu")


def test_parameters_have_names(tmp_path):
    solution("hard").save(tmp_path / "file")
    saved = lg.load(tmp_path / "file")
    saved["groups"][0][0]["initial"]["value"]["parameters"][0] = ""
    with pytest.raises(ValueError, match=r"groups\[0\]\[0\]\.initial\.value: "):
        read(saved, 10_000, "cpu")


@pytest.mark.parametrize(
    ("op", "params", "message"),
    [
        ("no_such_op", {}, r"equations\[0\]: UnknownNameError"),
        ("uniform", {}, r"equations\[0\]"),
        ("expand", {"shape": {"tuple": [10**6, 16]}}, r"equations\[0\]: .*"),
        ("sin", {"dim": 3}, r"equations\[0\]: "),
        ("sin", {"dim": [3]}, r"params\.dim: expected a number, a string or a tuple"),
    ],
)
def test_programs_that_nobody_recorded(op, params, message, tmp_path):
    solution("hard").save(tmp_path / "file")
    saved = lg.load(tmp_path / "file")
    saved["groups"][0][0]["initial"]["value"]["equations"][0] = {
        "op": op, "inputs": [["value", 0]], "params": params,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        read(saved, 10_000, "cpu")


@pytest.mark.filterwarnings("ignore:Field 'p'. exact values have a kink")
@pytest.mark.times(40, 1700)
def test_random_changes(file, count, tmp_path, tried):
    saved, chance = lg.load(file[1]), random.Random(count)
    refused = 0
    for _ in range(count):
        mutant = changed(saved, chance)
        try:
            lg.save(mutant, tmp_path / "file")
        except (TypeError, ValueError):  # of what cannot be in a file
            continue
        with contextlib.suppress(ValueError):
            pinn.Solution.load(tmp_path / "file")
            continue
        refused += 1
        with pytest.raises(ValueError, match=r"load: .*file: [\w\[\]. -]+: "):
            pinn.Solution.load(tmp_path / "file")
    assert refused > count / 3
    tried("a solution of leafgrad-pinn with a field that is another", refused, "ValueError that names it, or it loads")
