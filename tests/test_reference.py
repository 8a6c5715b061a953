"""The API reference: every public name is in it once, and every example gives what it says."""

from __future__ import annotations

import doctest
import math
import sys
from pathlib import Path

import pytest

import leafgrad
from leafgrad import distributions, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs" / "extensions"))
from entries import PACKAGES, entries, function_of, origin, pages, public

PAGES = {page.stem: list(entries(page.read_text())) for page in pages()}
ENTRIES = [entry for found in PAGES.values() for entry in found]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", [name for name, found in PAGES.items() if found])
def test_examples_give_what_they_say(page, capsys):
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    known = {"leafgrad": leafgrad, "nn": nn, "F": nn.functional, "math": math, "distributions": distributions}
    for entry in PAGES[page]:
        leafgrad.manual_seed(0)
        runner.run(parser.get_doctest(entry.example, dict(known), entry.path, f"{page}.md", entry.line))
    assert not runner.failures, capsys.readouterr().out


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_an_example(package):
    described = {id(origin(entry.value)) for entry in ENTRIES if ">>> " in entry.example}
    found = public(package)
    assert not [
        n for n, v in found.items() if id(origin(v)) not in described and not (n.endswith("_") and n[:-1] in found)
    ]


def test_every_name_is_described_once():
    paths = [entry.path for entry in ENTRIES]
    assert sorted(set(paths)) == sorted(paths)


def test_every_example_uses_its_name():
    def used(entry):
        return entry.name in entry.example or entry.name.startswith(("Lazy", "Uninitialized", "TypedSt", "UntypedSt"))

    assert not [entry.path for entry in ENTRIES if not used(entry)]


def test_every_method_of_tensors_is_described():
    described = {entry.name for entry in ENTRIES if entry.package == "leafgrad.Tensor"}
    kind = leafgrad.Tensor
    names = [name for name in dir(kind) if not name.startswith("_") and name not in described]
    assert not [name for name in names if not (callable(getattr(kind, name)) and function_of(name))]
