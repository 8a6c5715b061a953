"""Message passing on graphs, in the style of PyTorch Geometric."""

import inspect

import torch
import torch.nn.functional as F
from fixed import fill, show, wave
from torch import Tensor
from torch.nn import Linear, Module, Parameter


def scatter(src, index, dim_size, reduce="sum"):
    shape = (dim_size, *src.shape[1:])
    if reduce == "max":
        idx = index.view(-1, *[1] * (src.dim() - 1)).expand_as(src)
        return src.new_zeros(shape).scatter_reduce(0, idx, src, reduce="amax", include_self=False)
    out = src.new_zeros(shape).index_add_(0, index, src)
    if reduce == "mean":
        count = src.new_zeros(dim_size).scatter_add_(0, index, torch.ones_like(index, dtype=src.dtype))
        out = out / count.clamp_(min=1).view(-1, *[1] * (src.dim() - 1))
    return out


def degree(index, num_nodes, dtype=None):
    return torch.zeros((num_nodes,), dtype=dtype).scatter_add_(0, index, torch.ones(index.numel(), dtype=dtype))


def softmax(src, index, n):
    out = (src - scatter(src, index, n, "max")[index].detach()).exp()
    return out / (scatter(out, index, n)[index] + 1e-16)


def add_self_loops(edge_index, n):
    loop = torch.arange(0, n, dtype=torch.long).unsqueeze(0).repeat(2, 1)
    return torch.cat([edge_index, loop], dim=1)


class MessagePassing(Module):
    def __init__(self, aggr="add"):
        super().__init__()
        self.aggr = {"add": "sum"}.get(aggr, aggr)
        self.wanted = list(inspect.signature(self.message).parameters)

    def propagate(self, edge_index, **kwargs):
        src, dst = edge_index
        n = next(v for v in kwargs.values() if isinstance(v, Tensor)).size(0)
        given = {}
        for name in self.wanted:
            if name.endswith("_j"):
                given[name] = kwargs[name[:-2]].index_select(0, src)
            elif name.endswith("_i"):
                given[name] = kwargs[name[:-2]].index_select(0, dst)
            else:
                given[name] = dict(kwargs, index=dst, nodes=n)[name]
        return scatter(self.message(**given), dst, n, self.aggr)


class GCNConv(MessagePassing):
    def __init__(self, in_channels, out_channels):
        super().__init__(aggr="add")
        self.lin, self.bias = Linear(in_channels, out_channels, bias=False), Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self):
        self.lin.reset_parameters()
        self.bias.data.zero_()

    def forward(self, x, edge_index):
        edge_index = add_self_loops(edge_index, x.size(0))
        row, col = edge_index
        deg_inv_sqrt = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        return self.propagate(edge_index, x=self.lin(x), norm=norm) + self.bias

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j


class GATConv(MessagePassing):
    def __init__(self, dim, heads=2):
        super().__init__(aggr="add")
        self.lin, self.heads = Linear(dim, dim * heads, bias=False), heads
        self.att_src, self.att_dst = Parameter(torch.empty(1, heads, dim)), Parameter(torch.empty(1, heads, dim))
        torch.nn.init.xavier_uniform_(self.att_src)
        torch.nn.init.xavier_uniform_(self.att_dst)

    def forward(self, x, edge_index):
        h = self.lin(x).view(x.size(0), self.heads, -1)
        alpha_s, alpha_d = (h * self.att_src).sum(-1), (h * self.att_dst).sum(-1)
        return self.propagate(edge_index, h=h, s=alpha_s, d=alpha_d).mean(dim=1)

    def message(self, h_j, s_j, d_i, index, nodes):
        alpha = softmax(F.leaky_relu(s_j + d_i, 0.2), index, nodes)
        return h_j * alpha.unsqueeze(-1)


class Net(Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.out = GCNConv(3, 4), GATConv(4), Linear(4, 2)

    def forward(self, x, edge_index, batch):
        x = F.relu(self.conv1(x, edge_index))
        x = F.dropout(self.conv2(x, edge_index), p=0.5, training=False)
        return F.log_softmax(self.out(scatter(x, batch, int(batch.max()) + 1, "mean")), dim=1)


edges = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 0], [1, 0, 2, 1, 4, 3, 3, 2]], dtype=torch.long)
x, batch = wave(5, 3), torch.tensor([0, 0, 0, 1, 1])
model = fill(Net())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(5):
    optimizer.zero_grad()
    loss = F.nll_loss(model(x, edges, batch), torch.tensor([0, 1]))
    loss.backward()
    optimizer.step()
show("loss", loss)
show("out", model(x, edges, batch))
show("max", scatter(x, batch, 3, "max"))
adj = torch.zeros(5, 5)
adj[edges[0], edges[1]] = 1.0
print(adj.sum().item(), adj.nonzero().t().tolist() == edges[:, edges[0].argsort(stable=True)].tolist())
print(torch.unique(edges[0], return_counts=True))
