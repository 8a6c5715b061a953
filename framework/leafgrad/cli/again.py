"""The script of ``leafgrad run --as-torch`` once more, in a worker process that starts from nothing.

The start methods "spawn" and "forkserver" of multiprocessing run the main module again under the name ``__mp_main__``;
``leafgrad run`` tells them that this is it, and leaves the script's path in the environment.
"""

import os

from leafgrad.cli.run import PACKAGE, SCRIPT, Again, read
from leafgrad.compat import install_as_torch

if __name__ == "__mp_main__":
    install_as_torch()
    __file__, __package__ = os.environ[SCRIPT], os.environ[PACKAGE]
    __spec__ = Again(__package__)
    exec(compile(read(__file__), __file__, "exec", dont_inherit=True), globals())
