"""``python -m scripts NAME ...`` in the folder above: run scripts in one process; their output as JSON.

With ``LEAFGRAD_AS_TORCH`` in the environment ``torch`` is leafgrad.
"""

import contextlib
import io
import json
import os
import runpy
import sys
import traceback
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent

if "LEAFGRAD_AS_TORCH" in os.environ:
    from leafgrad.compat import install_as_torch

    install_as_torch()
sys.path.insert(0, str(FOLDER))
printed = {}
for name in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        try:
            runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        except Exception:
            traceback.print_exc(file=sys.stdout)
    printed[name] = out.getvalue()
json.dump(printed, sys.stdout)
