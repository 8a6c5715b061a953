"""Distribution: shapes, validation, and what every distribution can be asked."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

from leafgrad import forks, modes
from leafgrad.distributions.constraints import Constraint, is_dependent
from leafgrad.dtypes import get_default_dtype
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.refuse import refuse
from leafgrad.tensor.creation import full
from leafgrad.tensor.shapes import broadcast_tensors
from leafgrad.tensor.size import Size
from leafgrad.tensor.tensor import Tensor

__all__ = ["Distribution"]

Parameter = Tensor | float | None
T = TypeVar("T")


class lazy_property(forks.cached_property[T]):
    """An attribute that is computed when it is first asked for, with its history even where nothing is recorded."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        with modes.inference_mode(False):
            return super().__get__(instance, owner)


class Distribution:
    """Base of all distributions: a batch of independent ones, each over events of one shape.

    A subclass sets ``arg_constraints`` and ``support`` and defines ``log_prob`` and ``rsample`` (where samples depend
    differentiably on the parameters) or ``sample``.

    Args:
        batch_shape: the shape of the batch.
        event_shape: the shape of one sample of one distribution.
        validate_args: whether parameters and values are checked; by default as ``set_default_validate_args`` says
            (they are). In a compiled step they are a part of the program.

    Raises:
        ValueError: a parameter that does not keep its constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = True
    arg_constraints: ClassVar[Any] = {}
    support: Any = None

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        self._given = frozenset(vars(self))  # before anything is computed when it is asked for
        if self._validate_args:
            for name, constraint in self._constraints().items():
                value = vars(self).get(name)
                if value is not None and not is_dependent(constraint):
                    self._check_parameter(name, value, constraint)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on check their parameters and values."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, got {value!r}")
        Distribution._validate_args = value

    def _constraints(self) -> Mapping[str, Constraint]:
        constraints: Mapping[str, Constraint] = self.arg_constraints
        return constraints

    def _check_parameter(self, name: str, value: Tensor, constraint: Constraint) -> None:
        hold(
            constraint.check(value),
            lambda: (
                f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{shown(value)}"
            ),
        )

    def _validate_sample(self, value: Any) -> None:
        """A ValueError if ``value`` cannot be a sample."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError(
                f"The value argument to log_prob must be a Tensor, got {type(value).__name__}; "
                "make one with leafgrad.tensor(...)"
            )
        shape, expected = tuple(value.shape), (*self._batch_shape, *self._event_shape)
        event = len(self._event_shape)
        if shape[len(shape) - event :] != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        if any(i != j and 1 not in (i, j) for i, j in zip(shape[::-1], expected[::-1], strict=False)):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        if self.support is not None:
            hold(
                self.support.check(value),
                lambda: (
                    f"Expected value argument (Tensor of shape {shape}) to be within the support "
                    f"({self.support!r}) of the distribution {self!r}, but found invalid values:\n{shown(value)}"
                ),
            )

    # ---- shapes -----------------------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> tuple[int, ...]:
        """The shape of samples: (*sample_shape, *batch_shape, *event_shape)."""
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The distribution with its batch expanded to ``batch_shape``; the parameters are views."""
        raise NotImplementedError(f"{type(self).__name__}: define expand(batch_shape)")

    def _expanded(self, batch_shape: Sequence[int], _instance: Any, **parameters: Any) -> Self:
        """Another distribution of this class, or ``_instance``, with these attributes, which are known to be good."""
        new = type(self).__new__(type(self)) if _instance is None else _instance
        vars(new).update(parameters)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: type[Distribution], _instance: Any = None) -> Any:
        """For ``expand`` in a class of others, derived from PyTorch's: ``_instance``, or an object without attributes.

        Raises:
            NotImplementedError: neither is given, and the class of ``self`` has a constructor that ``cls`` has not.
        """
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    # ---- samples and probabilities ----------------------------------------------------------------------------

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples of shape ``(*sample_shape, *batch_shape, *event_shape)``, without gradients."""
        with modes.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples through which gradients flow to the parameters, if ``has_rsample``."""
        raise NotImplementedError(f"{type(self).__name__} has no samples that depend differentiably on its parameters")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at ``value``. -> (*sample_shape, *batch_shape)"""
        raise NotImplementedError(f"{type(self).__name__}: define log_prob(value)")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of samples up to ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The number up to which samples lie with probability ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension; expanded to the batch, or not."""
        raise NotImplementedError(f"{type(self).__name__} has no finite support")

    def entropy(self) -> Tensor:
        """The entropy, in nats. -> batch_shape"""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def __repr__(self) -> str:
        given = [(name, vars(self)[name]) for name in self._constraints() if name in vars(self)]
        return f"{type(self).__name__}({', '.join(f'{name}: {shown(t, brief=True)}' for name, t in given)})"


class Univariate(Distribution):
    """Of numbers, with a parameter of the shape of the batch for each constraint."""

    def _set(self, validate_args: bool | None, **values: Any) -> None:
        """Take over parameters in their common shape, and check them."""
        vars(self).update(zip(values, parameters(*values.values()), strict=True))
        super().__init__(vars(self)[next(iter(values))].shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        given = {name: vars(self)[name].expand(batch_shape) for name in self.arg_constraints if name in self._given}
        return self._expanded(batch_shape, _instance, **given)


@modes.setting("whether distributions check their arguments")
def _validated() -> bool:
    return Distribution._validate_args


def hold(valid: Tensor, message: Callable[[], str]) -> None:
    """A ValueError unless all elements of ``valid`` are true: at once, and of a program in each of its calls."""
    if is_withheld(valid):
        refuse(valid.logical_not(), error=ValueError, message=message())
    elif not valid.all().item():
        raise ValueError(message())


def shown(value: Tensor, brief: bool = False) -> Any:
    """A number as such, and of tensors the elements or only the shape."""
    withheld = is_withheld(value)
    if value.numel() == 1 and not withheld:
        return value.item()
    return value.shape if brief or withheld else value


def is_withheld(value: Tensor) -> bool:
    """Whether no element of a tensor can be read: it is recorded, or stands for the samples of a batch."""
    return modes.tracer() is not None or isinstance(value._data, SymbolBase)


def parameters(*values: Any) -> tuple[Tensor, ...]:
    """Parameters in their common shape; numbers take dtype and device of the tensors among them.

    Raises:
        ValueError: something that is neither. RuntimeError: shapes that do not broadcast.
    """
    for value in values:
        if not isinstance(value, (Tensor, numbers.Real)):
            raise ValueError(f"Input arguments must all be instances of Number or Tensor, got {type(value).__name__}")
    like = next((value for value in values if isinstance(value, Tensor)), None)
    kind, place = (get_default_dtype(), "cpu") if like is None else (like.dtype, like.device)
    tensors = [v if isinstance(v, Tensor) else full((), float(v), dtype=kind, device=place) for v in values]
    return tuple(broadcast_tensors(*tensors))
