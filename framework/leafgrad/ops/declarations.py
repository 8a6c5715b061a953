"""What may be declared of an op beside its forward, each in one place: next to it.

Every declaration is optional. Traits are shorthands for the commonest; what is declared goes before what a trait says.
Rules of the compiler and of executors are given what they work with, so that an op imports none of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Self, TypeVar

from leafgrad.ops import messages
from leafgrad.ops.pull import RuleCall
from leafgrad.ops.runtime import runtime
from leafgrad.ops.signature import Signature, declared, read_rule

Forward = Callable[..., Any]
Rule = TypeVar("Rule", bound=Callable[..., Any])


def spoken(what: str) -> str:
    """The name of a declaration in a sentence."""
    kind, _, of = what.partition(" ")
    match kind:
        case "vjp":
            return f"a vjp rule for argument {of!r}"
        case "kernel":
            return f"a kernel for backend {of!r}"
        case "lower":
            return f"a lower rule for executor {of!r}"
    return f"a {'batching' if kind == 'batched' else kind} rule"


class Declarations:
    """Base of Op: its name, its forward, and its rules.

    Attributes:
        shaping: the shape of its result, from those of its arguments.
        chunking: how a batch flows through it in a compiled step.
        batching: how it runs under vmap.
        summing: what its results of a batch add up to.
        expanding: the next coefficient of its Taylor series: a rule, which series it reads (-1 for ``out``), and which
            parameters.
        rewriting: what the compiler may put in its place, in turn.
        dynamic_form: what it is where numbers among its parameters are known only when a program runs.
        lowering: for each executor, how it is generated.
        never_copies: of a view, whether the result shares memory whatever sizes and strides are.
        methods: the names under which it is a function and a method of Tensor.
        transpose: the op that is its transpose, as a map of its first argument.
        origins: for each declaration, ``file:line`` of where it was made.
    """

    def __init__(self, forward: Forward, name: str, traits: frozenset[str], signature: Signature) -> None:
        self.forward = forward
        self.name = name
        self.traits = traits
        self.signature = signature
        self.__doc__ = forward.__doc__
        self.c: str | None = None
        self.ufunc: str | None = None
        self.kernels: dict[str, Forward] = {}
        self.table: dict[type, tuple[Forward, Any]] = {}
        self.lines: dict[type, tuple[Forward, Any]] = {}  # the same for classes of arrays that lie on one device
        self.functions: list[FunctionType] = []  # all that are written from the declarations
        self.calls: dict[str, RuleCall] = {}
        self.uses: tuple[frozenset[str], ...] = (frozenset(),) * len(signature.arguments)
        self.plans: dict[tuple[bool, ...], tuple[tuple[bool, ...], bool, bool]] = {}
        self.shaping: Callable[..., Any] | None = None
        self.chunking: Callable[[Any], Any] | None = None
        self.batching: Callable[[Any], Any] | None = None
        self.summing: Callable[[Any], Any] | None = None
        self.expanding: tuple[Callable[..., Any], tuple[int, ...], tuple[str, ...]] | None = None
        self.rewriting: tuple[Callable[[Any, Any], Any], ...] = ()
        self.dynamic_form: Callable[..., Any] | None = None
        self.lowering: dict[str, Callable[..., Any]] = {}
        self.methods: tuple[str, ...] = ()
        self.never_copies = False
        self.transpose: Declarations | None = None
        self.origins: dict[str, str] = {}
        self.places: dict[str, tuple[str, int] | None] = {}  # for each, where the code of its rule is

    def vjp(self, /, *unnamed: Any, **rules: Callable[..., Any]) -> Self:
        """Give the gradient rules, one per differentiable argument.

        A rule's parameters are its save-list: ``g`` (gradient of the output), ``out``, any argument by name, an
        argument's shape as ``<name>_shape``, and, keyword-only, parameters of the op. A rule returns the gradient
        of its argument, before un-broadcasting, or None for zero. Rules are written with ops and operators.

        Raises:
            OpDefinitionError: unknown argument or rule parameter, a rule without a name, an op that is
                "nondifferentiable", or one that has rules already.
        """
        if unnamed:
            argument = next(iter(self.signature.arguments), "x")
            raise messages.definition(
                self.name, f"vjp: expected each rule by the name of its argument, as vjp({argument}=lambda g: ...)"
            )
        if "nondifferentiable" in self.traits:
            raise messages.definition(
                self.name, "vjp: expected no rules, as the trait 'nondifferentiable' says; leave out one of the two"
            )
        uses = list(self.uses)
        for argument, rule in rules.items():
            i = self.signature.index(argument)
            self.check(f"vjp {argument}", rule)
            uses[i], call = read_rule(rule, argument, self.signature)
            self.declare(f"vjp {argument}", rule)
            self.calls[argument] = rule, call
        self.uses = tuple(uses)
        self.plans.clear()
        for made in ("rules", "pull", "pull_recorded"):
            vars(self).pop(made, None)
        for function in self.functions:
            function.__code__ = function.__globals__["stub"]  # to be written anew
        return self

    def kernel(self, backend: str) -> Callable[[Rule], Rule]:
        """Replace the forward on one backend: ``@gelu.kernel("cupy")``. Same arguments, same result.

        One for ``"bfloat16"`` is given arrays of that dtype as they are; without one, the forward is given float32.

        Raises:
            OpDefinitionError: the kernel's parameters differ from the forward's, or the backend has one already.
        """

        def register(forward: Rule) -> Rule:
            self.check(f"kernel {backend}", forward)
            self.signature.check_kernel(forward, backend)
            self.declare(f"kernel {backend}", forward)
            self.kernels[backend] = forward
            self.table.clear()
            self.lines.clear()
            return forward

        return register

    def shape(self, rule: Rule) -> Rule:
        """Say what the op makes, so that it is traced without being run: ``smooth.shape(lambda x, *, dim: ...)``.

        The rule's positional parameters are the op's arguments, in order, each with ``shape``, ``ndim`` and ``dtype``
        (a name, None for a number; a missing argument is None); the keyword-only ones are parameters of the op. It
        returns the shape of the result, of the first argument's dtype, or ``x.like(shape, dtype)``; for several
        results, a list of such. ``None``, a ValueError or an IndexError mean that the op itself must tell.

        Raises:
            OpDefinitionError: a parameter that the op lacks, or the op has a rule already.
        """
        self.check("shape", rule)
        positional, parameters, star, _ = declared(rule)
        for name in parameters:
            if name not in self.signature.parameters:
                known = ", ".join(self.signature.parameters) or "none"
                raise messages.definition(self.name, f"shape rule: unknown parameter {name!r}; the op has: {known}")
        if not star and len(positional) != len(self.signature.arguments):
            raise messages.definition(
                self.name, f"shape rule: expected the arguments ({', '.join(self.signature.arguments)})"
            )
        self.declare("shape", rule)
        self.shaping = rule
        return rule

    def chunk(self, rule: Rule) -> Rule:
        """Say how the rows of a batch flow through the op: ``@smooth.chunk``, of a function ``rule(call)``.

        ``call`` is a ``leafgrad.compile.schedule.axes.ChunkCall``; the rule returns what one of its methods gives, or
        None if the op needs all rows at once.

        Raises:
            OpDefinitionError: the op has a rule already.
        """
        self.declare("chunk", rule)
        self.chunking = rule
        return rule

    def batched(self, rule: Rule) -> Rule:
        """Say how the op runs on a batch, under vmap: ``@my_op.batched``, of a function ``rule(call)``.

        ``call`` is a ``leafgrad.func.BatchedCall``; the rule returns the raw result with the batch as dimension 0.

        Raises:
            OpDefinitionError: the op has a rule already.
        """
        self.declare("batched", rule)
        self.batching = rule
        return rule

    def summed(self, rule: Rule) -> Rule:
        """Say what the results of a batch add up to, where that needs none of them: ``@matmul.summed``.

        Under vmap the gradient by what all samples share is such a sum. ``rule(call)`` is given a
        ``leafgrad.func.BatchedCall`` and returns the shape of one result and a function that makes the raw sum, or None
        if the results must be made.

        Raises:
            OpDefinitionError: the op has a rule already.
        """
        self.declare("summed", rule)
        self.summing = rule
        return rule

    def jet(self, rule: Rule) -> Rule:
        """Say how Taylor series go through the op, where its vjp rules alone would be slow: ``@div.jet``.

        The rule's parameters are ``out``, arguments of the op by name, and, keyword-only, parameters. Each of the first
        is a list of coefficients from order 0 on, with None for zero: those of ``out`` up to k - 1, of arguments up to
        k. It returns coefficient k of the result, or None. Order 0 is there if a vjp rule by an argument that varies
        reads it; else it is something that no arithmetic takes. ``leafgrad.ops.series`` has sums and products.

        Raises:
            OpDefinitionError: a name that the op lacks, an op with ``*xs``, or the op has a rule already.
        """
        self.check("jet", rule)
        positional, parameters, star, stars = declared(rule)
        known = ("out", *self.signature.arguments)
        unknown = [n for n in positional if n not in known] + [
            p for p in parameters if p not in self.signature.parameters
        ]
        if unknown:
            names = f"{', '.join(known)}, and parameters of the op after *"
            raise messages.definition(self.name, f"jet rule: unknown name {unknown[0]!r}; it may read {names}")
        if star or stars or self.signature.variadic:
            raise messages.definition(self.name, "jet rule: name each value; ops of any number of arguments have none")
        reads = tuple([known.index(name) - 1 for name in positional])
        self.declare("jet", rule)
        self.expanding = rule, reads, tuple(parameters)
        return rule

    def rewrite(self, rule: Rule) -> Rule:
        """Let the compiler put something simpler in the op's place: ``@smooth.rewrite``, of ``rule(graph, equation)``.

        ``graph`` is a ``leafgrad.compile.passes.rewrite.Rewriter``: ``graph.emit(op, *inputs, **params)`` makes an
        equation. The rule returns the value to use instead, a tuple of them for several results, or None. Several rules
        are tried in order.
        """
        self.declare(f"rewrite {len(self.rewriting) + 1}", rule)
        self.rewriting += (rule,)
        return rule

    def dynamic(self, rule: Rule) -> Rule:
        """Say what the op is where numbers among its parameters are known only when a program runs: ``@part.dynamic``.

        Without it a compiled step is for one value of each. ``rule(numbers, *args, **params)`` is given a
        ``leafgrad.compile.record.dynamic.DynamicNumbers``. It returns the raw result, made by ops, or None where the
        numbers must be known after all. How it finds that they compare becomes a guard.

        Raises:
            OpDefinitionError: the op has a rule already.
        """
        self.declare("dynamic", rule)
        self.dynamic_form = rule
        return rule

    def lower(self, executor: str, rule: Rule | None = None) -> Any:
        """Say how an executor generates the op: ``smooth.lower("native", rule)``, or as a decorator.

        What the rule is given, and returns, is the executor's to say: see its documentation.

        Raises:
            OpDefinitionError: the op has a rule for this executor already.
        """

        def register(rule: Rule) -> Rule:
            self.declare(f"lower {executor}", rule)
            self.lowering[executor] = rule
            return rule

        return register if rule is None else register(rule)

    def method(self, name: str) -> Self:
        """Make the op a method of Tensor, a function of ``leafgrad``, and one of the array API's namespace.

        There, parameters may be given by position, behind the arrays: ``x.smooth(-1)``.

        Raises:
            OpDefinitionError: a name that is no identifier, or that Tensor or leafgrad has already.
        """
        if not (isinstance(name, str) and name.isidentifier()):
            raise messages.definition(self.name, f"method: expected an identifier, got {name!r}")
        try:
            runtime.attach(name, self.by_position(name))
        except TypeError as error:
            raise messages.definition(self.name, str(error)) from None
        self.declare(f"method {name}", self)
        self.methods += (name,)
        return self

    def by_position(self, name: str) -> Callable[..., Any]:
        """The op as a function whose parameters, too, may be given by position.

        Its first arguments are ``input`` and ``other``, too, as PyTorch calls them.
        """
        arrays, parameters = len(self.signature.arguments), tuple(self.signature.parameters)
        names = self.signature.arguments
        named = {k: name for k, name in zip(("input", "other"), names, strict=False) if k not in parameters}

        def function(*args: Any, **params: Any) -> Any:
            if params:
                params = {named.get(name, name): value for name, value in params.items()}
                args += tuple([params.pop(name) for name in names[len(args) :] if name in params])
            extra = () if self.signature.variadic else args[arrays:]
            if len(extra) > len(parameters):
                raise TypeError(f"{name}: expected {name}({self.signature}), got {len(args)} arguments")
            for parameter, value in zip(parameters, extra, strict=False):
                if parameter in params:
                    raise TypeError(f"{name}: got several values for {parameter!r}")
                params[parameter] = value
            return self(*args[: len(args) - len(extra)], **params)

        function.__name__ = function.__qualname__ = name
        function.__doc__, function.__module__ = self.__doc__, self.forward.__module__
        vars(function)["__signature__"] = self.signature.public()
        vars(function)["op"] = self.name
        return function

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Run the op."""
        raise NotImplementedError

    def check(self, what: str, rule: Any) -> None:
        """An OpDefinitionError if a declaration is no function, or made already."""
        if not callable(rule):
            raise messages.definition(self.name, f"{what}: expected a function, got {rule!r}")
        origin = self.origins.get(what, "trait ")
        if origin.startswith(("trait ", "transpose of ")):
            return
        again = origin == declaring_line() and self.places.get(what) == place_of(rule) is not None
        if not again:  # an import that was cut is made anew
            raise messages.definition(self.name, f"already has {spoken(what)}, from {origin}")

    def declare(self, what: str, rule: Any) -> None:
        """Check a declaration, and note where it is made."""
        self.check(what, rule)
        self.origins[what], self.places[what] = declaring_line(), place_of(rule)


def declaring_line() -> str:
    """The innermost line outside this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def place_of(rule: Any) -> tuple[str, int] | None:
    """Where the code of a rule is written; None of what is no function."""
    code = getattr(rule, "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)
