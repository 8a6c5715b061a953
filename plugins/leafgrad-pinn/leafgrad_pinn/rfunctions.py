"""R-functions: set operations on functions that are positive inside a set, zero on its boundary and negative outside.

Source: Rvachev and Sheiko (1995), Appl. Mech. Rev. 48, 151; Sukumar and Srivastava (2022), CMAME 389, 114333.
"""

from __future__ import annotations

from leafgrad import Tensor


def both(a: Tensor, b: Tensor) -> Tensor:
    """Positive where both are; smooth but where both are zero. (n,), (n,) -> (n,)"""
    result: Tensor = a + b - (a.square() + b.square()).sqrt()
    return result


def either(a: Tensor, b: Tensor) -> Tensor:
    """Positive where one of them is; smooth but where both are zero. (n,), (n,) -> (n,)"""
    result: Tensor = a + b + (a.square() + b.square()).sqrt()
    return result


def trimmed(f: Tensor, t: Tensor) -> Tensor:
    """Zero where f is zero and t not negative, else positive; smooth but where both are zero. (n,), (n,) -> (n,)"""
    cut = ((t.square() + f.square().square()).sqrt() - t) / 2
    return f.square() + cut.square()
