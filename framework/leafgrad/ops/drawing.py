"""Ops that draw: where their random numbers come from."""

from __future__ import annotations

from typing import Any

from leafgrad import backends, devices
from leafgrad.backends.place import place
from leafgrad.ops import dispatch, messages
from leafgrad.ops.declarations import Forward
from leafgrad.ops.node import SymbolBase, TensorBase
from leafgrad.ops.op import Op
from leafgrad.ops.runtime import runtime
from leafgrad.ops.signature import REQUIRED, Signature


class RandomOp(Op):
    """An op that draws from its parameter ``generator``.

    Its forward is given a ``leafgrad.backends.Generator``. Who calls the op gives a ``leafgrad.Generator``, or none:
    that is the default one of the device where the arguments are, which ``leafgrad.manual_seed`` starts. An op without
    arguments draws on the device on which tensors are made.
    """

    def __init__(self, forward: Forward, name: str, traits: frozenset[str], signature: Signature) -> None:
        super().__init__(forward, name, traits, signature)
        if signature.parameters.get("generator", None) is not REQUIRED:
            raise messages.definition(
                name, "a random op draws from its parameter generator, without a default: f(xp, x, *, generator)"
            )

    def __call__(self, *args: Any, **params: Any) -> Any:
        generator = params.get("generator")
        if not isinstance(generator, backends.Generator):
            where = self.place(args)
            params["generator"] = runtime.stream(generator, where, self.name)
            if not args and not self.signature.arguments:
                return dispatch.create(self, where, **self.signature.bind(params))
        return super().__call__(*args, **params)

    @staticmethod
    def place(args: tuple[Any, ...]) -> tuple[str, int]:
        """The device of the first array among the arguments, by default that on which tensors are made."""
        for a in args:
            if isinstance(a, TensorBase):
                a = a._data
            if isinstance(a, SymbolBase):
                return a.place
            if hasattr(a, "dtype"):
                return place(a)
        return devices.given(None).resolve()
