"""The instructions of code, one for each variable that it loads or stores."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from types import CodeType

VARIABLES = re.compile("(?:LOAD|STORE)_FAST(?:_BORROW)?")


def instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """What ``dis`` finds; from Python 3.13 on, one of Python's may load or store two variables."""
    for step in dis.get_instructions(code):
        if "_FAST" not in step.opname or isinstance(step.argval, str):
            yield step
        else:
            for name, variable in zip(VARIABLES.findall(step.opname), step.argval, strict=True):
                yield step._replace(opname=name, opcode=dis.opmap[name], argval=variable)
