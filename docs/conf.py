"""Sphinx: ``pip install ".[docs]"``, then ``sphinx-build -W docs docs/_build``."""

from importlib import metadata

project = "leafgrad"
author = "the leafgrad authors"
release = metadata.version("leafgrad")
extensions = ["myst_parser"]
exclude_patterns = ["_build", "benchmarks"]
html_theme = "furo"
html_title = f"leafgrad {release}"
suppress_warnings = ["myst.xref_missing"]  # links to files beside docs/
