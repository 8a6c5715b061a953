"""The command line: commands of the core and of plugins, scripts that run as Python runs them."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from leafgrad import cli, plugins
from leafgrad.plugins import CommandSpec, hookimpl

TESTS = "cli.info cli.run cli.table"

ROOT = Path(__file__).resolve().parent.parent.parent
CALLS = []


def called(arguments):
    CALLS.append(arguments)
    return 3 if arguments else None


@pytest.fixture(scope="module")
def command():
    """A plugin's command, "called"."""

    class Commands:
        @staticmethod
        @hookimpl
        def leafgrad_cli():
            return [CommandSpec("called", "notes its arguments", f"{__name__}:called")]

    if all(plugin.name != "test-command" for plugin in plugins.status()):
        plugins.register(Commands(), "test-command")


@pytest.fixture
def script(tmp_path):
    """Writes a script and runs it by ``python -m leafgrad run``; gives the finished process."""

    def run(code, *args, options=(), name="script.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(code))
        return leafgrad("run", *options, str(path.relative_to(tmp_path)), *args, cwd=tmp_path)

    return run


def leafgrad(*args, cwd=None):
    return subprocess.run([sys.executable, "-m", "leafgrad", *args], capture_output=True, text=True, cwd=cwd)


# ---- commands -------------------------------------------------------------------------------------------------------


def test_the_console_script():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert plugins.resolve(project["scripts"]["leafgrad"]) is cli.main


def test_overview(command, capsys):
    assert cli.main([]) == cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: leafgrad COMMAND ARGS...")
    for line in ("called +notes its arguments", "check +check an op", "info +versions, plugins,", "run +run a script"):
        assert re.search(f"^  {line}", out, re.MULTILINE)


def test_a_command_of_a_plugin(command, monkeypatch):
    monkeypatch.setattr(plugins, "resolve", lambda target: {f"{__name__}:called": called}[target])
    CALLS.clear()
    assert (cli.main(["called", "--x", "y"]), cli.main(["called"])) == (3, 0)
    assert CALLS == [["--x", "y"], []]


def test_a_command_whose_package_is_missing(capsys, monkeypatch):
    def unknown(name):
        raise plugins.UnknownNameError(f"unknown command {name!r}")

    monkeypatch.setattr(plugins, "command", unknown)
    monkeypatch.setattr(sys.modules["leafgrad.cli.main"], "find_spec", lambda name: None)
    assert cli.main(["pinn", "run"]) == 2
    assert "'pinn'; the package leafgrad-pinn brings it; pip install leafgrad-pinn" in capsys.readouterr().err
    assert cli.main(["train"]) == 2
    assert "package" not in capsys.readouterr().err


def test_an_unknown_command(capsys):
    assert cli.main(["train"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("leafgrad: unknown command 'train': known are ")
    assert "usage: leafgrad COMMAND" in err


def test_a_reader_that_has_read_enough():
    done = subprocess.run(
        f"{sys.executable} -m leafgrad ops | head -n 1", shell=True, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("op ")
    assert done.stderr == ""


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("leafgrad 0.")


def test_info(capsys):
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line[0] != " "] == ["versions", "plugins", "devices", "executors"]
    for part in ("\n  numpy ", "plugin 'core' (leafgrad", "\n  cpu (numpy): 1\n", "\n  cuda (cupy): ", "\n  replay: "):
        assert part in out


# ---- scripts --------------------------------------------------------------------------------------------------------


def test_a_script_is_main(script):
    done = script(
        """
        import os, pickle, sys
        import neighbour
        class Thing: pass
        print(__name__, sys.argv, os.path.basename(__file__), os.path.isabs(__file__), neighbour.x)
        print(type(pickle.loads(pickle.dumps(Thing()))) is Thing, sys.modules["__main__"].Thing is Thing)
        print(os.path.samefile(sys.path[0], "scripts"), sys.modules["__main__"].__dict__ is globals())
        """,
        "--lr", "3", "-h", "--as-torch",
        name="scripts/train.py",
    ) if (script("x = 5", name="scripts/neighbour.py").returncode == 0) else None  # fmt: skip
    assert done.stdout.splitlines() == [
        "__main__ ['scripts/train.py', '--lr', '3', '-h', '--as-torch'] train.py True 5",
        "True True",
        "True True",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_shows_as_it_does_in_python(script, tmp_path):
    code = "def f():\n    return 1 / 0\n\nf()\n"
    done = script(code)
    plain = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, plain.stderr)
    done = script("x = = 1\n")
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "run.py" not in done.stderr


def test_a_script_that_lacks_pytorch_is_told_of_as_torch(script):
    done = script("raise ModuleNotFoundError('no torch', name='torch')")
    assert done.stderr.endswith("run: with --as-torch before the script `import torch` gives leafgrad\n")


@pytest.mark.parametrize(
    ("code", "status"), [("import sys; sys.exit(7)", 7), ("raise SystemExit", 0), ("exit('no')", 1)]
)
def test_exit_status(script, code, status):
    assert script(code).returncode == status


def test_as_torch(script):
    code = """
        import torch
        from torch import nn
        x = torch.ones(2, requires_grad=True)
        nn.functional.relu(x * 3).sum().backward()
        print(x.grad, torch.zeros(1).double(), torch.__version__.startswith("2."))
        """
    done = script(code, options=["--as-torch"])
    assert done.stdout == "tensor([3., 3.]) tensor([0.], dtype=torch.float64) True\n", done.stderr
    done = script("import torch.nothing", options=["--as-torch"])
    assert done.stderr.endswith(
        "ModuleNotFoundError: leafgrad, which stands in for PyTorch here, does not provide torch.nothing\n"
    )


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_script_that_runs_as_torch(script, method):
    done = script(
        f"""
        import torch

        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, i):
                return torch.tensor(i * i)

        if __name__ == "__main__":
            options = dict(batch_size=2, num_workers=1, multiprocessing_context="{method}")
            for batch in torch.utils.data.DataLoader(Squares(), **options):
                print(batch)
        """,
        options=["--as-torch"],
    )
    assert done.stdout == "tensor([0, 1])\ntensor([4, 9])\n", done.stderr


@pytest.mark.parametrize("name", ["app", "app.train"])
def test_modules(tmp_path, name):
    package = tmp_path / "app"
    package.mkdir()
    package.joinpath("__init__.py").write_text("import torch\n")
    package.joinpath("squares.py").write_text(
        "import torch\n"
        "class Squares(torch.utils.data.Dataset):\n"
        "    __len__ = lambda self: 2\n"
        "    __getitem__ = lambda self, i: torch.tensor(i * i)\n"
    )
    code = """if True:
        import sys
        import torch
        from .squares import Squares

        if __name__ == "__main__":
            data = torch.utils.data.DataLoader(Squares(), 2, num_workers=1, multiprocessing_context="spawn")
            print(__package__, *sys.argv[1:], *data)
            sys.exit(3)
    """
    for module in "__main__", "train":
        package.joinpath(f"{module}.py").write_text(code)
    done = leafgrad("run", "--as-torch", "-m", name, "-m", "x", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "app -m x tensor([0, 1])\n"), done.stderr


def test_what_run_refuses(capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in "nothing", "leafgrad.nothing", "leafgrad.cli":
        assert cli.main(["run", "-m", name]) == 2
        assert capsys.readouterr().err == f"leafgrad run: no module named {name!r}, or none that runs\n"
    assert cli.main(["run", "nothing.py"]) == 2
    assert capsys.readouterr().err == "leafgrad run: can't open 'nothing.py': No such file or directory\n"
    assert cli.main(["run"]) == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage.endswith("SCRIPT [ARGS...]")
    assert error.endswith("the following arguments are required: SCRIPT")
    assert cli.main(["run", "--help"]) == 0
    assert "--as-torch" in capsys.readouterr().out
