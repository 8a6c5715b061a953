"""``leafgrad cuda predict``: launches and times on paper."""

from __future__ import annotations

import pytest
from compiled_steps import burgers, trained

from leafgrad_cuda.executor import EmulatedExecutor
from leafgrad_cuda.plan import CudaPlan
from leafgrad_cuda.predict import DEVICES, main, seconds

SCRIPT = """
import sys
import leafgrad

assert sys.argv[1:] == ["12"], sys.argv
step = leafgrad.compile(lambda x: (x.tanh() * 2).sum() + x.exp().sort()[0][0])
for _ in range(3):
    step(leafgrad.rand(5000))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


@pytest.mark.parametrize("device", sorted(DEVICES))
def test_a_script(script, device, capsys):
    assert main(["predict", script, "--device", device, "12"]) == 0
    text = capsys.readouterr().out
    assert f"On paper, for {DEVICES[device].name}: bounds from below." in text
    assert "op by op: argsort" in text
    assert "kernel lg_loop0: loop over 5000 rows" in text
    assert EmulatedExecutor.recorded is None


def test_a_script_without_a_step_says_so(tmp_path, capsys):
    path = tmp_path / "none.py"
    path.write_text("import leafgrad\n")
    assert main(["predict", str(path)]) == 1
    assert "compiled no step" in capsys.readouterr().out


def test_a_missing_script_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["predict", "nowhere.py"])
    assert "expected a Python file, got 'nowhere.py'" in capsys.readouterr().err


def test_time_is_bound_by_bytes_or_by_operations():
    _, run = trained(burgers(), "cuda-emulated", calls=2)
    plan = CudaPlan(run.graph, DEVICES["t4"].shared)
    for launch in plan.launches:
        h200, t4 = (seconds(plan, launch, DEVICES[name]) for name in ("h200", "t4"))
        assert plan.traffic(launch) / 4.8e12 <= h200 < t4
