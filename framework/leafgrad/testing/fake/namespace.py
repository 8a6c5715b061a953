"""NumPy's functions on arrays of the stand-in device, as far as CuPy has them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from leafgrad.testing.fake import surface
from leafgrad.testing.fake.array import FakeArray, FakeFunction, refuse_keywords, run_hidden, wrapped


class _Ufunc(FakeFunction):
    """A ufunc with what CuPy's have: out, dtype and casting; methods only where CuPy has them."""

    def __init__(self, ufunc: np.ufunc) -> None:
        super().__init__(ufunc, ufunc.__name__)
        self.nin, self.nout, self.nargs = ufunc.nin, ufunc.nout, ufunc.nargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        allowed = {"out", "dtype", "casting"} | ({"axes", "axis"} if self.__name__ == "matmul" else set())
        refuse_keywords(self.__name__, kwargs.keys() - allowed)
        return run_hidden(self._function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name not in ("reduce", "accumulate", "reduceat", "at", "outer"):
            raise AttributeError(f"ufuncs of CuPy have no attribute {name!r}")
        if self.__name__ not in surface.UFUNC_METHODS.get(name, (self.__name__,)):
            raise NotImplementedError(f"xp.{self.__name__}.{name}: CuPy has none")
        if name == "at":
            return self._at
        return FakeFunction(getattr(self._function, name), f"{self.__name__}.{name}")

    def _at(self, array: FakeArray, key: Any, *values: Any) -> None:
        run_hidden(self._function.at, (array, wrapped(array, key), *values))


class Namespace:
    """What op forwards receive as `xp`: the part of a NumPy module that CuPy has too, on FakeArrays."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        path = f"{self._module.__name__}.{name}".removeprefix("numpy.")
        value = getattr(self._module, name, None)
        if name.startswith("_") or (value is None and name != "newaxis") or path in surface.ABSENT:
            raise AttributeError(f"xp.{path} does not exist, or CuPy has none")
        if isinstance(value, np.ufunc):
            value = _Ufunc(value)
        elif isinstance(value, type):
            value = FakeArray if value is np.ndarray else self._checked_class(value, path)
        elif isinstance(value, ModuleType):
            if path not in ("linalg", "fft"):
                raise AttributeError(f"xp.{path}: not for ops; random numbers come from the backend's generator")
            value = Namespace(value)
        elif callable(value):
            value = FakeFunction(value, path)
        elif not isinstance(value, float | None) and name not in ("s_", "index_exp"):
            raise AttributeError(f"xp.{path} would make host arrays")
        setattr(self, name, value)
        return value

    @staticmethod
    def _checked_class(value: type, path: str) -> type:
        if issubclass(value, np.generic | np.dtype | np.finfo | np.iinfo | Exception):
            return value
        raise AttributeError(f"xp.{path}: not for ops, it would take or make host arrays")
