"""How the plugin appears: as leafgrad.onnx and torch.onnx, importing the package onnx when it is needed."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run(*arguments, cwd=None):
    """What Python prints, in a process of its own."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_package_onnx_is_imported_when_it_is_needed():
    script = """
        import sys
        import leafgrad
        from leafgrad import plugins
        plugins.load()
        print("onnx" in sys.modules, "onnx" in leafgrad.onnx.__name__, "onnx" in sys.modules)
        leafgrad.onnx.export
        print("onnx" in sys.modules, "load" in dir(leafgrad.onnx))
    """
    assert run("-c", textwrap.dedent(script)) == ["False True False", "True True"]


def test_a_script_for_pytorch_exports(tmp_path):
    script = """
        import torch

        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
        options = dict(input_names=["x"], dynamic_axes={"x": {0: "batch"}}, opset_version=18, export_params=True)
        torch.onnx.export(
            net, (torch.randn(2, 3),), "net.onnx", training=torch.onnx.TrainingMode.EVAL, dynamo=False, **options
        )
        print(torch.onnx.is_in_onnx_export())
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    assert run("-m", "leafgrad", "run", "--as-torch", "script.py", cwd=tmp_path) == ["False"]
    assert (tmp_path / "net.onnx").stat().st_size > 100
