"""Losses of very many classes, with the layer that scores them inside."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from leafgrad import modes
from leafgrad.nn import functional as F
from leafgrad.nn.containers import ModuleList, Sequential
from leafgrad.nn.linear import Linear
from leafgrad.nn.loss import WeightedLoss
from leafgrad.nn.module import Module
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.refuse import refuse
from leafgrad.ops.scalars import as_int
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.joining import cat
from leafgrad.tensor.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss", "LinearCrossEntropyLoss"]


class LinearCrossEntropyLoss(WeightedLoss):
    """The cross-entropy of softmax(linear(input)) and target. See ``functional.linear_cross_entropy``.

    Args:
        in_features: the size of an input.
        num_classes: the number of classes.
        out_features: for a target of each place in a grid of this shape.
        bias: learn one, too.
        weight, ignore_index, label_smoothing, reduction: as in ``CrossEntropyLoss``.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        scores = num_classes
        for n in self.out_features:
            scores *= n
        self.linear = Linear(in_features, scores, bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """(in_features,) or (batch, in_features), and its target"""
        grid = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*grid, self.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(grid),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options=None"
        )


class AdaptiveOutput(NamedTuple):
    """What ``AdaptiveLogSoftmaxWithLoss`` gives.

    Attributes:
        output: the logarithm of the probability of each target.
        loss: minus their mean.
    """

    output: Tensor
    loss: Tensor


def _may_be_asked(x: Tensor) -> bool:
    """Whether Python may branch on values of ``x``: not where they are of several samples at once, or on no device."""
    return not isinstance(x._data, SymbolBase) or (modes.tracer() is not None and not x._data.level)


def _may_be_chosen(x: Tensor) -> bool:
    """Whether sizes may depend on values of ``x``, too, as those of no compiled step may."""
    return not isinstance(x._data, SymbolBase) and modes.tracer() is None


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over clusters of classes, rare ones with fewer parameters: Grave et al. (2017).

    A cluster is given the inputs whose targets it has; without any, its parameters have no gradient. Compiled steps
    give it zeros for the others, and one is compiled for each set of clusters that was met. Targets that ``vmap`` maps
    over are not known, and clusters without any of them have gradients of 0.

    Args:
        in_features: the size of an input.
        n_classes: the number of classes, from frequent to rare.
        cutoffs: where clusters begin; the classes before the first belong to the head.
        div_value: the inputs of each cluster are smaller than those of the one before by this factor.
        head_bias: whether the head has a bias.

    Raises:
        ValueError: ``cutoffs`` do not rise within 1 and n_classes - 1, or ``div_value`` is not positive.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = list(cutoffs)
        edges = [n for c in given if (n := as_int(c)) is not None]
        if not given:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if len(edges) < len(given) or edges != sorted(set(edges)) or edges[0] <= 0 or edges[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1, got {given}"
            )
        if not div_value > 0:
            raise ValueError(f"div_value: expected a number > 0, got {div_value}")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*edges, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = edges[0]
        self.n_clusters = len(edges)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            size = int(in_features // div_value ** (i + 1))
            where_ = {"bias": False, "device": device, "dtype": dtype}
            self.tail.append(Sequential(Linear(in_features, size, **where_), Linear(size, high - low, **where_)))

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster.children():
                layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> AdaptiveOutput:
        """(batch, in_features) and (batch,) int64, or one of them -> the targets' log-probabilities, and the loss"""
        self._check(input, target)
        if not target.ndim:
            output, loss = self(input.unsqueeze(0), target.unsqueeze(0))
            return AdaptiveOutput(output.squeeze(0), loss)
        head = F.log_softmax(self.head(input), -1)
        at, among = target, head.new_zeros(target.shape)
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            within = (target >= low) & (target < high)
            if _may_be_asked(within) and not within.any():
                continue
            at = where(within, self.shortlist_size + i, at)
            if _may_be_chosen(within):
                rows = within.nonzero().squeeze(1)
                among = among.index_copy(0, rows, self._scores(i, input[rows], target[rows] - low))
            else:  # other rows as zeros, so that what is infinite in them is in no gradient
                inside = where(within.unsqueeze(-1), input, 0.0)
                among = where(within, self._scores(i, inside, (target - low).clamp(0, high - low - 1)), among)
        output = among + head.gather(-1, at.unsqueeze(-1)).squeeze(-1)
        return AdaptiveOutput(output, -output.mean())

    def _scores(self, i: int, input: Tensor, classes: Tensor) -> Tensor:
        """The log-probabilities of ``classes`` among those of cluster ``i``."""
        return F.log_softmax(self.tail[i](input), -1).gather(-1, classes.unsqueeze(-1)).squeeze(-1)

    def _check(self, input: Tensor, target: Tensor) -> None:
        expect_tensor(input, "input", "AdaptiveLogSoftmaxWithLoss")
        expect_tensor(target, "target", "AdaptiveLogSoftmaxWithLoss")
        if target.ndim > 1:
            raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported, got {target.ndim}D")
        if input.ndim != target.ndim + 1:
            raise RuntimeError(
                f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with size "
                f"{input.shape}"
            )
        if target.ndim and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        beyond = f"Target values should be in [0, {self.n_classes - 1}], but others were found"
        refuse((target < 0) | (target >= self.n_classes), error=RuntimeError, message=beyond)

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes. (batch, in_features) -> (batch, n_classes)"""
        return self._log_prob(input, self.head(input))

    def _log_prob(self, input: Tensor, scores: Tensor) -> Tensor:
        head = F.log_softmax(scores, -1)
        parts = [head[..., : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(F.log_softmax(cluster(input), -1) + head[..., at : at + 1])
        return cat(parts, -1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each input. (batch, in_features) -> (batch,)"""
        scores = self.head(input)
        best = scores.argmax(-1)  # of the head: no class of a cluster is more probable than the cluster
        return where(best < self.shortlist_size, best, self._log_prob(input, scores).argmax(-1))
