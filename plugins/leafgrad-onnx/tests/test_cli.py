"""``leafgrad onnx export|check|show``."""

from __future__ import annotations

import onnx
import pytest

from leafgrad import cli

SOURCE = """
from leafgrad import nn
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
def both(x, y):
    return x @ y
"""


def main(arguments):
    return cli.main(["onnx", *arguments])


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    (tmp_path / "mymodel_of_onnx.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_file_is_written_checked_and_shown(capsys):
    assert main(["export", "mymodel_of_onnx:net", "a.onnx", "--input", "x=batch*5,3", "--output", "y"]) == 0
    assert main(["check", "a.onnx"]) == 0
    assert main(["show", "a.onnx"]) == 0
    assert main(["show", "-v", "a.onnx"]) == 0
    printed = capsys.readouterr().out
    for text in ("a.onnx: 2 nodes, 2 initializers", "a.onnx: in order; opset 18, 16 numbers", "x: float32[batch, 3]"):
        assert text in printed
    assert "y: float32[batch, 4]" in printed
    assert "0.weight: float32[4, 3]" in printed
    assert "1 Relu" in printed
    assert "y = Relu(" in printed


def test_several_inputs():
    assert main(["export", "mymodel_of_onnx:both", "a.onnx", "--input", "float64:2,3", "--input", "b=float64:3,2"]) == 0
    assert [i.name for i in onnx.load("a.onnx").graph.input] == ["input_0", "b"]


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        (["export", "mymodel_of_onnx", "a.onnx"], 2, "expected MODULE:NAME"),
        (["export", "mymodel_of_onnx:nothing", "a.onnx"], 2, "nothing"),
        (["export", "mymodel_of_onnx:net", "a.onnx", "--input", "x=5;3"], 2, "--input"),
        (["export", "mymodel_of_onnx:net", "a.onnx", "--input", "float99:5,3"], 2, "expected a dtype"),
        (["export", "mymodel_of_onnx:net", "a.onnx", "--input", "a,3"], 2, "expected sizes"),
        (["export", "mymodel_of_onnx:net", "a.onnx", "--input", "5,4"], 2, "what mymodel_of_onnx:net takes, got 5,4: "),
        (["export", "mymodel_of_onnx:net", "a.onnx"], 2, "got none, which is given as --input x=float32:batch*5,3"),
        (["export", "mymodel_of_onnx:net", "no/a.onnx"], 2, "expected a folder that there is, got no; make it first"),
        (["check", "missing.onnx"], 1, "missing.onnx"),
        (["check", "mymodel_of_onnx.py"], 1, "no ONNX file"),
        (["show", "mymodel_of_onnx.py"], 1, "no ONNX file"),
        ([], 2, "usage"),
    ],
)
def test_what_goes_wrong_is_said(call, status, message, capsys):
    assert main(call) == status
    assert message in capsys.readouterr().err
