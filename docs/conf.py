"""The site: ``make docs``. Warnings are errors there, and a link inside the site that leads nowhere is one."""

import re
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "leafgrad"
author = copyright = "the leafgrad authors"
release = metadata.version("leafgrad")
extensions = ["myst_parser", "reference"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"leafgrad {release}"
html_copy_source = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 100
nitpick_ignore_regex = [("py:class", ".*")]  # types in signatures have no entry, but for Tensor
python_use_unqualified_type_names = True
pygments_style, pygments_dark_style = "default", "github-dark"
OUTSIDE = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def link_outside(app, name, source):
    """Links to files that are no pages are there to download; folders are named alone."""

    def replace(match):
        image, text, target, _ = match.groups()
        path = (HERE / f"{name}.md").parent / target
        if image or not path.exists() or HERE in path.resolve().parents:
            return match[0]
        return f"{{download}}`{text} <{target}>`" if path.is_file() else text

    source[0] = OUTSIDE.sub(replace, source[0])


def setup(app):
    app.connect("source-read", link_outside)
