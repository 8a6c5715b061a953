"""The API reference: every public name is in it once, and every example gives what it says."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import math
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import leafgrad
from leafgrad import distributions, docstrings, nn
from leafgrad.plugins.added import listed_methods

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
        runner.run(parser.get_doctest(entry.example, dict(known), entry.path, f"{entry.package}.txt", 0))
        if leafgrad.distributed.is_initialized():
            leafgrad.distributed.destroy_process_group()
    assert not runner.failures, capsys.readouterr().out


# What PyTorch lacks, or gives as complex numbers, or gives where leafgrad has an error, which the example shows.
OURS = """
    leafgrad.autograd.GradcheckError leafgrad.func.BatchedCall leafgrad.func.jet leafgrad.imag leafgrad.explain
    leafgrad.linalg.LinAlgError leafgrad.linalg.eig leafgrad.linalg.eigvals leafgrad.op leafgrad.Tensor.imag
    leafgrad.Tensor.chalf leafgrad.Tensor.to_device leafgrad.Tensor.share_memory_
    leafgrad.distributed leafgrad.profiler leafgrad.plugins leafgrad.testing
""".split()


@pytest.mark.parametrize("page", [name for name, found in PAGES.items() if found])
@pytest.mark.filterwarnings("ignore")
def test_examples_print_the_same_in_pytorch(page):
    torch = pytest.importorskip("torch")
    importlib.import_module("torch.distributions")
    differing = []
    for entry in PAGES[page]:
        if entry.path in OURS or entry.package in OURS:
            continue
        known = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "math": math}
        known["distributions"] = torch.distributions
        torch.manual_seed(0)
        for example in doctest.DocTestParser().get_examples(entry.example.replace("leafgrad", "torch")):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(example.source, entry.path, "single"), known)
            if plain(printed.getvalue()) != plain(example.want):
                differing.append(f"{entry.path}: {printed.getvalue()}")
    assert not differing


def plain(printed):
    """What is printed without what may differ: spaces, the sign of zeros, full names of classes."""
    return re.sub(r"\s|<BLANKLINE>|-(?=0\.0*\b)|torch\.return_types\.", "", printed)


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


def test_every_example_is_on_a_page():
    described = {entry.path for entry in ENTRIES}
    files = {path.stem for path in Path(docstrings.__file__).parent.glob("*.txt")}
    assert {f"{package}.{name}" for package in files for name in docstrings.known(package)} == described


def test_docstrings_show_the_examples():
    def shown(entry):
        of_tensors = entry.package == "leafgrad.Tensor"  # properties among them
        value = inspect.getattr_static(leafgrad.Tensor, entry.name) if of_tensors else entry.value
        named = isinstance(value, property) or hasattr(value, "__name__")
        return not named or "Example:\n    >>> " in inspect.getdoc(value)

    assert not [entry.path for entry in ENTRIES if not shown(entry)]
    doc = textwrap.dedent("""\
        Sine. (...) -> (...)

        Example:
            >>> leafgrad.sin(leafgrad.tensor([0.0, 1.0]))
            tensor([0.0000, 0.8415])""")
    assert inspect.getdoc(leafgrad.sin) == inspect.getdoc(leafgrad.Tensor.sin) == doc


def test_classes_say_what_their_base_says_of_arguments():
    for kind in (nn.Conv1d, nn.Conv2d, nn.LazyBatchNorm3d, nn.SyncBatchNorm, nn.MaxPool1d):
        sections = re.findall(r"^(Args|Attributes|Raises|Example):$", inspect.getdoc(kind), re.MULTILINE)
        assert sections == sorted(sections, key=["Args", "Attributes", "Raises", "Example"].index), kind
        assert sections[0] == "Args", kind
    assert "    momentum: how far the running averages move" in nn.LazyBatchNorm3d.__doc__
    assert "num_features: " not in nn.LazyBatchNorm3d.__doc__  # which it does not take


def test_arguments_of_one_meaning_are_described_wherever_they_are_taken():
    shared = {name for names in docstrings.SHARED for name in names.split(", ")}
    missing = []
    for entry in ENTRIES:
        own = docstrings.ARGUMENTS.search(inspect.getdoc(entry.value) or "")
        said = [name for each in docstrings.ARGUMENT.finditer(own[1] if own else "") for name in each[1].split(", ")]
        with contextlib.suppress(TypeError, ValueError):
            takes = {*inspect.signature(entry.value).parameters}
            takes -= set() if "dtype" in takes else {"device"}
            missing += [(entry.path, name) for name in shared & takes if name not in said]
    assert not missing


# How many entries of a package leave an argument without a word, beyond the tensors that they work on and what is given
# in any number. May only shrink; from Python 3.12 on fewer enumerations have a signature.
UNSAID = {
    "leafgrad": 1,
    "leafgrad.distributed": 1,
    "leafgrad.distributions": 1,
    "leafgrad.func": 1,
    "leafgrad.plugins": 1,
    "leafgrad.profiler": 4,
}


def unsaid(entry):
    """The arguments of an entry that its docstring does not describe."""
    try:
        parameters = inspect.signature(entry.value).parameters.values()
    except (TypeError, ValueError):
        return []
    takes = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name[0] != "_"]
    own = docstrings.ARGUMENTS.search(inspect.getdoc(entry.value) or "")
    said = {
        name for each in docstrings.ARGUMENT.finditer(own[1] if own else "") for name in re.findall(r"\w+", each[1])
    }
    return [name for name in takes if name not in said and name not in ("self", "input", "other")]


def test_arguments_are_described():
    found = dict.fromkeys(UNSAID, 0)
    for entry in ENTRIES:
        found[entry.package] = found.get(entry.package, 0) + bool(unsaid(entry))
    assert not {package: count for package, count in found.items() if count > UNSAID.get(package, 0)}


def test_words_of_arguments_are_of_arguments_that_are_taken():
    for entry in ENTRIES:
        with contextlib.suppress(TypeError, ValueError):
            takes = {*inspect.signature(entry.value).parameters}
            described = docstrings.described(entry.package, entry.name)
            assert takes.issuperset(re.findall(r"\w+", " ".join(described))), entry.path


def test_every_example_uses_its_name():
    def used(entry):
        return entry.name in entry.example or entry.name.startswith(("Lazy", "Uninitialized", "TypedSt", "UntypedSt"))

    assert not [entry.path for entry in ENTRIES if not used(entry)]


def test_every_method_of_tensors_is_described():
    described = {entry.name for entry in ENTRIES if entry.package == "leafgrad.Tensor"}
    command = [sys.executable, "-c", "import leafgrad; print(*dir(leafgrad.Tensor))"]  # without the ops of other tests
    kind, found = leafgrad.Tensor, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    described |= {*listed_methods()}  # of plugins, which describe them
    names = [name for name in found if not name.startswith("_") and name not in described]
    assert not [name for name in names if not (callable(getattr(kind, name)) and function_of(name))]
