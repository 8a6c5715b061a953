"""What programs see of the graph: names, edges and saved values of nodes, as PyTorch has them."""

from __future__ import annotations

import gc
import weakref

import pytest

TESTS = "ops.forms ops.marks tensor.graph tensor.handle"

# An expression, and its graph: A is an AccumulateGrad, - is no edge, :1 the number of an output that is not the first.
GRAPHS = """
x + y  ->  AddBackward0(A, A)
x - y  ->  SubBackward0(A, A)
x * y  ->  MulBackward0(A, A)
x / y  ->  DivBackward0(A, A)
x + 1  ->  AddBackward0(A, -)
1 + x  ->  AddBackward0(A, -)
x - 1  ->  SubBackward0(A, -)
x * 2  ->  MulBackward0(A, -)
2 * x  ->  MulBackward0(A, -)
x / 2  ->  DivBackward0(A, -)
-x  ->  NegBackward0(A)
x ** 2  ->  PowBackward0(A)
x ** y  ->  PowBackward1(A, A)
2 ** x  ->  PowBackward2(A)
x.abs()  ->  AbsBackward0(A)
x.exp()  ->  ExpBackward0(A)
x.log()  ->  LogBackward0(A)
x.sqrt()  ->  SqrtBackward0(A)
x.rsqrt()  ->  RsqrtBackward0(A)
x.sin()  ->  SinBackward0(A)
x.tan()  ->  TanBackward0(A)
x.atan()  ->  AtanBackward0(A)
t.atan2(x, y)  ->  Atan2Backward0(A, A)
x.sigmoid()  ->  SigmoidBackward0(A)
x.tanh()  ->  TanhBackward0(A)
x.relu()  ->  ReluBackward0(A)
F.gelu(x)  ->  GeluBackward0(A)
F.silu(x)  ->  SiluBackward0(A)
F.leaky_relu(x)  ->  LeakyReluBackward0(A)
F.elu(x)  ->  EluBackward0(A)
F.softplus(x)  ->  SoftplusBackward0(A)
F.hardtanh(x)  ->  HardtanhBackward0(A)
F.relu6(x)  ->  HardtanhBackward0(A)
F.selu(x)  ->  EluBackward0(A)
F.logsigmoid(x)  ->  LogSigmoidBackward0(A)
F.mish(x)  ->  MishBackward0(A)
F.hardswish(x)  ->  HardswishBackward0(A)
F.hardsigmoid(x)  ->  HardsigmoidBackward0(A)
F.softsign(x)  ->  DivBackward0(A, AddBackward0(AbsBackward0(A), -))
F.tanhshrink(x)  ->  SubBackward0(A, TanhBackward0(A))
F.dropout(x, 0.5)  ->  MulBackward0(A, -)
x.clamp(0, 1)  ->  ClampBackward1(A)
x.clamp(min=0)  ->  ClampBackward1(A)
x.clamp_min(0)  ->  ClampMinBackward0(A)
t.clamp(x, y, y)  ->  ClampBackward0(A, A, A)
x.square()  ->  PowBackward0(A)
x.reciprocal()  ->  ReciprocalBackward0(A)
x.expm1()  ->  Expm1Backward0(A)
x.log1p()  ->  Log1PBackward0(A)
x.log2()  ->  Log2Backward0(A)
x.log10()  ->  Log10Backward0(A)
x.exp2()  ->  Exp2Backward0(A)
x.erf()  ->  ErfBackward0(A)
x.erfc()  ->  ErfcBackward0(A)
x.floor()  ->  FloorBackward0(A)
x.round()  ->  RoundBackward0(A)
x.sign()  ->  SignBackward0(A)
x.sinh()  ->  SinhBackward0(A)
x.asinh()  ->  AsinhBackward0(A)
x.cosh()  ->  CoshBackward0(A)
x.asin()  ->  AsinBackward0(A)
x.acos()  ->  AcosBackward0(A)
x.atanh()  ->  AtanhBackward0(A)
x.sum()  ->  SumBackward0(A)
m.sum(0)  ->  SumBackward1(A)
m.sum(0, keepdim=True)  ->  SumBackward1(A)
x.mean()  ->  MeanBackward0(A)
m.mean(1)  ->  MeanBackward1(A)
x.prod()  ->  ProdBackward0(A)
m.prod(0)  ->  ProdBackward1(A)
x.var()  ->  VarBackward0(A)
x.std()  ->  StdBackward0(A)
m.var(0)  ->  VarBackward0(A)
x.norm()  ->  LinalgVectorNormBackward0(A)
m.norm(dim=1)  ->  LinalgVectorNormBackward0(A)
t.linalg.norm(x)  ->  LinalgVectorNormBackward0(A)
t.linalg.vector_norm(m, dim=1)  ->  LinalgVectorNormBackward0(A)
x.max()  ->  MaxBackward1(A)
m.max(0)  ->  MaxBackward0(A)
m.max(0)[0]  ->  MaxBackward0(A)
m.amax(0)  ->  AmaxBackward0(A)
x.min()  ->  MinBackward1(A)
t.maximum(x, y)  ->  MaximumBackward0(A, A)
t.minimum(x, y)  ->  MinimumBackward0(A, A)
t.max(x, y)  ->  MaximumBackward0(A, A)
m.median()  ->  MedianBackward0(A)
m.median(0)[0]  ->  MedianBackward1(A)
m.cumsum(0)  ->  CumsumBackward0(A)
m.cumprod(0)  ->  CumprodBackward0(A)
m.logsumexp(0)  ->  LogsumexpBackward0(A)
m.softmax(0)  ->  SoftmaxBackward0(A)
m.log_softmax(0)  ->  LogSoftmaxBackward0(A)
F.softmax(m, dim=1)  ->  SoftmaxBackward0(A)
F.softmin(m, dim=1)  ->  SoftmaxBackward0(NegBackward0(A))
m @ n  ->  MmBackward0(A, A)
m @ x3  ->  MvBackward0(A, A)
x3 @ n  ->  SqueezeBackward4(MmBackward0(UnsqueezeBackward0(A), A))
x @ y  ->  DotBackward0(A, A)
t.dot(x, y)  ->  DotBackward0(A, A)
t.mv(m, x3)  ->  MvBackward0(A, A)
t.mm(m, n)  ->  MmBackward0(A, A)
t.bmm(b, b.transpose(1, 2))  ->  BmmBackward0(A, TransposeBackward0(A))
b @ n  ->  UnsafeViewBackward0(MmBackward0(ViewBackward0(A), A))
t.matmul(b, x3)  ->  UnsafeViewBackward0(MvBackward0(ViewBackward0(A), A))
t.addmm(m, m, t.ones(3,3,dtype=t.float64))  ->  AddmmBackward0(A, A, -)
t.addcmul(x, x, y)  ->  AddcmulBackward0(A, A, A)
t.addcdiv(x, x, y)  ->  AddcdivBackward0(A, A, A)
t.lerp(x, y, 0.5)  ->  LerpBackward0(A, A)
t.lerp(x, y, y)  ->  LerpBackward1(A, A, A)
t.where(x > 0, x, y)  ->  WhereBackward0(A, A)
t.where(x > 0, x, 0.)  ->  WhereBackward0(A, -)
m.t()  ->  TBackward0(A)
m.T  ->  PermuteBackward0(A)
m.mT  ->  TransposeBackward0(A)
m.transpose(0, 1)  ->  TransposeBackward0(A)
m.permute(1, 0)  ->  PermuteBackward0(A)
b.permute(2, 0, 1)  ->  PermuteBackward0(A)
m.reshape(6)  ->  ViewBackward0(A)
m.view(6)  ->  ViewBackward0(A)
m.flatten()  ->  ViewBackward0(A)
b.flatten(1)  ->  ViewBackward0(A)
m.unflatten(1, (3, 1))  ->  ViewBackward0(A)
m.unsqueeze(0)  ->  UnsqueezeBackward0(A)
m.unsqueeze(0).squeeze(0)  ->  SqueezeBackward1(UnsqueezeBackward0(A))
m.unsqueeze(0).squeeze()  ->  SqueezeBackward0(UnsqueezeBackward0(A))
m.expand(2, 2, 3)  ->  ExpandBackward0(A)
t.broadcast_to(x, (3, 4))  ->  ExpandBackward0(A)
x.repeat(2)  ->  RepeatBackward0(A)
m.repeat(2, 2)  ->  RepeatBackward0(A)
t.cat([x, y])  ->  CatBackward0(A, A)
t.stack([x, y])  ->  StackBackward0(A, A)
t.hstack([x, y])  ->  CatBackward0(A, A)
m.chunk(2)[1]  ->  SplitBackward0(A)
m.unbind(0)[1]  ->  UnbindBackward0(A)
m.narrow(1, 0, 2)  ->  SliceBackward0(A)
m.select(0, 1)  ->  SelectBackward0(A)
m[0]  ->  SelectBackward0(A)
m[0, 1]  ->  SelectBackward0(SelectBackward0(A))
m[:, 1]  ->  SelectBackward0(A)
m[:, :2]  ->  SliceBackward0(A)
m[1:]  ->  SliceBackward0(A)
m[None]  ->  UnsqueezeBackward0(A)
m[..., 0]  ->  SelectBackward0(A)
x[[0, 1]]  ->  IndexBackward0(A)
m[[0, 1], [0, 1]]  ->  IndexBackward0(A)
x[x > 0]  ->  IndexBackward0(A)
m[0:1, None, 1]  ->  SelectBackward0(UnsqueezeBackward0(SliceBackward0(A)))
m[t.tensor([0, 1])]  ->  IndexBackward0(A)
x.clone()  ->  CloneBackward0(A)
m.t().contiguous()  ->  CloneBackward0(TBackward0(A))
x.float()  ->  ToCopyBackward0(A)
x.to(t.float32)  ->  ToCopyBackward0(A)
x.float().double()  ->  ToCopyBackward0(ToCopyBackward0(A))
x.flip(0)  ->  FlipBackward0(A)
x.roll(1)  ->  RollBackward0(A)
m.tril()  ->  TrilBackward0(A)
m.triu()  ->  TriuBackward0(A)
m.diagonal()  ->  DiagonalBackward0(A)
t.diag_embed(m)  ->  DiagEmbedBackward0(A)
x.masked_fill(x > 0, 0.)  ->  MaskedFillBackward0(A)
t.masked_select(x, x > 0)  ->  MaskedSelectBackward0(A)
m.gather(1, idx)  ->  GatherBackward0(A)
m.index_select(0, t.tensor([0]))  ->  IndexSelectBackward0(A)
m.scatter_add(1, idx, m)  ->  ScatterAddBackward0(A, A)
m.take(t.tensor([0]))  ->  TakeBackward0(A)
m.sort(1)[0]  ->  SortBackward0(A)
m.topk(1)[0]  ->  TopkBackward0(A)
m.kthvalue(1)[0]  ->  KthvalueBackward0(A)
m.unfold(1, 2, 1)  ->  UnfoldBackward0(A)
t.linalg.det(s)  ->  LinalgDetBackward0(A)
t.linalg.inv(s)  ->  LinalgInvExBackward0(A)
t.inverse(s)  ->  LinalgInvExBackward0(A)
t.linalg.solve(s, s)  ->  LinalgSolveExBackward0(A, A)
t.linalg.cholesky(s @ s.t())  ->  LinalgCholeskyExBackward0(MmBackward0(A, TBackward0(A)))
t.linalg.eigh(s)[0]  ->  LinalgEighBackward0(A)
t.linalg.qr(s)[0]  ->  LinalgQrBackward0(A)
t.linalg.svd(s)[1]  ->  LinalgSvdBackward0(A)
t.logaddexp(x, y)  ->  LogaddexpBackward0(A, A)
t.hypot(x, y)  ->  HypotBackward0(A, A)
t.fmod(x, 2)  ->  FmodBackward0(A)
t.remainder(x, 2)  ->  RemainderBackward0(A)
t.nan_to_num(x)  ->  NanToNumBackward0(A)
t.cross(x3, x3, dim=0)  ->  LinalgCrossBackward0(A, A)
F.linear(m, w, bias)  ->  AddmmBackward0(A, A, TBackward0(A))
F.linear(m, w)  ->  MmBackward0(A, TBackward0(A))
F.linear(b, w, bias)  ->  ViewBackward0(AddmmBackward0(A, ViewBackward0(A), TBackward0(A)))
F.linear(b, w)  ->  UnsafeViewBackward0(MmBackward0(ViewBackward0(A), TBackward0(A)))
F.linear(x3, w, bias)  ->  ViewBackward0(AddmmBackward0(A, ViewBackward0(A), TBackward0(A)))
F.linear(x3, w)  ->  SqueezeBackward4(MmBackward0(UnsqueezeBackward0(A), TBackward0(A)))
F.mse_loss(x, y)  ->  MseLossBackward0(A, A)
F.l1_loss(x, y)  ->  MeanBackward0(AbsBackward0(SubBackward0(A, A)))
F.smooth_l1_loss(x, y)  ->  SmoothL1LossBackward0(A, A)
F.huber_loss(x, y)  ->  HuberLossBackward0(A, A)
F.cross_entropy(m, t.tensor([0, 1]))  ->  NllLossBackward0(LogSoftmaxBackward0(A))
F.nll_loss(m, t.tensor([0, 1]))  ->  NllLossBackward0(A)
F.binary_cross_entropy(x.sigmoid(), t.ones(4, dtype=t.float64))  ->  BinaryCrossEntropyBackward0(SigmoidBackward0(A), -)
F.binary_cross_entropy_with_logits(x, t.ones(4, dtype=t.float64))  ->  BinaryCrossEntropyWithLogitsBackward0(A, -)
F.kl_div(x, y)  ->  MeanBackward0(SubBackward0(XlogyBackward0(A, A), MulBackward0(A, A)))
F.poisson_nll_loss(x, y)  ->  MeanBackward0(SubBackward0(ExpBackward0(A), MulBackward0(A, A)))
F.layer_norm(m, (3,))  ->  NativeLayerNormBackward0(A, -, -)
F.layer_norm(m, (3,), x3, x3)  ->  NativeLayerNormBackward0(A, A, A)
F.batch_norm(m, None, None, training=True)  ->  NativeBatchNormBackward0(A, -, -)
F.group_norm(im, 1)  ->  NativeGroupNormBackward0(A, -, -)
F.conv2d(im, k)  ->  ConvolutionBackward0(A, A, -)
F.conv2d(im, k, padding=1)  ->  ConvolutionBackward0(A, A, -)
F.conv1d(b, k1)  ->  ConvolutionBackward0(A, A, -)
F.conv_transpose2d(im, k)  ->  ConvolutionBackward0(A, A, -)
F.max_pool2d(im, 2)  ->  MaxPool2DWithIndicesBackward0(A)
F.avg_pool2d(im, 2)  ->  AvgPool2DBackward0(A)
F.adaptive_max_pool2d(im, 1)  ->  AdaptiveMaxPool2DBackward0(A)
F.pad(im, (1, 1))  ->  ConstantPadNdBackward0(A)
F.pixel_shuffle(t.ones(1,4,2,2,dtype=t.float64,requires_grad=True), 2)  ->  PixelShuffleBackward0(A)
F.embedding(t.tensor([0, 1]), m)  ->  EmbeddingBackward0(A)
F.glu(t.ones(2,4,dtype=t.float64,requires_grad=True))  ->  GluBackward0(A)
x.clone().add_(1)  ->  AddBackward0(CloneBackward0(A), -)
x.clone().mul_(y)  ->  MulBackward0(CloneBackward0(A), A)
x.clone().copy_(y)  ->  CopyBackwards(CloneBackward0(A), A)
x.clone().exp_()  ->  ExpBackward0(CloneBackward0(A))
x.clone().relu_()  ->  ReluBackward0(CloneBackward0(A))
write_part(x)  ->  CopySlices(CloneBackward0(A), -)
x.pow(3).sum()  ->  SumBackward0(PowBackward0(A))
x.cos().view(2, 2)  ->  ViewBackward0(CosBackward0(A))
t.movedim(b, 0, 1)  ->  PermuteBackward0(A)
t.swapaxes(m, 0, 1)  ->  TransposeBackward0(A)
t.square(x)  ->  PowBackward0(A)
t.meshgrid(x, y, indexing='ij')[0]  ->  ExpandBackward0(ViewBackward0(A))
t.diff(x)  ->  SubBackward0(SliceBackward0(A), SliceBackward0(A))
m.view(3, 2)  ->  ViewBackward0(A)
m.view_as(m)  ->  ViewBackward0(A)
m.reshape_as(m)  ->  ViewBackward0(A)
m.ravel()  ->  ViewBackward0(A)
m.nansum()  ->  NansumBackward0(A)
m.logcumsumexp(0)  ->  LogcumsumexpBackward0(A)
m.cummax(0)[0]  ->  CummaxBackward0(A)
x.type(t.float32)  ->  ToCopyBackward0(A)
x.pow(2)  ->  PowBackward0(A)
t.pow(2, x)  ->  PowBackward2(A)
t.true_divide(x, y)  ->  DivBackward0(A, A)
t.sub(x, y, alpha=2)  ->  SubBackward0(A, A)
t.add(x, y, alpha=2)  ->  AddBackward0(A, A)
t.rsub(x, 1)  ->  RsubBackward1(A)
t.special.expit(x)  ->  SigmoidBackward0(A)
t.xlogy(x, y)  ->  XlogyBackward0(A, A)
x.logit()  ->  LogitBackward0(A)
x.frac()  ->  FracBackward0(A)
x.trunc()  ->  TruncBackward0(A)
x.ceil()  ->  CeilBackward0(A)
x.erfinv()  ->  ErfinvBackward0(A)
t.sinc(x)  ->  SincBackward0(A)
x.deg2rad()  ->  Deg2RadBackward0(A)
t.copysign(x, y)  ->  CopysignBackward0(A, A)
t.fmax(x, y)  ->  FmaxBackward0(A, A)
t.dist(x, y)  ->  DistBackward0(A, A)
nn.Linear(3, 2, dtype=t.float64)(m)  ->  AddmmBackward0(A, A, TBackward0(A))
nn.Conv2d(1, 1, 2, dtype=t.float64)(im)  ->  ConvolutionBackward0(A, A, A)
nn.BatchNorm1d(3, dtype=t.float64)(m)  ->  NativeBatchNormBackward0(A, A, A)
nn.LayerNorm(3, dtype=t.float64)(m)  ->  NativeLayerNormBackward0(A, A, A)
nn.ReLU(inplace=True)(x.clone())  ->  ReluBackward0(CloneBackward0(A))
"""


