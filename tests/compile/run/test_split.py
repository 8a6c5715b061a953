"""Statements whose expressions need Python, in parts; those that can be taken out are marked with a star."""

from __future__ import annotations

import ast
import re

import pytest

from leafgrad.compile.run.split import span, split

SPLIT = {
    ("loss = mse(net(x), y) * draw()", "draw()"): """
        * A = mse(net(x), y)
          B = draw()
        * loss = A * B""",
    ("log.append(mse(net(x), y).item())", "log.append(mse(net(x), y).item())"): """
          A = log.append
        * B = mse(net(x), y).item()
          A(B)""",
    ("total += float(mse(net(x), y))", "float(mse(net(x), y))"): """
          A = float
        * B = mse(net(x), y)
          total += A(B)""",
    ("self.best = mse(net(x), y)", "self.best"): """
        * A = mse(net(x), y)
          self.best = A""",
    ("if mse(net(x), y) < limit(): pass", "limit()"): """
        * A = mse(net(x), y)
          B = limit()
          if A < B: pass""",
    ("h = x[draw(), 1:mse(x)] + net(x)", "draw()"): """
          A = draw()
        * h = x[A, 1:mse(x)] + net(x)""",
    # nothing is gained, or the order of evaluation depends on values
    ("z = x and draw()", "draw()"): "z = x and draw()",
    ("a = [draw() for _ in net(x)]", "draw()"): "a = [draw() for _ in net(x)]",
    ("self.total += mse(net(x), y) * draw()", "draw()"): "self.total += mse(net(x), y) * draw()",
    ("a = (b := net(x)) + draw()", "draw()"): "a = (b := net(x)) + draw()",
}


@pytest.mark.parametrize(("given", "expected"), SPLIT.items(), ids=[text for text, _ in SPLIT])
def test_a_statement_in_parts(given, expected):
    text, needs_python = given
    statement = ast.parse(text).body[0]
    node = next(n for n in ast.walk(statement) if isinstance(n, ast.expr) and ast.unparse(n) == needs_python)
    names, found = {}, []
    for part in split(statement, {span(node)}, frozenset({"total"}), frozenset({"x", "y"})):
        line = ast.unparse(part).replace(":\n   ", ":")
        line = re.sub(r"__value\d+__", lambda m: names.setdefault(m[0], chr(ord("A") + len(names))), line)
        found.append(("* " if getattr(part, "free", False) else "") + line)
    assert found == [line.strip() for line in expected.strip().splitlines()]
