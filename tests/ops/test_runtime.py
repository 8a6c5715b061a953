"""What rooms above, and ops that are declared later, give to ops."""

import re
import subprocess
import sys

import pytest

import leafgrad as lg
from leafgrad.ops.runtime import Runtime, runtime

GIVEN = """
import leafgrad as lg
from leafgrad.ops.runtime import runtime

x = lg.tensor([1 + 2j], requires_grad=True)
(x * x).backward(lg.tensor([1j]))
lg.func.vmap(lambda x: x + lg.randn(()), randomness="different")(lg.zeros(2))
print([name for name in runtime.__slots__ if not hasattr(runtime, name)])
"""


def test_all_of_it_is_given_when_it_is_needed():
    done = subprocess.run([sys.executable, "-c", GIVEN], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n", done.stderr


def test_it_is_what_it_is_said_to_be():
    assert {*Runtime.__slots__} == {*Runtime.__annotations__}
    assert runtime.tensor is lg.Tensor


def test_an_op_that_takes_no_complex_numbers_says_what_gives_their_parts():
    with pytest.raises(NotImplementedError, match=re.escape("leafgrad.view_as_real(), .real and .imag give them")):
        lg.erf(lg.tensor([1j]))
