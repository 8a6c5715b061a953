"""Op, its definition, and the one dispatch that runs it on arrays, Tensors and Symbols."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, overload

from leafgrad import backends, dtypes, modes
from leafgrad.errors import MissingGradientError
from leafgrad.modes import ANOMALY, BATCH, GRAD, INFERENCE, PACK, PACKER, TRACE, WATCH, tracer, watched
from leafgrad.ops import call, dispatch, first_call, messages, narrow, promotion, returned
from leafgrad.ops.conjugate import Conjugating, is_complex, refusal
from leafgrad.ops.declarations import Declarations, Forward
from leafgrad.ops.node import FREED, SEQ, Epoch, GraphNode, Node, Output, SymbolBase, T, TensorBase, Version
from leafgrad.ops.pull import RuleCall, compile_pull, compile_rule
from leafgrad.ops.runtime import runtime
from leafgrad.ops.signature import Signature, as_now
from leafgrad.ops.traits import dims_of, expand, normalized

BACKENDS, BY_ARRAY_DTYPE = backends.BACKENDS, dtypes.BY_ARRAY_DTYPE
MANY = TRACE | BATCH
get_mode = modes.get
new = object.__new__
SHAPE, DTYPE, GIVEN = operator.attrgetter("shape"), operator.attrgetter("dtype"), partial(operator.is_not, None)

Pulled = Sequence[tuple[GraphNode, Any]]


class Op(Declarations):
    """An operation: one forward over an array namespace, one vjp rule per differentiable argument.

    Calling it with raw arrays computes; with Tensors it computes and records a node; with Symbols it records an
    equation. Array arguments are positional, parameters keyword-only.

    Attributes:
        name: unique among all ops.
        signature: arguments, parameters and their defaults.
        label: the name of its nodes, PyTorch's.
        traits: what passes and forward mode may assume (``"elementwise"``, ``"linear"``, ...).
        c: what it computes of one element, as a C expression of its arguments and parameters; None if unknown.
        ufunc: the one function of the array namespace that its forward calls; None if it does something else.
        function: the plain function that calls the op, written from its declarations (``ops/call.py``).
        straight: whether that may run the forward on raw arrays itself.
        ours: whether it is an op of this package, whose forward and rules are tested instead of watched.
        ordered: runs once per call, and in the order of calls.
        keeps_layout: whether the result may lie in memory as its arguments do, rather than in the order of dimensions.
        dims: the parameter that names dimensions to be normalised, ``"dim"``; None if there is none.
    """

    straight = True
    form: Callable[[Any], Any] | None = None  # how a node of it is shown, where that depends on the call: see forms.py
    saved_as: Mapping[str, str] = {}  # names of arguments that nodes keep, where they are not those of all ops
    autocast: Literal["lower", "float32"] | None = None  # whether autocast takes its arguments in 16 bits, or in 32
    no_bool: str | None = None  # what is said of bool tensors, where the op takes none
    exact = False  # whether it takes a Python number beside 16 bits in float32; others take it in these, as PyTorch's
    within_float16 = False  # whether numbers beyond all of float16 are an error beside it, as in PyTorch
    transparent = False  # whether it only hands an unbatched argument to vmap, once; other uses of that go past it
    batching: Callable[[Any], Any] | None = None
    shares = False  # whether it only hands an argument over to a batch, once; other uses of that go past it
    makes: str | None = None  # "real" or "complex", where it makes such numbers whatever its arguments are
    crosses = False  # whether its result lies on another device than its arguments
    inverse: Op | None = None  # where its result is the same memory, in a batch or out of it: what leads back

    def __init__(self, forward: Forward, name: str, traits: frozenset[str], signature: Signature) -> None:
        super().__init__(forward, name, traits, signature)
        self.label = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Backward0"
        self.arity = 0 if signature.variadic else len(signature.arguments)
        self.__name__ = self.__qualname__ = name
        self.__doc__ = forward.__doc__
        self.__module__ = forward.__module__
        self.kernels: dict[str, Forward] = {}
        self.table: dict[type, tuple[Forward, Any]] = {}
        narrow.TABLES.extend((self.table, self.lines))
        self.calls: dict[str, RuleCall] = {}
        self.arity = 0 if self.signature.variadic else len(self.signature.arguments)
        self.ours = (forward.__module__ or "").startswith("leafgrad.")
        self.differentiable = "nondifferentiable" not in traits
        self.ordered = bool(traits & {"random", "collective"})
        self.keeps_dtype = not traits & {"comparison", "any_dtype"}
        self.mixes_dtypes = "any_dtype" in traits
        self.converts_integers = "float" in traits and not self.mixes_dtypes
        self.holomorphic = "holomorphic" in traits
        self.takes_complex = self.holomorphic or "complex" in traits
        self.conjugating = Conjugating(self)
        self.count = len(signature.parameters)
        self.dims = dims_of(traits, signature)
        self.keeps_layout = bool(traits & {"elementwise", "view"})
        expand(self)
        self.function = call.function(self, self.general)

    def call(self, argument: str) -> RuleCall:
        """The rule of an argument, and what to call it with. Where there is none, a rule that says so."""

        def missing() -> Any:
            raise MissingGradientError(messages.no_rule(self, argument))

        return self.calls.get(argument) or (missing, ())

    @property
    def unconjugated(self) -> Op:
        """The op with its rules as they are written; see ``Conjugating``."""
        return self

    def __repr__(self) -> str:
        return messages.describe_op(self)

    def __str__(self) -> str:
        from leafgrad.ops import describe  # for those who ask what an op can do

        return describe.description(self)

    @property
    def __wrapped__(self) -> Forward:
        """The forward, whose source ``inspect.getsource`` shows."""
        return self.forward

    @property
    def __signature__(self) -> Any:
        """Arrays by position, parameters by keyword, for ``inspect``."""
        return call.SIGNATURES[self.arity] if call.operands(self) else self.signature.shown()

    def __reduce__(self) -> str:
        return self.forward.__qualname__  # a pickle has the op's name, and copies are the op itself

    # ---- dispatch ---------------------------------------------------------------------------------------------

    @overload
    def __call__(self, first: T, /, *args: Any, **params: Any) -> T: ...
    @overload
    def __call__(self, /, *args: Any, **params: Any) -> Any: ...
    def __call__(self, /, *args: Any, **params: Any) -> Any:
        try:
            return self.function(*args, **params)
        except TypeError as error:
            inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if inside or call.operands(self):
                raise
        return self.general(args, self.signature.bind(params))  # which finds the words for arguments that do not fit

    def general(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The call of everything that is not on the straight line of ``function``."""
        if params:
            params = self.signature.ordinary(params)
        if self.dims is not None:
            params = normalized(self, args, params)
        for a in args:
            if isinstance(a, TensorBase):
                return self.apply(args, params)
        return self.compute(args, params)

    def compute(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run on raw arrays, or record on Symbols."""
        first = None
        for a in args:
            if isinstance(a, SymbolBase):
                return dispatch.topmost(args).bind(self, args, params)
            if first is None and hasattr(a, "dtype"):
                first = a
            if not self.takes_complex and is_complex(a):
                raise refusal(self, args)
        if first is None:
            raise messages.no_array(self, args)
        return self.run(first, args, params)

    def run(self, first: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run the forward on raw arrays; ``first`` is one of them."""
        kind = type(first)
        forward, xp = self.table.get(kind) or self.resolve(kind)
        try:
            result = forward(xp, *args, **params)
        except Exception as error:
            raise messages.failed(self, args, params, error) from messages.cause(self, error)
        if type(result) is kind:
            return result
        return dispatch.wrap(self, kind, result)

    def resolve(self, kind: type) -> tuple[Forward, Any]:
        """The forward and array namespace for one class of arrays, remembered."""
        begun, backend = narrow.begun(), backends.backend_of_type(kind)
        forward = narrow.adapted(self, self.kernels.get(backend.name, self.forward), kind)
        forward = forward if self.ours else first_call.apart(self, forward)
        if self.signature.arguments and backend.device_count() > 1:
            forward = dispatch.on_device_of_arrays(forward, backend)
        checked = forward
        if not self.ours:

            def done() -> None:
                if self.table.get(kind) == (checked, backend.xp):
                    self.enter(kind, forward, backend)

            checked = first_call.watched(self, forward, done)
        self.enter(kind, checked, backend)
        if narrow.begun() is not begun:  # in another thread, meanwhile
            self.table.clear()
            self.lines.clear()
        return checked, backend.xp

    def enter(self, kind: type, forward: Forward, backend: backends.Backend) -> None:
        """Note the forward for a class of arrays, for the straight line too where one device is all that there is."""
        self.table[kind] = forward, backend.xp
        if backend.device_count() == 1 or self.arity == 1:
            self.lines[kind] = self.table[kind]

    def create(self, backend: backends.Backend, params: dict[str, Any]) -> Any:
        """Run an op that takes no arrays: a raw array of the backend, on its current device."""
        forward, xp = self.table.get(backend.array_type) or self.resolve(backend.array_type)
        try:
            return backend.wrap(forward(xp, **params))
        except MemoryError as error:
            raise messages.failed(self, (), params, error) from messages.cause(self, error)

    def apply(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run on Tensors: check, promote, compute, record. The complete path."""
        flags = get_mode()
        if flags & TRACE and (here := tracer()):
            return here.trace(self, args, params, flags)
        if flags & WATCH:
            return watched(self, args, lambda: self.general(args, params))
        if self.exact and (wide := promotion.beside_number(self, args)) is not None:
            return promotion.to_float16(self, args, self.apply(wide, params))
        args = promotion.prepare(self, args)
        raw = tuple([a._data if isinstance(a, TensorBase) else a for a in args])
        if flags & BATCH or any(isinstance(r, SymbolBase) and r.level for r in raw):
            args, raw = dispatch.in_batches(self, args, raw)
        if any(isinstance(r, SymbolBase) for r in raw):
            return self.record(args, params, raw, self.compute(raw, params), flags)
        first = next(r for r in raw if hasattr(r, "dtype"))  # not by compute(), of which a traceback tells nothing
        return self.record(args, params, raw, self.run(first, raw, params), flags)

    # ---- recording --------------------------------------------------------------------------------------------

    def trace(self, args: tuple[Any, ...], params: dict[str, Any], flags: int) -> Any:
        """The same in a trace, where something stands for each Tensor from outside."""
        here: Any = tracer()
        if self.exact and (wide := promotion.beside_number(self, args)) is not None:
            return promotion.to_float16(self, args, self.apply(wide, params))
        args = promotion.prepare(self, args)
        args = tuple([here.inside(a) if isinstance(a, TensorBase) else a for a in args])
        raw = tuple([here.lift(a) if isinstance(a, TensorBase) else a for a in args])
        if flags & BATCH or any(isinstance(r, SymbolBase) and r.level for r in raw):
            args, raw = dispatch.in_batches(self, args, raw)
        result = self.compute(raw, params)
        if self.keeps_layout and "view" not in self.traits:
            here.lay_out_as(result, args)
        return self.record(args, params, raw, result, flags)

    def plan(self, needs: tuple[bool, ...]) -> tuple[tuple[bool, ...], bool, bool]:
        """Which arguments (() if none), whether the output, and whether shapes are kept when ``needs`` require grad."""
        names = self.signature.arguments
        used: set[str] = set()
        for i, need in enumerate(needs):
            if need:
                used |= self.uses[self.signature.slot(i)]
        keep = tuple(names[self.signature.slot(i)] in used for i in range(len(needs)))
        found = keep if any(keep) else (), "out" in used, any(u.endswith("_shape") for u in used)
        self.plans[needs] = found
        return found

    def record(
        self, args: tuple[Any, ...], params: dict[str, Any], raw: tuple[Any, ...], result: Any, flags: int
    ) -> Any:
        """Wrap the result in a Tensor (or several), with a node where some argument requires grad."""
        if not self.keeps_layout:
            result = dispatch.in_order(result)
        elif len(raw) > 1 and type(result) is not tuple and "view" not in self.traits:
            result = dispatch.as_operands(result, raw)
        edges: tuple[Any, ...] = ()
        if flags & GRAD and self.differentiable:
            if len(args) < self.arity:
                args += (None,) * (self.arity - len(args))
            edges = tuple([
                (a._history if a._view is None else a._node) if isinstance(a, TensorBase) else None for a in args
            ])  # fmt: skip
        if type(result) is tuple:
            return self.several(args, params, raw, result, edges, flags)
        node = None
        if any(edges) and dispatch.is_differentiable(result):
            node = self.node(args, params, raw, result, edges, flags)
        (out,) = self.made([result], node, flags)
        if "view" not in self.traits:
            return out
        return runtime.view(self, args[0], params if self.ours else as_now(params), out)

    def several(self, args: Any, params: Any, raw: Any, results: Any, edges: Any, flags: int) -> tuple[Any, ...]:
        """A Tensor around each of several results, with one node for all where an argument requires grad."""
        if "view" in self.traits:
            raise messages.definition(
                self.name,
                f"the trait 'view' is for one result, but its forward gives {len(results)}; leave it out, so that they "
                "are copies, or make an op of each",
            )
        kind = type(raw[0]) if hasattr(raw[0], "dtype") else next(type(r) for r in raw if hasattr(r, "dtype"))
        parts: list[Any] = []
        for r in results:
            if not isinstance(r, SymbolBase):
                r = r if type(r) is kind else dispatch.wrap(self, kind, r)
                r = r if r.flags.c_contiguous else dispatch.copied(r)
            parts.append(r)
        node = self.node(args, params, raw, tuple(parts), edges, flags) if any(edges) else None
        return tuple(self.made(parts, node, flags, numbered=True))

    def node(self, args: Any, params: Any, raw: Any, result: Any, edges: Any, flags: int) -> Node:
        node = Node()
        node.op = self
        for r in raw if self.holomorphic else ():
            if isinstance(r, complex) or getattr(getattr(r, "dtype", None), "kind", "") == "c":
                node.op = self.conjugating
        node.params = params if self.ours else as_now(params)
        node.edges = edges
        node.seq = next(SEQ)
        if type(result) is tuple:
            node.shape, node.dtypes, node.ends = tuple(map(SHAPE, result)), tuple(map(DTYPE, result)), {}
        else:
            node.shape = result.shape
        node.hooks = None
        keep, keep_out, keep_shapes = self.plans.get(needs := tuple(map(GIVEN, edges))) or self.plan(needs)
        args += (None,) * (len(edges) - len(args))
        saved, outside = [], False
        for x, kept, edge in zip(args, keep, edges, strict=False):  # no plan where none is kept
            saved.append(x if kept else None)
            outside = outside or (kept and edge is None and getattr(x, "_writes", None) is dispatch.INFERENCE_VERSION)
        node.saved = tuple(saved)
        if outside:
            dispatch.refuse_inference(self, node)
        node.out = result if keep_out else None
        node.version = Version() if keep_out else None
        node.shapes = tuple([getattr(r, "shape", ()) for r in raw]) if keep_shapes else None
        if not self.ours:
            node.takes = tuple([getattr(r, "dtype", None) for r in raw])
            node.dtypes = tuple(map(DTYPE, result if type(result) is tuple else (result,)))
        if flags & ANOMALY:
            node.where = messages.user_line()
        if flags & PACK:
            PACKER.get()(node)
        return node

    def made(self, results: Sequence[Any], node: Node | None, flags: int, *, numbered: bool = False) -> list[Any]:
        """A Tensor around each result, an output of ``node``: one of several if they are ``numbered``."""
        ends: list[Any] = [None] * len(results)
        if node is not None:
            ends = Output.each(node, enumerate(map(SHAPE, results))) if numbered else [node]
        made = []
        for data, end in zip(results, ends, strict=True):
            out = new(runtime.tensor)
            out._data, out._epoch = data, Epoch.now
            out._history = out._leaf = out._view = None
            out._writes = dispatch.INFERENCE_VERSION if flags & INFERENCE else None
            if flags & TRACE and (here := tracer()):
                here.made(out)
            if node is not None and (BY_ARRAY_DTYPE.get(data.dtype) or dtypes.of(data)).is_differentiable:
                out._history = end
                out._writes = out._writes if node.version is None else node.version
            made.append(out)
        return made

    # ---- backward ---------------------------------------------------------------------------------------------

    def pull(self, node: Node, g: Any, needed: set[GraphNode] | None) -> Pulled:
        """Each edge that needs one, with its gradient as a raw array."""
        if not self.signature.variadic:  # from now on, the same written out for this op
            calls = [self.call(a) for a in self.signature.arguments]
            written: Callable[..., Pulled] = vars(self).setdefault("pull", self.fitting(compile_pull(calls)))
            return written(node, g, needed)
        raw = tuple([s._data if isinstance(s, TensorBase) else s for s in self.checked(node)])
        return self.run_rules(node, g, needed, raw, node.out)

    def fitting(self, pull: Callable[..., Pulled], recorded: bool = False) -> Callable[..., Pulled]:
        """``pull``, which gives what gradients may be, whoever wrote the rules."""
        return pull if self.ours else returned.fitting(pull, recorded)

    def written(self) -> tuple[Callable[..., Any], ...]:
        """The rule of each argument as ``f(g, args, out, shapes, params, index)``, made at its first use.

        Without a lock, as of a cached_property before Python 3.12, which nobody opens in a child of a fork.
        """
        found: tuple[Callable[..., Any], ...] | None = vars(self).get("rules")
        return found or vars(self).setdefault(
            "rules", tuple(map(compile_rule, map(self.call, self.signature.arguments)))
        )

    def pull_recorded(self, node: Node, g: Any, needed: set[GraphNode] | None) -> Pulled:
        """The same with Tensors, connected to the graph that made the saved values."""
        if not self.signature.variadic:
            calls = [self.call(a) for a in self.signature.arguments]
            pull = self.fitting(compile_pull(calls, recorded=True), recorded=True)
            written: Callable[..., Pulled] = vars(self).setdefault("pull_recorded", pull)
            return written(node, g, needed)
        saved = self.checked(node)
        args = tuple([
            dispatch.connect(s, e) if isinstance(s, TensorBase) else s
            for s, e in zip(saved, node.edges, strict=False)
        ])  # fmt: skip
        return self.run_rules(node, g, needed, args, dispatch.reconnect_output(node))

    def checked(self, node: Node) -> tuple[Any, ...]:
        """The saved values, after checking that none was freed or overwritten."""
        if node.saved is FREED:
            raise messages.freed()
        saved: tuple[Any, ...] = node.saved
        for s in saved:
            if isinstance(s, TensorBase) and s._writes is not None and s._writes.seq > node.seq:
                raise messages.modified(node, s._data, s._writes)
        if node.version is not None and node.version.seq > node.seq:
            raise messages.modified(node, node.out, node.version)
        return saved

    def run_rules(self, node: Node, g: Any, needed: set[GraphNode] | None, args: Any, out: Any) -> Pulled:
        rules = self.written()
        result: list[tuple[GraphNode, Any]] = []
        for i, edge in enumerate(node.edges):
            if edge is not None and (needed is None or edge in needed):
                rule = rules[self.signature.slot(i)]
                result.append((edge, rule(g, args, out, node.shapes, node.params, i)))
        if self.ours:
            return result
        recorded = any(isinstance(one, TensorBase) for one in (g if type(g) is tuple else (g,)))
        return returned.gradients(node, g, result, returned.kept(args, out, node.params), recorded)
