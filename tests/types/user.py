"""What a user writes, for type checkers only: behind reveal_type what they see, behind an error that they see one."""

from typing import Any, reveal_type

import leafgrad
from leafgrad import Tensor, nn
from leafgrad.utils.data import DataLoader, Dataset, TensorDataset, random_split

x = leafgrad.randn(3, 4)

# operators and functions
reveal_type(x + 1)  # Tensor
reveal_type(1 - x)  # Tensor
reveal_type(x @ x.T)  # Tensor
reveal_type(2**x)  # Tensor
reveal_type(x > 0)  # Tensor
reveal_type(-x)  # Tensor
reveal_type(~(x > 0))  # Tensor
reveal_type(x[0, :2])  # Tensor
reveal_type(leafgrad.sin(x))  # Tensor
reveal_type(leafgrad.relu(x))  # Tensor
reveal_type(leafgrad.atan2(x, 2.0))  # Tensor
reveal_type(leafgrad.gcd(x, x))  # Tensor
reveal_type(leafgrad.add(x, 1, alpha=2))  # Tensor
reveal_type(leafgrad.conv2d(x, x))  # Tensor
reveal_type(leafgrad.special.erf(x))  # Tensor
reveal_type(leafgrad.rules.softmax(x, 0))  # Tensor
reveal_type(x.sin().sum())  # Tensor
reveal_type(x.shape)  # Size


# ops of one's own
@leafgrad.op("elementwise")
def softsign(xp: Any, x: Any) -> Any:
    """x / (1 + |x|)."""
    return x / (1 + abs(x))


softsign.vjp(x=lambda g, x: g / (1 + abs(x)) ** 2)
reveal_type(softsign(x))  # Tensor
reveal_type(softsign(x.numpy()))  # Any

# results with names
reveal_type(x.max(dim=1))  # max
reveal_type(x.max(dim=1).values)  # Tensor
reveal_type(x.max())  # Tensor
reveal_type(x.max(x))  # Tensor
reveal_type(leafgrad.min(x, 1).indices)  # Tensor
reveal_type(leafgrad.median(x))  # Tensor
reveal_type(x.topk(2))  # topk

# modules
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
reveal_type(net[0])  # Module
reveal_type(net[:1])  # Sequential
reveal_type(nn.ModuleList([net])[0])  # Module
reveal_type(nn.ModuleDict({"a": net})["a"])  # Module
reveal_type(leafgrad.optim.Adam(net.parameters()))  # Adam


# compiled functions keep their signature
@leafgrad.compile
def step(a: Tensor, *, scale: float = 1.0) -> tuple[Tensor, int]:
    return a * scale, 1


@leafgrad.compile(executor="numpy")
def other(a: Tensor) -> int:
    return 1


reveal_type(step(x, scale=2.0)[1])  # int
reveal_type(other(x))  # int
reveal_type(step.explain())  # Explanation
step(x, 3)  # error
step("a")  # error
other()  # error
reveal_type(leafgrad.compile(net).explain())  # Explanation
reveal_type(leafgrad.vmap(leafgrad.sin)(x))  # Tensor


# data
class Mine(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return x[index], index


reveal_type(Mine()[0][1])  # int
reveal_type(DataLoader(Mine(), batch_size=2))  # DataLoader[tuple[Tensor, int]]
reveal_type(DataLoader(TensorDataset(x)))  # DataLoader[tuple[Tensor, ...]]
reveal_type(DataLoader([1, 2]))  # DataLoader[int]

# gradients
reveal_type(x.grad)  # Tensor | None
reveal_type(leafgrad.autograd.grad(x.sum(), x))  # tuple[Tensor, ...]
reveal_type(leafgrad.cuda.is_available())  # bool

# names that do not exist
leafgrad.sofmax(x)  # error
leafgrad.nn.Lineer(1, 2)  # error
leafgrad.nn.functional.rellu(x)  # error
leafgrad.optim.Adan()  # error
leafgrad.utils.dataa()  # error
leafgrad.autograd.graad()  # error
leafgrad.rules.sofmax(x)  # error
leafgrad.plugins.oops()  # error
leafgrad.distributions.Norml()  # error
x.sofmax(0)  # error
leafgrad.explain(3)  # error

nothing: Any = None


class Pairs(Dataset[tuple[Tensor, int]]):
    """Samples and their numbers."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return leafgrad.ones(2), index


for parameter in net.parameters():
    parameter -= 0.1  # stays a Parameter
    parameter *= leafgrad.ones(1)
reveal_type(leafgrad.where(leafgrad.ones(2) > 0, 1.0, 0.0))  # Tensor
reveal_type(leafgrad.where(leafgrad.ones(2) > 0))  # tuple[Tensor, ...]
reveal_type(random_split(Pairs(), [2, 1]))  # list[Subset[tuple[Tensor, int]]]
reveal_type(random_split(Pairs(), [2, 1])[0][0])  # tuple[Tensor, int]