def functions(t):
    """What the expressions may use."""

    def write_part(x):
        y = x.clone()
        y[0] = 1.0
        return y

    one = {"dtype": t.float64, "requires_grad": True}
    return {
        "t": t,
        "nn": t.nn,
        "F": t.nn.functional,
        "x": t.tensor([0.1, 0.2, 0.3, 0.4], **one),
        "y": t.tensor([0.5, 0.6, 0.7, 0.8], **one),
        "x3": t.tensor([1.0, 2.0, 3.0], **one),
        "m": t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], **one),
        "n": t.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], **one),
        "b": t.ones(2, 2, 3, **one),
        "s": t.tensor([[2.0, 1.0], [1.0, 3.0]], **one),
        "w": t.ones(2, 3, **one),
        "bias": t.ones(2, **one),
        "idx": t.tensor([[0, 1], [1, 0]]),
        "im": t.ones(1, 1, 4, 4, **one),
        "k": t.ones(1, 1, 2, 2, **one),
        "k1": t.ones(1, 2, 2, **one),
        "write_part": write_part,
    }


def spelled(node):
    if node is None:
        return "-"
    name = node.name().rpartition("::")[2]
    if name == "AccumulateGrad":
        return "A"
    edges = [spelled(n) + (f":{i}" if i else "") for n, i in node.next_functions]
    return f"{name}({', '.join(edges)})"


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("row", GRAPHS.strip().splitlines())
def test_graph_of(t, row):
    expression, graph = row.split("  ->  ")
    result = eval(expression, functions(t))
    node = (result[0] if isinstance(result, tuple) else result).grad_fn
    assert spelled(node) == graph
    assert type(node).__name__ == node.name().rpartition("::")[2]


