"""dtypes that PyTorch has and leafgrad has not: they can be compared with and named, but no tensor has them."""

from __future__ import annotations


class AbsentDtype:
    """A dtype that no tensor has. Where a dtype is needed, it is a TypeError that shows its name."""

    def __init__(self, name: str, *, floating: bool = False, complex: bool = False) -> None:
        self.name, self.is_floating_point, self.is_complex = name, floating, complex

    def __repr__(self) -> str:
        return f"torch.{self.name} (which leafgrad does not provide)"


bfloat16 = AbsentDtype("bfloat16", floating=True)
complex64 = cfloat = AbsentDtype("complex64", complex=True)
complex128 = cdouble = AbsentDtype("complex128", complex=True)
uint16, uint32, uint64 = AbsentDtype("uint16"), AbsentDtype("uint32"), AbsentDtype("uint64")
