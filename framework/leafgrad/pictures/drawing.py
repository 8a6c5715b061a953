"""A drawing of boxes and arrows: as SVG, as source for Graphviz, and as text."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from leafgrad.pictures.layout import Point, lay_out

CHARACTER, LINE, INSIDE = 7.3, 15.0, 10.0  # of a monospaced font of 12 pixels
LONGEST = 40

KINDS = {
    "leaf": ("#cfe2ff", "#3d6fb4", "leaf that requires grad"),
    "frozen": ("#e9ecef", "#868e96", "leaf without grad"),
    "input": ("#e9ecef", "#868e96", "input"),
    "parameter": ("#cfe2ff", "#3d6fb4", "read from outside the call"),
    "op": ("#ffffff", "#868e96", "operation"),
    "view": ("#fff3bf", "#c79a00", "view"),
    "retained": ("#ffe0c2", "#d9730d", "keeps its gradient"),
    "freed": ("#f8f9fa", "#c92a2a", "freed by a backward pass"),
    "loop": ("#d3f9d8", "#2f9e44", "once for each chunk of a batch"),
    "output": ("#b2f2bb", "#2b8a3e", "result"),
    "more": ("#ffffff", "#868e96", "not drawn"),
}
"""Kind of box -> its colour, the colour of its border, and what it means."""


@dataclass
class Box:
    """One box: its lines of text, its kind, what is shown where the mouse points at it, and whether it is freed."""

    lines: Sequence[str]
    kind: str
    tip: str = ""
    freed: bool = False

    @property
    def kinds(self) -> list[str]:
        """What the legend has to say of it."""
        return [self.kind, *["freed"] * self.freed]

    @property
    def look(self) -> tuple[str, str]:
        """Its colour and that of its border."""
        fill, border, _ = KINDS[self.kind]
        return fill, KINDS["freed"][1] if self.freed else border

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        longest = max(map(len, self.shown), default=0)
        return longest * CHARACTER + 2 * INSIDE, len(self.lines) * LINE + INSIDE

    @property
    def shown(self) -> list[str]:
        """The lines, shortened."""
        return [line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in self.lines]


@dataclass(repr=False)
class Drawing:
    """Boxes, and arrows from one to another, upper to lower. Notebooks show it; ``print`` gives a tree of text.

    Attributes:
        boxes, edges: the boxes, and pairs of their numbers, without cycles.
        ends: the numbers of the boxes that the tree of text begins with.
        title: a line above the picture.
    """

    boxes: list[Box]
    edges: list[tuple[int, int]]
    ends: list[int]
    title: str = ""
    _svg: str | None = field(default=None, init=False, compare=False)

    def svg(self, *, graphviz: bool | None = None) -> str:
        """The picture as SVG.

        Args:
            graphviz: whether Graphviz's program ``dot`` lays it out; by default, if it is installed.

        Raises:
            FileNotFoundError: it shall, and it is not installed.
        """
        if graphviz is None:
            graphviz = shutil.which("dot") is not None
        return by_graphviz(self.dot()) if graphviz else drawn(self)

    def _repr_svg_(self) -> str:
        if self._svg is None:
            self._svg = self.svg()
        return self._svg

    def dot(self) -> str:
        """The source for Graphviz."""
        lines = ["digraph {", '  graph [rankdir=TB, ranksep=0.35, nodesep=0.25, fontname="monospace", fontsize=10]']
        lines.append('  node [shape=box, style="filled,rounded", fontname="monospace", fontsize=10, height=0.2]')
        lines.append('  edge [color="#868e96", arrowsize=0.6]')
        lines.append(f"  graph [label=<{caption(self)}>, labelloc=b, labeljust=l]")
        for i, box in enumerate(self.boxes):
            fill, border = box.look
            style = ', style="filled,rounded,dashed"' if box.freed else ""
            text = quoted("\n".join(box.shown))
            lines.append(
                f'  n{i} [label={text}, tooltip={quoted(box.tip)}, fillcolor="{fill}", color="{border}"{style}]'
            )
        lines += [f"  n{a} -> n{b}" for a, b in self.edges]
        return "\n".join([*lines, "}"]) + "\n"

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """The colour, its border and the meaning of each kind of box that there is."""
        return [look for kind, look in KINDS.items() if any(kind in box.kinds for box in self.boxes)]

    def save(self, path: str | Path) -> None:
        """Write it to a file: SVG, the source for Graphviz, or text, by the name's ending.

        Raises:
            ValueError: the name ends neither in .svg nor .dot, .gv or .txt.
        """
        forms = {".svg": self.svg, ".dot": self.dot, ".gv": self.dot, ".txt": lambda: str(self) + "\n"}
        ending = Path(path).suffix
        if ending not in forms:
            raise ValueError(f"save: path: expected a name that ends in {', '.join(forms)}, got {str(path)!r}")
        Path(path).write_text(forms[ending](), encoding="utf-8")

    def __str__(self) -> str:
        return "\n".join(tree(self))

    __repr__ = __str__


def quoted(text: str) -> str:
    """Text as Graphviz reads it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def caption(drawing: Drawing) -> str:
    """The title and the legend, as Graphviz reads a table."""
    rows = [f'<tr><td colspan="2" align="left">{escape(drawing.title)}</td></tr>'] * bool(drawing.title)
    for fill, border, text in drawing.legend:
        rows.append(
            f'<tr><td border="1" width="14" bgcolor="{fill}" color="{border}"></td><td align="left">{text}</td></tr>'
        )
    return f'<table border="0">{"".join(rows)}</table>' if rows else ""


