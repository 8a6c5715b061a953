"""The instructions of code, one for each variable that it loads or stores."""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Iterator
from types import CodeType

VARIABLES = re.compile("(?:LOAD|STORE)_FAST(?:_BORROW)?")
NULLS_BEHIND = sys.version_info >= (3, 13)  # what is called, no more in front of it


def instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """What ``dis`` finds; from Python 3.13 on, one of Python's may load or store two variables.

    An attribute that is called has its mark, also where a null is pushed behind it, as there for those of modules.
    """
    called = None  # an attribute behind which a null is pushed
    for step in dis.get_instructions(code):
        if called is not None:
            pushed = NULLS_BEHIND and step.opname == "PUSH_NULL"
            yield called._replace(arg=(called.arg or 0) | 1) if pushed else called
            called = None
            if pushed:
                continue
        if step.opname == "LOAD_ATTR":
            called = step
        elif "_FAST" in step.opname and not isinstance(step.argval, str):
            for name, variable in zip(VARIABLES.findall(step.opname), step.argval, strict=True):
                yield step._replace(opname=name, opcode=dis.opmap[name], argval=variable)
        else:
            yield step