# ---- nodes ------------------------------------------------------------------------------------------------------


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def test_a_node_is_one_object(t):
    y = leaf(t, 1.0) * 2
    node = y.grad_fn
    assert node is y.grad_fn
    assert node == y.grad_fn
    assert {node, y.grad_fn} == {node}
    assert isinstance(node, t.autograd.graph.Node)
    assert y.exp().grad_fn.next_functions[0][0] is node


def test_nodes_that_nobody_holds_are_freed(t):
    y = leaf(t, 1.0) * 2
    gone = weakref.ref(leaf(t, 1.0).exp())
    assert gone() is None
    gc.disable()
    try:
        keep = y.grad_fn, y.grad_fn.next_functions
        tensor = weakref.ref(y)
        del y, keep
        assert tensor() is None
    finally:
        gc.enable()


def test_the_walk_of_a_graph_drawer(t):
    x = leaf(t, 1.0, 2.0)
    seen, names = set(), []

    def walk(node):
        if node in seen:
            return
        seen.add(node)
        shape = str(tuple(node.variable.shape)) if hasattr(node, "variable") else ""
        names.append(type(node).__name__ + shape)
        for before, _ in node.next_functions:
            if before is not None:
                walk(before)
        assert not hasattr(node, "saved_tensors")

    walk(((x * 2).exp() + x).sum().grad_fn)
    assert names == ["SumBackward0", "AddBackward0", "ExpBackward0", "MulBackward0", "AccumulateGrad(2,)"]


