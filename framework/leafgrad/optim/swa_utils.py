"""Averages of a model's weights over training: stochastic weight averaging, and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain, zip_longest
from typing import Any, Literal

from leafgrad import modes
from leafgrad.dtypes import int64
from leafgrad.nn.module import Module
from leafgrad.optim.lr_scheduler.scheduler import LRScheduler, checked, per_group
from leafgrad.optim.optimizer import Optimizer
from leafgrad.tensor.data import tensor
from leafgrad.tensor.public import publish as _publish
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An average that keeps ``decay`` of what it was: for ``AveragedModel(avg_fn=...)``."""
    if not 0 <= decay <= 1:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return ema_param * decay + current_param * (1 - decay)

    return modes.no_grad()(ema_update)


def get_swa_avg_fn() -> Average:
    """The mean of all weights so far: what ``AveragedModel`` takes by default."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return modes.no_grad()(swa_update)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """As ``get_ema_avg_fn``, for lists of parameters, in place: for ``AveragedModel(multi_avg_fn=...)``."""
    return _each(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """As ``get_swa_avg_fn``, for lists of parameters, in place."""
    return _each(get_swa_avg_fn())


def _each(average: Average) -> Averages:
    def update(averaged_params: Sequence[Tensor], current_params: Sequence[Tensor], num_averaged: Any) -> None:
        for ours, theirs in zip(averaged_params, current_params, strict=True):
            ours.copy_(average(ours, theirs, num_averaged))

    return modes.no_grad()(update)


class AveragedModel(Module):
    """A copy of a model whose weights are an average of the weights that the model has had.

    Source: Izmailov et al. (2018), "Averaging Weights Leads to Wider Optima and Better Generalization",
    https://arxiv.org/abs/1803.05407.

    Args:
        model: copied to ``module``; the average starts from its weights at the first ``update_parameters``.
        device: where the copy is kept.
        avg_fn: the next average, from the average, the current weight and how many are in the average.
        multi_avg_fn: the same for lists of weights, in place.
        use_buffers: average buffers as well; else they are copied.

    Raises:
        AssertionError: both ``avg_fn`` and ``multi_avg_fn``.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        for name, function in (("avg_fn", avg_fn), ("multi_avg_fn", multi_avg_fn)):
            if not (function is None or callable(function)):
                raise TypeError(
                    f"AveragedModel: {name}: expected a function, as get_ema_{name}(0.9) gives, got {function!r}"
                )
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the model with the averaged weights gives."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the current weights of ``model`` into the average. ValueError: they have other shapes."""
        ours = [t.detach() for t in self._averaged(self.module)]
        given = [t.detach() for t in self._averaged(model)]
        for o, t in zip_longest(ours, given):
            expected, got = ("none" if each is None else tuple(each.shape) for each in (o, t))
            if expected != got:
                raise ValueError(
                    f"update_parameters: model: expected weights as the averaged model has them, of shape {expected}, "
                    f"got {got}; pass the model that it was made of"
                )
        theirs = [t.to(o.device) for t, o in zip(given, ours, strict=True)]
        with modes.no_grad():
            if self.n_averaged.item() == 0:
                for o, t in zip(ours, theirs, strict=True):
                    o.copy_(t)
            else:
                update = self.multi_avg_fn or _each(self.avg_fn or get_swa_avg_fn())
                for kept, current in alike(ours, theirs):
                    update(kept, current, self.n_averaged.to(kept[0].device))
            if not self.use_buffers:
                for o, t in zip(self.module.buffers(), model.buffers(), strict=True):
                    o.copy_(t)
            self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()


def alike(ours: list[Tensor], theirs: list[Tensor]) -> Iterable[tuple[list[Tensor], list[Tensor]]]:
    """The tensors of ``ours`` of one device and dtype together, each time with their partners."""
    together: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
    for o, t in zip(ours, theirs, strict=True):
        kept, current = together.setdefault((o.device, o.dtype), ([], []))
        kept.append(o)
        current.append(t)
    return together.values()


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch norm layers anew, from one pass over ``loader``.

    Args:
        loader: gives batches for ``model``, or lists and tuples that begin with one.
        model: its batch norm layers forget what they have seen. Its mode is the same afterwards.
        device: where the batches are put first.
    """
    momenta = {m: m.momentum for m in model.modules() if hasattr(m, "reset_running_stats") and hasattr(m, "momentum")}
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # the plain mean over all batches
    try:
        with modes.no_grad():
            for batch in loader:
                batch = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(batch if device is None else batch.to(device))
    finally:
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """From the current learning rate to a constant one within ``anneal_epochs``, for weight averaging.

    Args:
        swa_lr: where it goes, or one for each group.
        anneal_epochs: how long that takes.
        anneal_strategy: along half a cosine (``"cos"``) or a line (``"linear"``).

    Raises:
        ValueError: another ``anneal_strategy``, or negative ``anneal_epochs``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", checked(optimizer), swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        step = max(self._step_count - 1, 1 if self.anneal_epochs == 0 else 0)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, self._now(), strict=True):
            goal = group["swa_lr"]
            start = goal if before == 1 else (lr - goal * before) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates

    def _share(self, step: int) -> float:
        """How much of the way is behind after a number of steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t


_publish(globals())
