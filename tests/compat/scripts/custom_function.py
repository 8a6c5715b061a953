"""Operations of one's own: autograd functions, checked gradients, straight-through estimators."""

import math

import torch
from fixed import show, wave
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class Round(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad.clone()


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.lambd, None


class LinearFunction(Function):
    @staticmethod
    def forward(input, weight, bias):
        return input.mm(weight.t()) + bias.unsqueeze(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


x = torch.linspace(-math.pi, math.pi, 50)
y = torch.sin(x)
a, b, c, d = (torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
for t in range(30):
    loss = (a + b * LegendrePolynomial3.apply(c + d * x) - y).pow(2).sum()
    if t % 10 == 9:
        print(t, round(loss.item(), 2))
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 1e-4 * p.grad
            p.grad = None
print(f"y = {abs(a.item()):.3f} + {b.item():.3f} * P3({abs(c.item()):.3f} + {d.item():.3f} x)")

args = [wave(*s).double().requires_grad_() for s in ((4, 3), (2, 3), (2,))]
print(gradcheck(LinearFunction.apply, args, eps=1e-6, atol=1e-4), gradgradcheck(LinearFunction.apply, args))
w = (wave(4) * 3).requires_grad_()
(Round.apply(w) * GradReverse.apply(w, 0.5)).sum().backward()
show("w", w.grad)
z = wave(3).requires_grad_()
quantized = z + (z.round() - z).detach()
quantized.pow(2).sum().backward()
show("z", z.grad)
try:
    gradcheck(lambda v: Round.apply(v) * 2, wave(3).double().requires_grad_())
except RuntimeError as e:
    print(type(e).__name__, "Jacobian mismatch" in str(e))