def test_metadata_stays_with_the_node(t):
    y = leaf(t, 1.0) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["note"] = 3
    assert y.grad_fn.metadata == {"note": 3}


def test_later_nodes_have_larger_numbers(t):
    y = leaf(t, 1.0) * 2
    assert (y * 2).grad_fn._sequence_nr() > y.grad_fn._sequence_nr()


def test_a_node_is_not_made_by_hand(t):
    with pytest.raises(TypeError):
        t.autograd.graph.Node()


def test_a_node_can_be_called(t):
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    dx, dy = (x * y).grad_fn(t.tensor([1.0, 10.0], dtype=t.float64))
    assert (dx.tolist(), dy.tolist()) == ([3.0, 40.0], [1.0, 20.0])


def test_nodes_of_functions_have_what_their_context_has(t):
    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 2
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    x = leaf(t, 1.0)
    node = Twice.apply(x).grad_fn
    assert (type(node).__name__, node.name(), node.factor) == ("TwiceBackward", "TwiceBackward", 2)
    assert node.saved_tensors[0] is x
    assert node.needs_input_grad == (True,)
    assert node.next_functions[0][0].variable is x
    with pytest.raises(AttributeError):
        _ = node.nothing


# ---- saved values -----------------------------------------------------------------------------------------------


def test_saved_arguments_and_results(t):
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    node = (x * y).grad_fn
    assert node._saved_self is x
    assert node._saved_other is y
    assert (x * 2).grad_fn._saved_self is None
    assert (x**2).grad_fn._saved_exponent == 2
    assert (x**y).grad_fn._saved_exponent is y
    out = x.exp()
    assert out.grad_fn._saved_result.tolist() == out.tolist()
    assert out.grad_fn._saved_result.grad_fn is out.grad_fn
    assert t.cumsum(x, 0).grad_fn._saved_dim == 0
    assert [name for name in dir(out.grad_fn) if name.startswith("_saved")] == ["_saved_result"]
    assert [name for name in dir(node) if name.startswith("_saved")] == ["_saved_other", "_saved_self"]
    with pytest.raises(AttributeError):
        _ = node._saved_nothing


