"""Every code block of the documents that leafgrad was made from, as it stands, with leafgrad in place of PyTorch.

The documents lie beside the repository, and where they do not, there is nothing to run. Where they and PyTorch 2.13
disagree, PyTorch decides:

- `nn.L1Loss(y, gt)` raises, since a loss takes no tensors when it is made; what follows runs with `nn.L1Loss()(y, gt)`.
- `.cuda()` makes a ToCopyBackward0 (once CopyBackwards), and an affine layer an AddmmBackward0 (once AddmmBackward).
- an L1 loss is the mean of absolute values, so its grad_fn is a MeanBackward0 (once L1LossBackward).
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from leafgrad.backends import contract
from leafgrad.compat import as_torch
from leafgrad.testing.fake import FakeArray, FakeBackend

SEEDS = Path(__file__).resolve().parent.parent.parent / "shared" / "seeds"
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="the documents are not here")

IMPORTS = "import torch\nimport torch.nn as nn\n"  # which the documents leave out where they are not new


@pytest.fixture(autouse=True)
def torch():
    if "torch" in sys.modules:
        pytest.skip("PyTorch is imported")
    with as_torch():
        import torch

        yield torch


def document(number):
    (path,) = SEEDS.glob(f"{number:03}_*.txt")
    return path.read_text(encoding="utf-8")


def fenced(text):
    """The Python blocks of a document, with what stands behind ```python, and freed of quotes and indentation."""
    found = re.findall(r"^([ >]*)```python ?(.*)\n((?:.*\n)*?)\1```", text, re.MULTILINE)
    return [
        (info, textwrap.dedent(re.sub(f"^{re.escape(margin)}", "", code, flags=re.M))) for margin, info, code in found
    ]


def cells(text):
    """The code cells of a notebook that was saved as text, each with what follows it."""
    return [cell.strip("\n") for cell in re.split(r"^In \[.*\]:\n", text, flags=re.MULTILINE)[1:]]


def run(code, namespace):
    """Lines that ``code`` prints, and the warnings it gives."""
    out = StringIO()
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(out):
        warnings.simplefilter("always")
        exec(compile(code, "seed", "exec"), namespace)
    return out.getvalue().splitlines(), caught


def fresh(**names):
    namespace = {"__name__": "seed", **names}
    exec(IMPORTS, namespace)
    return namespace


def plain(lines):
    """Lines without addresses of objects and without blank ones."""
    return [re.sub(r"0x[0-9a-f]+", "0x", line).rstrip() for line in lines if line.strip()]


# ---- leaves that require grad ---------------------------------------------------------------------------------------

LEAVES = fenced(document(0)) if SEEDS.is_dir() else []


def test_leaves_that_require_grad():
    namespace, ran = fresh(), 0
    for info, code in LEAVES:
        if "skip" in info:
            continue
        printed, caught = run(code, namespace)
        assert printed == re.findall(r"# prints (.*)", code)
        if "generates a warning" in code:
            assert any("The .grad attribute of a Tensor that is not a leaf" in str(w.message) for w in caught)
        elif "create_graph=True" in code and ".backward(" in code:
            assert any("reference cycle" in str(w.message) for w in caught)
        else:
            assert not caught
        ran += 1
    assert ran == 10


def test_the_block_to_skip_is_the_default_of_retain_graph():
    (skipped,) = [code for info, code in LEAVES if "skip" in info]
    for create_graph, expected in ((True, True), (False, False)):
        namespace = {"retain_graph": None, "create_graph": create_graph}
        exec(skipped, namespace)
        assert namespace["retain_graph"] is expected


# ---- concepts of autodiff -------------------------------------------------------------------------------------------


def test_concepts(torch):
    blocks = iter(code for _, code in fenced(document(1)))
    namespace = fresh()

    only_leaves_can_be_switched = next(blocks)
    message = re.search(r"# RuntimeError: (.*)", only_leaves_can_be_switched)[1]
    with pytest.raises(RuntimeError, match=re.escape(message)):
        run(only_leaves_can_be_switched, namespace)

    run(next(blocks), namespace)
    check = namespace["x"]
    assert (check.is_leaf, check.requires_grad, check.grad_fn, check.grad) == (True, True, None, None)

    with pytest.raises(RuntimeError, match=re.escape(next(blocks).strip().removeprefix("RuntimeError: "))):
        torch.rand(1).backward()

    run(next(blocks), namespace)
    assert namespace["func"](1) is None

    model, x = torch.nn.Linear(3, 2), torch.rand(4, 3)
    inference = {"torch": torch, "model": model, "x": x}
    run(next(blocks), inference)
    assert not model.training
    assert not inference["y"].requires_grad

    method = "def normals(self, input):\n" + textwrap.indent(next(blocks), "    ")
    run(method, namespace)
    backbone = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    holder = type("Holder", (), {"backbone": backbone})
    sigma, normal = namespace["normals"](holder, torch.rand(5, 3))
    assert (tuple(sigma.shape), tuple(normal.shape)) == ((5, 1), (5, 3))
    assert normal.requires_grad


RENAMED = {"CopyBackwards": "ToCopyBackward0", "AddmmBackward": "AddmmBackward0", "L1LossBackward": "MeanBackward0"}
CHECKED = re.compile(r"is_leaf: (\w+), requires_grad: (\w+), grad_fn: (?:<(\w+) object.*?>|None), grad: (\w+)")


@pytest.fixture
def cuda(monkeypatch):
    """The stand-in device under the name "cuda"."""
    monkeypatch.setattr(FakeBackend, "device_type", "cuda")
    backend = FakeBackend()
    monkeypatch.setitem(contract._BY_DEVICE_TYPE, "cuda", backend)
    monkeypatch.setitem(contract.BACKENDS, FakeArray, backend)


@pytest.mark.usefixtures("cuda")
def test_the_full_examples_on_a_cuda_device():
    (*_, example) = (code for _, code in fenced(document(1)))
    expected = [(leaf, grad, RENAMED.get(node, node), held) for leaf, grad, node, held in CHECKED.findall(example)]
    assert len(expected) == 11

    out = StringIO()
    with redirect_stdout(out), pytest.warns(UserWarning, match="not a leaf"), pytest.raises(TypeError):
        exec(compile(example, "seed", "exec"), fresh())
    made = out.getvalue()
    (lines, _) = run(example.replace("nn.L1Loss(y, gt)", "nn.L1Loss()(y, gt)"), fresh())
    for printed in (made, "\n".join(lines)):
        found = CHECKED.findall(printed)
        assert found == expected[: len(found)]
    assert (len(CHECKED.findall(made)), len(CHECKED.findall("\n".join(lines)))) == (9, 11)


# ---- gradients of Q -------------------------------------------------------------------------------------------------


def test_gradients_of_q():
    q, exclusion, relevance = (code for _, code in fenced(document(2)))
    namespace = fresh()
    run(q, namespace)
    assert namespace["Q"].tolist() == [-12.0, 65.0]
    run(exclusion, namespace)
    assert not namespace["a"].requires_grad
    assert namespace["b"].requires_grad
    code, output = relevance.split("# Output\n")
    printed, _ = run(code, namespace)
    assert printed == re.findall("> (.*)", output)


# ---- leaf and intermediate nodes ------------------------------------------------------------------------------------


def test_leaf_and_intermediate_nodes():
    found = [re.split("^#### ", cell, maxsplit=1, flags=re.M)[0] for cell in cells(document(3))]
    assert len(found) == 4
    printed = [run(cell, fresh())[0] for cell in found]
    assert printed[0] == ["None", "tensor(2.)", "tensor(1.)"]
    assert len(printed[1]) == 2
    assert printed[2][-1] == "None"
    assert printed[3][:3] == ["None"] * 3
    assert printed[3][-7:] == [
        "None", "0.weight", "torch.Size([20, 10])", "True", "0.bias", "torch.Size([20])", "True"
    ]  # fmt: skip


# ---- the tour -------------------------------------------------------------------------------------------------------


def code_and_rest(cell):
    """A cell's code, and what it printed with the text behind that."""
    paragraphs = re.split(r"(?<=\n)\n+", cell + "\n")
    printing = [i for i, paragraph in enumerate(paragraphs) if re.search("^print", paragraph, re.M)]
    end = (
        printing[-1] + 1 if printing else next((i for i, p in enumerate(paragraphs) if not parses(p)), len(paragraphs))
    )
    return "\n".join(paragraphs[:end]), "\n".join(paragraphs[end:])


def parses(code):
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def test_the_tour():
    namespace, found = {"__name__": "seed"}, cells(document(4))
    assert len(found) == 12
    for cell in found:
        code, rest = code_and_rest(cell)
        printed, caught = run(code, namespace)
        assert plain(printed) == plain(rest.splitlines())[: len(plain(printed))]
        assert not caught