def by_graphviz(source: str) -> str:
    """What ``dot`` makes of its source: the SVG element alone, as a page can hold it."""
    done = subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, text=True, encoding="utf-8", timeout=120)
    if done.returncode:
        raise RuntimeError(f"graphviz: dot failed: {done.stderr.strip()}")
    return done.stdout[done.stdout.index("<svg") :]


# ---- as text -----------------------------------------------------------------------------------------------------


def tree(drawing: Drawing) -> Iterable[str]:
    """Lines: what each box is made of stands below it, and further in where that is more than one."""
    above: list[list[int]] = [[] for _ in drawing.boxes]
    for a, b in drawing.edges:
        above[b].append(a)
    numbers: dict[int, int] = {}
    if drawing.title:
        yield drawing.title
    todo = [(end, "", "") for end in reversed(drawing.ends)]
    often = {n for n in range(len(above)) if sum(n in row for row in above) > 1} if len(above) < 2000 else set()
    while todo:
        n, here, after = todo.pop()
        box = drawing.boxes[n]
        marks = [kind for kind in box.kinds if kind not in ("op", "output")]
        text = " ".join(box.lines) + (f"  [{', '.join(marks)}]" if marks else "")
        if n in numbers:
            yield f"{here}{text}  (see {numbers[n]})"
            continue
        if n in often:
            numbers[n] = len(numbers) + 1
            text += f"  ({numbers[n]})"
        yield here + text
        sources = above[n]
        if len(sources) == 1:
            todo.append((sources[0], after, after))
        else:
            branches = [(s, after + "├─ ", after + "│  ") for s in sources[:-1]]
            branches += [(s, after + "└─ ", after + "   ") for s in sources[-1:]]
            todo += reversed(branches)


# ---- as SVG ------------------------------------------------------------------------------------------------------


def drawn(drawing: Drawing) -> str:
    """The picture, laid out here."""
    at, paths = lay_out([box.size for box in drawing.boxes], drawing.edges)
    margin, top = 12.0, 30.0 if drawing.title else 12.0
    legend = drawing.legend
    right = max((x + box.size[0] / 2 for (x, _), box in zip(at, drawing.boxes, strict=True)), default=0.0)
    low = max((y + box.size[1] / 2 for (_, y), box in zip(at, drawing.boxes, strict=True)), default=0.0)
    right = max(
        right, len(drawing.title) * CHARACTER, max(len(text) for *_, text in legend) * 6.2 + 20 if legend else 0
    )
    height = top + low + margin + 16 * len(legend) + 8
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right + 2 * margin:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {right + 2 * margin:.0f} {height:.0f}" font-family="monospace" font-size="12">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#868e96"/></marker></defs>',
        f'<rect width="{right + 2 * margin:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    if drawing.title:
        out.append(f'<text x="{margin}" y="18" fill="#343a40">{escape(drawing.title)}</text>')
    for path in paths:
        d = curve([(x + margin, y + top) for x, y in path])
        out.append(f'<path d="{d}" fill="none" stroke="#868e96" marker-end="url(#arrow)"/>')
    for (x, y), box in zip(at, drawing.boxes, strict=True):
        width, tall = box.size
        left, up = x - width / 2 + margin, y - tall / 2 + top
        fill, border = box.look
        dashed = ' stroke-dasharray="4 2"' if box.freed else ""
        out.append(f"<g><title>{escape(box.tip)}</title>" if box.tip else "<g>")
        out.append(
            f'<rect x="{left:.1f}" y="{up:.1f}" width="{width:.1f}" height="{tall:.1f}" rx="5" fill="{fill}" '
            f'stroke="{border}"{dashed}/>'
        )
        for i, line in enumerate(box.shown):
            down = up + INSIDE / 2 + LINE * (i + 0.77)
            out.append(f'<text x="{x + margin:.1f}" y="{down:.1f}" text-anchor="middle">{escape(line)}</text>')
        out.append("</g>")
    for i, (fill, border, text) in enumerate(legend):
        down = top + low + margin + 16 * i
        out.append(f'<rect x="{margin}" y="{down:.1f}" width="12" height="10" rx="2" fill="{fill}" stroke="{border}"/>')
        out.append(f'<text x="{margin + 18}" y="{down + 9:.1f}" font-size="10" fill="#495057">{escape(text)}</text>')
    return "\n".join([*out, "</svg>"])


def curve(points: list[Point]) -> str:
    """A smooth path through the points, upright at each of them."""
    d = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        d += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    return d
