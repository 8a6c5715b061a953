"""What README and docs promise: hooks, contracts, links. What their blocks print is held against the comments there."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

import pytest

from leafgrad import plugins
from leafgrad.plugins import builtin, hookspecs
from leafgrad.plugins.manager import HOOKS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("plugins/*/README.md")), *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "tutorials").glob("*.md"))
LINK = re.compile(r"\]\(([^)#\s]+)\)")


def name(page):
    return str(page.relative_to(ROOT))


def test_readme_starts_with_code():
    assert "```python" in (ROOT / "README.md").read_text().splitlines()[:20]


def test_every_hook_is_described_with_its_arguments():
    page = (ROOT / "docs" / "plugins.md").read_text()
    assert len(HOOKS) == 8
    for hook in HOOKS:
        specification = getattr(hookspecs, hook)
        signature = inspect.signature(specification)
        arguments = ", ".join(signature.parameters)
        assert f"**`{hook}({arguments}) -> {signature.return_annotation}`**" in page
        assert f"def {hook}({arguments}):" in page
        assert f"| `{hook}({arguments}) -> {signature.return_annotation}` |" in page


def implementers(hook):
    """The distributions of this repository that implement a hook, as the table of hooks calls them."""
    for root in sorted((ROOT / "plugins").iterdir()):
        (package,) = root.glob("leafgrad_*/__init__.py")
        if re.search(rf"^def {hook}\(", package.read_text(), re.MULTILINE):
            yield root.name.removeprefix("leafgrad")


@pytest.mark.parametrize("hook", HOOKS)
def test_the_table_of_hooks_tells_who_implements_them(hook):
    page = (ROOT / "docs" / "plugins.md").read_text()
    (row,) = re.findall(rf"^\| `{hook}\(.*$", page, re.MULTILINE)
    _, _, since, who = (cell.strip() for cell in row.strip("|").split("|"))
    assert 1 <= int(since) <= plugins.API_VERSION
    assert set(re.findall(r"(?<!\w)-[a-z]+", who)) == set(implementers(hook))
    core = getattr(builtin, hook, list)()  # which has no hook with an argument
    assert bool(core) == who.startswith("leafgrad")
    if quoted := re.findall(r'"(.*?)"', who):
        assert quoted == [getattr(entry, "suffix", entry.name) for entry in core]
    else:
        assert hook.removeprefix("leafgrad_") in ("ops", "cli", "modules", "checks")  # many, or not the core's


def signature_of(function):
    """As one would write it, without self."""
    signature = inspect.signature(function)
    given = [p for name, p in signature.parameters.items() if name != "self"]
    return str(signature.replace(parameters=given)).replace("'", "").replace("|", "\\|")


def described(contract):
    """The rows that tell of the methods of a contract."""
    for name, method in vars(contract).items():
        if inspect.isfunction(method) and (name == "__call__" or not name.startswith("_")):
            call = "" if name == "__call__" else f".{name}"
            line = inspect.getdoc(method).split("\n\n")[0].replace("\n", " ").replace("``", "`")
            default = (
                "" if getattr(method, "__isabstractmethod__", contract is not plugins.Backend) else " Has a default."
            )
            yield f"| `{contract.__name__}{call}{signature_of(method)}` | {line}{default} |".replace(
                " | None", " or None"
            )


CONTRACTS = ["Executor", "Preferred", "Program", "Backend"]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_contracts_are_described(contract):
    lines = (ROOT / "docs" / "plugins.md").read_text().splitlines()
    found = [line for line in lines if re.match(rf"\| `{contract}[.(]", line)]
    assert found == list(described(getattr(plugins, contract)))


def test_the_contracts_are_imported_in_any_way():
    namespace = {}
    exec("from leafgrad.plugins import *", namespace)
    for contract in CONTRACTS:
        exec(f"from leafgrad.plugins import {contract} as one", namespace)
        assert namespace["one"] is namespace[contract] is getattr(plugins, contract)
        assert contract in dir(plugins)


@pytest.mark.parametrize("variable", ["LEAFGRAD_PLUGINS", "LEAFGRAD_STRICT_PLUGINS"])
def test_environment_variables_are_described(variable):
    assert f"`{variable}=" in (ROOT / "docs" / "plugins.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", index, re.MULTILINE), page.stem


def test_the_commands_of_readme_are_those_of_the_makefile():
    readme, makefile = (textwrap.dedent((ROOT / f).read_text()) for f in ("README.md", "Makefile"))
    folders = sorted((ROOT / "plugins").iterdir())
    tested = [path.name for path in folders if "\ntest = " in (path / "pyproject.toml").read_text()]
    plugins = " ".join(
        f'--editable "./plugins/{path.name}[test]"' if path.name in tested else f"--editable ./plugins/{path.name}"
        for path in folders
    )
    assert """install --editable ".[test]" $(TESTED:%=--editable '%')""" in makefile
    assert f'install --editable ".[test]" {plugins}\n' in readme
    assert "examples/burgers.py --quick" in makefile
    assert "examples/burgers.py --quick" in readme
    assert "-n $(JOBS) --dist loadfile" in makefile
    assert "-n 2 --dist loadfile" in readme
