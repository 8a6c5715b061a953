"""Numbers that do not depend on a generator, since leafgrad draws others than PyTorch, and how scripts show results."""

import torch


def fill(module, scale=0.3):
    """Give all parameters fixed values; returns the module."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(wave(*p.shape, shift=float(i)) * scale)
    return module


def wave(*shape, shift=0.0):
    """A tensor of numbers between -1 and 1."""
    count = 1
    for n in shape:
        count *= n
    return (
        torch.sin(torch.arange(count, dtype=torch.float64) * 0.7 + shift).to(torch.get_default_dtype()).reshape(shape)
    )


def show(name, value):
    """Print a result with three digits; tensors with shape and dtype."""
    if isinstance(value, torch.Tensor):
        numbers = [round(float(x), 3) + 0.0 for x in value.detach().to(torch.float64).reshape(-1)[:6]]
        print(name, value.dtype, tuple(value.shape), numbers)
    elif isinstance(value, float):
        print(name, round(value, 3))
    else:
        print(name, value)
