"""Transforms of images as modules, in the style of torchvision."""

import math
import numbers
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from fixed import show, wave
from torch import Tensor, nn


def _log_api_usage_once(obj):
    if torch.jit.is_scripting() or torch.jit.is_tracing():
        return
    torch._C._log_api_usage_once(f"{type(obj).__module__}.{type(obj).__name__}")


def to_tensor(pic):
    if isinstance(pic, np.ndarray):
        img = torch.from_numpy(pic.transpose((2, 0, 1))).contiguous()
        return img.to(dtype=torch.get_default_dtype()).div(255) if isinstance(img, torch.ByteTensor) else img
    raise TypeError


class Compose:
    def __init__(self, transforms):
        _log_api_usage_once(self)
        self.transforms = transforms

    def __call__(self, img):
        for t in self.transforms:
            img = t(img)
        return img


class Normalize(nn.Module):
    def __init__(self, mean, std, inplace=False):
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
        if not self.inplace:
            tensor = tensor.clone()
        mean = torch.as_tensor(self.mean, dtype=tensor.dtype, device=tensor.device)
        std = torch.as_tensor(self.std, dtype=tensor.dtype, device=tensor.device)
        if (std == 0).any():
            raise ValueError("std evaluated to zero")
        if mean.ndim == 1:
            mean = mean.view(-1, 1, 1)
        if std.ndim == 1:
            std = std.view(-1, 1, 1)
        return tensor.sub_(mean).div_(std)


class Resize(nn.Module):
    def __init__(self, size, antialias=True):
        super().__init__()
        self.size = [size, size] if isinstance(size, numbers.Number) else list(size)
        self.antialias = antialias

    def forward(self, img):
        return F.interpolate(img[None], self.size, mode="bilinear", align_corners=False, antialias=self.antialias)[0]


def rgb_to_grayscale(img):
    r, g, b = img.unbind(dim=-3)
    return (0.2989 * r + 0.587 * g + 0.114 * b).to(img.dtype).unsqueeze(dim=-3)


def blend(img1, img2, ratio):
    return (ratio * img1 + (1.0 - ratio) * img2).clamp(0, 1.0).to(img1.dtype)


def gaussian_blur(img, size, sigma):
    half = (size - 1) * 0.5
    x = torch.linspace(-half, half, steps=size)
    pdf = torch.exp(-0.5 * (x / sigma).pow(2))
    kernel1d = pdf / pdf.sum()
    kernel = torch.mm(kernel1d[:, None], kernel1d[None, :]).expand(img.shape[-3], 1, size, size)
    img = F.pad(img[None], [size // 2] * 4, mode="reflect")
    return F.conv2d(img, kernel, groups=img.shape[-3])[0]


def rotate(img, angle):
    a = math.radians(angle)
    theta = torch.tensor([[math.cos(a), -math.sin(a), 0.0], [math.sin(a), math.cos(a), 0.0]])
    grid = F.affine_grid(theta[None], [1, *img.shape], align_corners=False)
    return F.grid_sample(img[None], grid, mode="bilinear", padding_mode="zeros", align_corners=False)[0]


pixels = (np.arange(3 * 8 * 10).reshape(8, 10, 3) * 37 % 256).astype(np.uint8)
image = Compose([to_tensor, Resize((6, 6)), Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])(pixels)
show("image", image)
x = to_tensor(pixels)
show("gray", rgb_to_grayscale(x))
show("blend", blend(x, rgb_to_grayscale(x).expand_as(x), 0.3))
show("blur", gaussian_blur(x, 3, 0.8))
show("rotate", rotate(x, 30))
show("hflip", x.flip(-1))
show("crop", x[..., 1:5, 2:6])
show("pad", F.pad(x, (1, 2, 3, 0), value=0.5))
show("solarize", torch.where(x >= 0.5, 1 - x, x))
show("posterize", torch.from_numpy(pixels) & (-(2**4) & 0xFF))
print(isinstance([1], Sequence), torch.is_tensor(x), x.element_size(), x.nelement())
try:
    Normalize([0.5], [0.5])(torch.from_numpy(pixels))
except TypeError as e:
    print(e)
