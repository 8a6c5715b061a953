"""``torch.amp.GradScaler``: losses times a factor, so that gradients do not fall below float16's smallest numbers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.ops.messages import warn
from leafgrad.tensor.creation import full, zeros
from leafgrad.tensor.storage import pinning
from leafgrad.tensor.tensor import Tensor

__all__ = ["GradScaler"]


class GradScaler:
    """Scales losses, and takes the scale out of gradients before a step; where one is inf or nan there is no step.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    Args:
        device: of which type the losses are. Where there is none, it switches itself off, with PyTorch's warning.
        init_scale: the scale to begin with.
        growth_factor: by which the scale grows after ``growth_interval`` steps without inf and nan.
        backoff_factor: by which it is multiplied after a step with some.
        growth_interval: how many steps that are.
        enabled: False leaves losses and gradients as they are.

    Raises:
        AssertionError: ``growth_factor`` is not above 1, or ``backoff_factor`` not below.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and pinning(device) is None:
            warn(f"GradScaler is enabled, but {str(device).upper()} is not available. Disabling.")
            enabled = False
        if growth_factor <= 1 or backoff_factor >= 1:
            raise AssertionError(
                "GradScaler: expected a growth_factor above 1 and a backoff_factor below, got "
                f"{growth_factor} and {backoff_factor}"
            )
        self._enabled, self._device = enabled, device
        self._growth, self._backoff, self._interval = growth_factor, backoff_factor, growth_interval
        if enabled:
            self._scale = full((), float(init_scale), dtype=dtypes.float32, device=device)
            self._tracker = zeros((), dtype=dtypes.int32, device=device)
        self._found: dict[int, list[Tensor]] = {}  # where there is inf or nan, of optimizers with unscaled gradients
        self._stepped: set[int] = set()
        self._used = False  # whether a loss was scaled

    def scale(self, outputs: Tensor | Iterable[Tensor]) -> Any:
        """A loss, or each of several, times the scale.

        Raises:
            ValueError: there is something else among them.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            self._used = True
            return outputs * self._scale.to(outputs.device)
        if not isinstance(outputs, Iterable):
            raise ValueError(f"outputs must be a Tensor or an iterable of Tensors, got {type(outputs).__name__}")
        scaled = map(self.scale, outputs)
        return tuple(scaled) if isinstance(outputs, tuple) else list(scaled)

    def unscale_(self, optimizer: Any) -> None:
        """Take the scale out of the gradients of an optimizer's parameters, as before one clips them.

        Raises:
            RuntimeError: that was done since the last `update`, or its step.
            ValueError: a gradient is in float16, as is then its parameter: keep it in float32.
            AssertionError: no loss was scaled yet.
        """
        if not self._enabled:
            return
        self._check_used("unscale_")
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(grad.dtype is dtypes.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients; keep parameters in float32")
        with modes.no_grad():
            inverse = self._scale.double().reciprocal().float()
            self._found[id(optimizer)] = [~grad.isfinite().all().to(inverse.device) for grad in grads]
            for grad in grads:
                grad.mul_(inverse.to(grad.device))

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(*args, **kwargs)``, if no gradient is inf or nan; they are unscaled if they were not yet.

        Raises:
            RuntimeError: it was called since the last `update`, or with a closure.
            AssertionError: no parameter of the optimizer has a gradient.
            AssertionError, ValueError: as `unscale_` does.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        found = self._found[id(optimizer)]
        if not found:
            raise AssertionError(
                "No inf checks were recorded for this optimizer. step: expected parameters with gradients, got none; "
                "call scale(loss).backward() with a loss that depends on them, or leave out this optimizer"
            )
        result = None if bool(_any(found)) else optimizer.step(*args, **kwargs)
        self._stepped.add(id(optimizer))
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Let the scale shrink where there was inf or nan, or grow after long without; or set it.

        Raises:
            AssertionError: no gradients were unscaled since the last one, or no loss was scaled yet, or ``new_scale``
                is a tensor that has not one element, requires grad or is on a device of another type.
        """
        if not self._enabled:
            return
        self._check_used("update")
        with modes.no_grad():
            if isinstance(new_scale, Tensor) and (
                new_scale.numel() != 1 or new_scale.requires_grad or new_scale.device.type != self._scale.device.type
            ):
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.FloatTensor with requires_grad=False, on "
                    f"{self._device}; got one of {new_scale.numel()} elements on {new_scale.device} with "
                    f"requires_grad={new_scale.requires_grad}"
                )
            if new_scale is not None:
                self._scale.copy_(new_scale if isinstance(new_scale, Tensor) else self._scale.new_full((), new_scale))
            else:
                all_found = [bad for found in self._found.values() for bad in found]
                if not all_found:
                    raise AssertionError(
                        "No inf checks were recorded prior to update. update: expected gradients that were unscaled "
                        "before, by step() or unscale_()"
                    )
                found = _any(all_found)
                shrunk, grown = ((self._scale.double() * by).float() for by in (self._backoff, self._growth))
                full_run = self._tracker + 1 == self._interval
                larger = grown.where(full_run & grown.isfinite(), self._scale)
                self._scale.copy_(shrunk.where(found, larger))
                self._tracker.copy_((self._tracker + 1).masked_fill(found | full_run, 0))
        self._found.clear()
        self._stepped.clear()

    def _check_used(self, what: str) -> None:
        if not self._used:
            raise AssertionError(f"{what}: expected gradients of a loss that was scaled; call scale(loss).backward()")

    def __getstate__(self) -> dict[str, Any]:
        if self._found:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        return self.__dict__.copy()

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale; 1 where it does not scale."""
        return float(self._scale) if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """By which the scale grows."""
        return self._growth

    def get_backoff_factor(self) -> float:
        """By which the scale is multiplied after inf or nan."""
        return self._backoff

    def get_growth_interval(self) -> int:
        """After how many steps it grows."""
        return self._interval

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by which the scale grows."""
        self._growth = new_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by which the scale is multiplied after inf or nan."""
        self._backoff = new_factor

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps it grows."""
        self._interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs; empty where it does not scale."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth, "backoff_factor": self._backoff,
            "growth_interval": self._interval, "_growth_tracker": int(self._tracker),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state.

        Raises:
            RuntimeError: it is empty, and this one scales.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._growth, self._backoff = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._interval = state_dict["growth_interval"]
        with modes.no_grad():
            self._scale.fill_(state_dict["scale"])
            self._tracker.fill_(state_dict["_growth_tracker"])


def _any(found: list[Tensor]) -> Any:
    """Whether there was inf or nan somewhere, as a tensor."""
    return functools.reduce(operator.or_, found)
