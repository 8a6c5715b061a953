"""Tensors and autograd, as the first tutorial shows them."""

import numpy as np
import torch
from fixed import show

data = [[1, 2], [3, 4]]
x_data = torch.tensor(data)
np_array = np.array(data)
x_np = torch.from_numpy(np_array)
x_ones = torch.ones_like(x_data)
print(f"Ones Tensor: \n {x_ones} \n")
print(f"Zeros: \n {torch.zeros((2, 3))} \n", torch.rand_like(x_data, dtype=torch.float).shape)
tensor = torch.ones(4, 4)
print(f"Shape of tensor: {tensor.shape}, {tensor.dtype}, Device tensor is stored on: {tensor.device}")
print("First row: ", tensor[0], "First column: ", tensor[:, 0], "Last column:", tensor[..., -1])
tensor[:, 1] = 0
print(tensor)
print(torch.cat([tensor, tensor, tensor], dim=1).shape)
y1, y2 = tensor @ tensor.T, tensor.matmul(tensor.T)
y3 = torch.rand_like(y1)
torch.matmul(tensor, tensor.T, out=y3)
print(torch.equal(y1, y2), torch.equal(y1, y3))
agg = tensor.sum()
print(agg.item(), type(agg.item()))
tensor.add_(5)
print(tensor[:2])
t = torch.ones(5)
n = t.numpy()
t.add_(1)
print(f"t: {t}", f"n: {n}")
np.add(n, 1, out=n)
print(t, torch.tensor(3.14159), torch.tensor([1.0, float("nan"), float("inf")]))

x = torch.ones(5)
y = torch.zeros(3)
w = torch.full((5, 3), 0.5, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
z = torch.matmul(x, w) + b
loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
print(f"Gradient function for z = {z.grad_fn is not None}")
loss.backward()
print(w.grad)
print(b.grad)
with torch.no_grad():
    z = torch.matmul(x, w) + b
print(z.requires_grad, (x @ w).detach().requires_grad)
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"First call\n{inp.grad}")
out.backward(torch.ones_like(out), retain_graph=True)
inp.grad.zero_()
out.backward(torch.ones_like(out))
print(f"\nCall after zeroing gradients\n{inp.grad}")
a = torch.arange(12).reshape(3, 4)
print(a.stride(), a.t().is_contiguous(), a.view(-1, 6).shape, a[a > 5], a[[0, 2], 1:3])
print(a.float().mean(dim=0, keepdim=True), a.max(), a.argmax().item(), a.prod(), a.type())
print(torch.linspace(0, 1, 3), torch.logspace(0, 2, 3), torch.eye(2, dtype=torch.bool), torch.empty(0))
print(a[:, None].expand(3, 2, 4).shape, torch.broadcast_shapes((3, 1), (4,)), a // 5, a % 5, -a.abs())
show("std", a.double().std(unbiased=False))
print(torch.tensor([1e-5, 1.0]), torch.tensor([10000000.0, 1.5]), torch.tensor([[1, -1]], dtype=torch.int8))
for row in a:
    print(row.tolist(), len(row))
try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError as e:
    print("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)" in str(e))