def test_saved_values_are_freed(t):
    out = leaf(t, 1.0).exp()
    out.backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        _ = out.grad_fn._saved_result


def test_saved_values_that_were_written(t):
    out = leaf(t, 1.0).exp()
    out.add_(1)
    node = out.grad_fn.next_functions[0][0]
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0 instead"):
        _ = node._saved_result


def test_hooks_of_one_saved_tensor(t):
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    out = x * y
    out.grad_fn._raw_saved_self.register_hooks(lambda kept: (kept, "x"), lambda kept: kept[0] * 5)
    with pytest.raises(RuntimeError, match="have already been set"):
        out.grad_fn._raw_saved_self.register_hooks(lambda kept: kept, lambda kept: kept)
    out.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([3.0, 4.0], [5.0, 10.0])
    with pytest.raises(RuntimeError, match="None is forbidden"):
        (x * 2).grad_fn._raw_saved_self.register_hooks(lambda kept: kept, lambda kept: kept)


def test_what_is_one_node_is_one_in_anomaly_mode_and_in_compiled_steps_too(t):
    x, w, shown = t.rand(2, 3, requires_grad=True), t.ones(3, requires_grad=True), []

    def step(x, w):
        y = t.nn.functional.layer_norm(x.sin(), (3,), w)
        shown.append([type(node).__name__ for node in (y.grad_fn, *[node for node, _ in y.grad_fn.next_functions])])
        return y

    with pytest.warns(UserWarning, match="Anomaly Detection"), t.autograd.detect_anomaly():
        step(x, w)
    compiled = t.compile(step) if t.__name__ == "leafgrad" else step
    for _ in range(3):
        compiled(x, w)
    assert shown == [["NativeLayerNormBackward0", "SinBackward0", "AccumulateGrad", "NoneType"]] * 4
