"""Attention, with and without heads, and transformers."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import grad, gradcheck, gradgradcheck
from leafgrad.nn import functional as F
from leafgrad.nn.functional.attention import AttentionKind, attend

TESTS = "nn.functional.attention nn.functional.multi_head nn.transformer"

F64 = {"dtype": lg.float64}
SDPA = F.scaled_dot_product_attention


@pytest.fixture(autouse=True)
def _seeded():
    lg.manual_seed(0)


def close(a, b, tolerance=1e-12):
    assert a.shape == b.shape
    assert bool((a - b).abs().max() <= tolerance)


def tensors(*shapes, **where):
    return [lg.randn(*shape, requires_grad=True, **{**F64, **where}) for shape in shapes]


# ---- scaled dot products ------------------------------------------------------------------------------------------


def test_attention_is_softmax_of_scores(device):
    q, k, v = tensors((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 7), device=device)
    scores = q @ k.mT / 2
    close(SDPA(q, k, v), scores.softmax(-1) @ v)
    seen = lg.rand(2, 1, 5, 6, device=device) < 0.5
    seen[..., 0] = True
    close(SDPA(q, k, v, seen), scores.masked_fill(~seen, -math.inf).softmax(-1) @ v)
    bias = lg.randn(5, 1, device=device, **F64)
    close(SDPA(q, k, v, bias, scale=0.1), (scores * 0.2 + bias).softmax(-1) @ v)
    later = lg.ones(5, 6, dtype=lg.bool, device=device).triu(1)
    close(SDPA(q, k, v, is_causal=True), scores.masked_fill(later, -math.inf).softmax(-1) @ v)


@pytest.mark.parametrize("masked", ["no", "bool", "float", "causal"])
def test_fast_gradients_are_those_of_the_definition(masked, device):
    """``attention_gradients`` of ``ops/attention.py``, in one block and in several."""
    for lead, queries, keys in (((2, 3), 5, 6), ((), 200, 300), ((900,), 6, 7)):
        q, k, v = tensors((*lead, queries, 2), (*lead, keys, 2), (*lead, keys, 3), device=device)
        mask = {
            "bool": lg.rand(queries, keys, device=device) < 0.3,
            "float": lg.randn(queries, keys, device=device, **F64),
        }.get(masked)
        given = (q, k, v) if mask is None else (q, k, v, mask)
        causal = masked == "causal"
        fast, slow = SDPA(*given, is_causal=causal), attend(AttentionKind(1 / math.sqrt(2), causal), *given)
        close(fast, slow)
        for a, b in zip(*(grad(y.sin().sum(), (q, k, v)) for y in (fast, slow)), strict=True):
            close(a, b, 1e-10)


def test_gradients_of_both_orders():
    q, k, v, bias = tensors((2, 3, 2), (2, 4, 2), (2, 4, 2), (3, 4))
    seen = lg.tensor([[True, False, True, True], [False] * 4, [True] * 4])
    for call, inputs in (
        (SDPA, (q, k, v)),
        (lambda *a: SDPA(*a, seen), (q, k, v)),
        (lambda *a: SDPA(*a, is_causal=True), (q, k, v)),
        (SDPA, (q, k, v, bias)),
    ):
        assert gradcheck(call, inputs, fast_mode=True)
        assert gradgradcheck(call, inputs, fast_mode=True)


def test_a_query_that_sees_no_key_gets_zeros(device):
    q, k, v = tensors((2, 3), (2, 3), (2, 3), device=device)
    for mask in (
        lg.tensor([[True, True], [False, False]], device=device),
        lg.full((2, 2), -math.inf, device=device, **F64),
    ):
        for out in (SDPA(q, k, v, mask), attend(AttentionKind(1.0, False), q, k, v, mask)):
            assert out[1].tolist() == [0, 0, 0]
            assert all(bool(g.isfinite().all()) for g in grad(out.sum(), (q, k, v)))
    assert SDPA(q, k[:0], v[:0]).tolist() == [[0] * 3] * 2


def test_groups_of_queries_share_keys_and_values():
    q, k, v = tensors((2, 6, 4, 3), (2, 2, 5, 3), (2, 2, 5, 3))
    repeated = SDPA(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1))
    close(SDPA(q, k, v, enable_gqa=True), repeated)
    close(SDPA(q[0], k[0, :1], v[0, :1]), SDPA(q[0], k[0, :1].expand(6, 5, 3), v[0, :1].expand(6, 5, 3)))


def test_dropout():
    q, k = tensors((400, 2), (300, 2))
    v = lg.eye(300, **F64)
    weights = SDPA(q, k, v, dropout_p=0.25)
    assert (weights == 0).double().mean().item() == pytest.approx(0.25, abs=0.01)
    close(weights[weights != 0], SDPA(q, k, v)[weights != 0] / 0.75)


def peak(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_scores_are_not_held():
    n = 2048
    scores = n * n * 4
    q, k, v = (lg.randn(1, 1, n, 8) for _ in range(3))
    seen = lg.ones(1, 1, 1, n, dtype=lg.bool)
    layer = nn.MultiheadAttention(8, 1)
    x = lg.randn(n, 1, 8)
    assert peak(lambda: attend(AttentionKind(1.0, False), q, k, v)) > scores
    assert peak(lambda: SDPA(q, k, v)) < scores / 8
    assert peak(lambda: SDPA(q, k, v, seen)) < scores / 8
    assert peak(lambda: SDPA(q, k, v, is_causal=True)) < scores / 8
    assert peak(lambda: grad(SDPA(q.requires_grad_(), k, v).sum(), q)) < scores / 8
    with lg.no_grad():
        assert peak(lambda: layer(x, x, x, need_weights=False)) < scores / 4


# ---- heads --------------------------------------------------------------------------------------------------------


def by_hand(layer, query, key, value, blocked=None):
    """(N, L, E) with packed weights: the result and the weights of each head."""
    parts = zip((query, key, value), layer.in_proj_weight.chunk(3), layer.in_proj_bias.chunk(3), strict=True)
    q, k, v = (F.linear(x, w, b).unflatten(-1, (layer.num_heads, -1)).transpose(1, 2) for x, w, b in parts)
    scores = q @ k.mT / math.sqrt(layer.head_dim)
    weights = (scores if blocked is None else scores.masked_fill(blocked, -math.inf)).softmax(-1)
    return layer.out_proj((weights @ v).transpose(1, 2).flatten(2)), weights


def test_heads(device):
    layer = nn.MultiheadAttention(6, 3, batch_first=True, device=device, **F64)
    lg.nn.init.normal_(layer.in_proj_bias)
    q, k, v = tensors((2, 4, 6), (2, 5, 6), (2, 5, 6), device=device)
    blocked = lg.rand(2, 1, 4, 5, device=device) < 0.3
    blocked[..., 0] = False
    padding = lg.zeros(2, 5, dtype=lg.bool, device=device)
    padding[1, 3:] = True
    for mask, pad in itertools.product((None, blocked), (None, padding)):
        both = [m for m in (mask, None if pad is None else pad.reshape(2, 1, 1, 5)) if m is not None]
        expected, weights = by_hand(layer, q, k, v, both[0] | both[-1] if both else None)
        given = None if mask is None else mask.expand(2, 3, 4, 5).flatten(0, 1)
        out, found = layer(q, k, v, pad, attn_mask=given)
        close(out, expected)
        close(found, weights.mean(1))
        close(layer(q, k, v, pad, attn_mask=given, average_attn_weights=False)[1], weights)
        out, found = layer(q, k, v, pad, need_weights=False, attn_mask=given)
        close(out, expected)
        assert found is None


def test_length_first_and_without_batch():
    layer = nn.MultiheadAttention(6, 3, **F64)
    q, k = tensors((4, 2, 6), (5, 2, 6))
    expected, _ = by_hand(layer, q.transpose(0, 1), k.transpose(0, 1), k.transpose(0, 1))
    close(layer(q, k, k)[0], expected.transpose(0, 1))
    out, weights = layer(q[:, 0], k[:, 0], k[:, 0])
    close(out, expected[0])
    assert weights.shape == (4, 5)


def test_added_keys_and_other_sizes():
    layer = nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=5, **F64)
    q, k, v = tensors((3, 2, 4), (6, 2, 3), (6, 2, 5))
    blocked = lg.ones(2, 6, dtype=lg.bool)
    out, weights = layer(q, k, v, key_padding_mask=blocked)
    assert weights.shape == (2, 3, 8)
    assert bool((weights[..., :6] == 0).all())  # what is added takes part
    assert out.shape == q.shape
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {
        "q_proj_weight": (4, 4),
        "k_proj_weight": (4, 3),
        "v_proj_weight": (4, 5),
        "in_proj_bias": (12,),
        "bias_k": (1, 1, 4),
        "bias_v": (1, 1, 4),
        "out_proj.weight": (4, 4),
        "out_proj.bias": (4,),
    }


def test_gradients_of_heads():
    layer = nn.MultiheadAttention(2, 2, batch_first=True, **F64)
    (x,) = tensors((2, 3, 2))
    inputs = (x, *layer.parameters())
    for need in (True, False):
        assert gradcheck(lambda x, *_, n=need: layer(x, x, x, need_weights=n)[0], inputs, fast_mode=True)
        assert gradgradcheck(lambda x, *_, n=need: layer(x, x, x, need_weights=n)[0], inputs, fast_mode=True)


# ---- transformers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_layer_is_its_parts(norm_first, device):
    layer = nn.TransformerEncoderLayer(
        6, 2, 8, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm_first, device=device, **F64
    )
    (x,) = tensors((2, 4, 6), device=device)

    def attention(x):
        return layer.self_attn(x, x, x)[0]

    def feed(x):
        return layer.linear2(F.gelu(layer.linear1(x)))

    if norm_first:
        y = x + attention(layer.norm1(x))
        y = y + feed(layer.norm2(y))
    else:
        y = layer.norm1(x + attention(x))
        y = layer.norm2(y + feed(y))
    close(layer(x), y)


def test_no_element_sees_a_later_one():
    model = nn.Transformer(6, 2, 1, 1, 8, dropout=0.0, batch_first=True, **F64)
    mask = nn.Transformer.generate_square_subsequent_mask(4, **F64)
    assert mask.tolist() == [[0 if j <= i else -math.inf for j in range(4)] for i in range(4)]
    src, tgt = tensors((2, 5, 6), (2, 4, 6))
    out = model(src, tgt, tgt_mask=mask)
    (g,) = grad(out[:, 1].sin().sum(), tgt)
    assert bool((g[:, 2:] == 0).all())
    assert bool((g[:, :2] != 0).all())
    for causal in (True, None):
        close(model(src, tgt, tgt_mask=mask, tgt_is_causal=causal), out)


def test_layers_of_a_stack_are_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    stack = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4), enable_nested_tensor=False)
    assert len({id(p) for p in stack.parameters()} | {id(p) for p in layer.parameters()}) == 12 * 3 + 2
    assert list(stack.state_dict())[:2] == ["layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias"]


def test_dropout_in_training_only():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5)
    x = lg.randn(3, 2, 4)
    assert not bool((layer(x) == layer(x)).all())
    layer.eval()
    assert bool((layer(x) == layer(x)).all())


def test_compiled_steps_are_those_of_the_eager_layers():
    def train(wrap):
        lg.manual_seed(1)
        model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        adam = lg.optim.Adam(model.parameters(), lr=0.01)
        mask = nn.Transformer.generate_square_subsequent_mask(4)

        @wrap
        def step(src, tgt):
            adam.zero_grad()
            loss = (model(src, tgt, tgt_mask=mask, tgt_is_causal=True) - tgt).pow(2).mean()
            loss.backward()
            adam.step()
            return loss

        return [step(lg.randn(2, 5, 8), lg.randn(2, 4, 8)).item() for _ in range(4)]

    assert train(lg.compile) == pytest.approx(train(lambda f: f), rel=1e-4)


# ---- what goes wrong ----------------------------------------------------------------------------------------------

R = lg.ones
CAUSAL = {"is_causal": True}
ATTENTION_ERRORS = [
    (lambda: SDPA(R(3), R(3), R(3)), RuntimeError, "at least 2 dimensional, but got query.dim: 1, key.dim: 1"),
    (lambda: SDPA(3, R(2, 2), R(2, 2)), TypeError, "query"),
    (lambda: SDPA(R(2, 3), R(4, 2), R(4, 5)), RuntimeError, "query and key of the same size, got 3 and 2"),
    (lambda: SDPA(R(2, 3), R(4, 3), R(5, 5)), RuntimeError, "one value for each key, got 4 and 5"),
    (lambda: SDPA(R(2, 3), R(2, 3), R(2, 3).double()), RuntimeError, "value.dtype: leafgrad.float64"),
    (lambda: SDPA(R(2, 3), R(2, 3), R(2, 3), R(2, 2), **CAUSAL), RuntimeError, "attn_mask should not be set when"),
    (lambda: SDPA(R(2, 3), R(2, 3), R(2, 3), R(2, 2).long()), RuntimeError, "attn_mask.dtype: leafgrad.int64"),
    (lambda: SDPA(R(2, 3), R(2, 3), R(2, 3), R(3, 3)), RuntimeError, r"broadcasts to \[2, 2\], got \[3, 3\]"),
    (lambda: SDPA(R(2, 3), R(2, 3), R(2, 3), dropout_p=2.0), RuntimeError, "between 0 and 1, but got 2"),
    (
        lambda: SDPA(R(8, 4, 3), R(3, 4, 3), R(3, 4, 3), enable_gqa=True),
        RuntimeError,
        "must divide the number of heads",
    ),
    (lambda: SDPA(R(8, 4, 3), R(2, 4, 3), R(2, 4, 3)), RuntimeError, "[Ss]hape"),
]
HEADS = nn.MultiheadAttention(8, 2)
Q, K = R(4, 3, 8), R(5, 3, 8)
HEAD_ERRORS = [
    (lambda: nn.MultiheadAttention(8, 3), AssertionError, "embed_dim must be divisible by num_heads"),
    (lambda: nn.MultiheadAttention(8, 0), ValueError, "greater than 0, got embed_dim=8 and num_heads=0"),
    (lambda: HEADS(Q[0, 0], K, K), AssertionError, "but received 1-D query"),
    (lambda: HEADS(Q[:, 0], K, K), AssertionError, "expected `key` and `value` to be 2-D but found 3-D"),
    (lambda: HEADS(Q[..., :7], K, K), AssertionError, "embedding dimension of 8, but got 7"),
    (lambda: HEADS(Q, K, R(6, 3, 8)), AssertionError, "does not match value shape"),
    (lambda: HEADS(Q, K, K, **CAUSAL), RuntimeError, "Need attn_mask if specifying the is_causal hint"),
    (lambda: HEADS(Q, K, K, attn_mask=R(4, 4)), RuntimeError, r"2D attn_mask is .*\[4, 4\]\), but should be \(4, 5\)"),
    (lambda: HEADS(Q, K, K, attn_mask=R(3, 4, 5)), RuntimeError, r"should be \(6, 4, 5\)"),
    (lambda: HEADS(Q, K, K, attn_mask=R(1, 6, 4, 5)), AssertionError, "2-D or 3-D but found 4-D"),
    (lambda: HEADS(Q, K, K, attn_mask=R(4, 5).long()), AssertionError, "only bool and floating types of attn_mask"),
    (lambda: HEADS(Q, K, K, R(3, 4)), AssertionError, r"key_padded_mask.shape\[1\] to be 5, but got 4"),
    (lambda: HEADS(Q, K, K, R(5)), AssertionError, "`key_padding_mask` to be `None` or 2-D but found 1-D"),
    (lambda: nn.TransformerEncoderLayer(8, 2, activation="x"), RuntimeError, "should be relu/gelu, not x"),
    (lambda: nn.Transformer(8, 2, 1, 1, 8)(R(4, 3, 8), R(5, 2, 8)), RuntimeError, "batch number of src and tgt"),
    (lambda: nn.Transformer(8, 2, 1, 1, 8)(R(4, 3, 7), R(5, 3, 7)), RuntimeError, "must be equal to d_model"),
]


@pytest.mark.parametrize(("call", "error", "words"), [*ATTENTION_ERRORS, *HEAD_ERRORS])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_masks_of_two_dtypes_warn():
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        HEADS(Q, K, K, R(3, 5) < 0, attn_mask=R(4, 5))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"kdim": 3, "vdim": 3}])
@pytest.mark.parametrize("batches", [(2, 1), (1, 2), (2, 4)])
def test_queries_and_keys_of_another_batch_are_refused(batches, options, need_weights, t):
    attention = t.nn.MultiheadAttention(4, 2, **options)
    query, key = (t.ones(5, n, size) for n, size in zip(batches, (4, options.get("kdim", 4)), strict=True))
    if "batch_first" in options:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    with pytest.raises(RuntimeError) as info:
        attention(query, key, key, need_weights=need_weights)
    if t is lg:
        text = "expected query and key of one batch size, their dimension {}, got {} in query and {} in key"
        assert str(info.value) == text.format(0 if "batch_first" in options else 1, *batches)


@pytest.mark.parametrize("batches", [(2, 1), (1, 2)])
def test_decoders_refuse_a_memory_of_another_batch(batches, t):
    target, memory = (t.ones(3, n, 4) for n in batches)
    with pytest.raises(RuntimeError):
        t.nn.TransformerDecoderLayer(4, 2, 4, dropout=0.0)(target, memory)


def test_sizes_of_given_keys_values_and_biases(t):
    q = t.ones(3, 2, 4)
    more = {"in_proj_bias": None, "add_zero_attn": False, "dropout_p": 0.0, "out_proj_weight": t.eye(4)}

    def attend_with(q=q, bias_k=None, bias_v=None, out=None, **options):
        forward = t.nn.functional.multi_head_attention_forward
        sizes = {"embed_dim_to_check": 4, "num_heads": 2, "in_proj_weight": t.ones(12, 4), "out_proj_bias": out}
        return forward(q, q, q, bias_k=bias_k, bias_v=bias_v, **sizes, **more, **options)[0]

    static = t.ones(4, 5, 2)
    assert attend_with(static_k=static, static_v=static).shape == (3, 2, 4)
    assert attend_with(bias_k=t.ones(1, 1, 4), bias_v=t.ones(1, 1, 4), out=t.ones(4)).shape == (3, 2, 4)
    for name in ("static_k", "static_v"):
        with pytest.raises(AssertionError, match=rf"expecting {name}.size\(0\) of 4, but got 2"):
            attend_with(**{"static_k": static, "static_v": static, name: static[:2]})
    for name in ("bias_k", "bias_v"):
        for wrong in (t.ones(1, 1, 1), t.ones(1, 2, 4), t.ones(1)):
            with pytest.raises(RuntimeError, match=rf"{name}: expected size \[1, 1, 4\], got \[" if t is lg else None):
                attend_with(**{"bias_k": t.ones(1, 1, 4), "bias_v": t.ones(1, 1, 4), name: wrong})
    with pytest.raises(RuntimeError, match=r"out_proj_bias: .* to \[4\], got \[2, 4\]" if t is lg else None):
        attend_with(out=t.ones(2, 4))


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float64"])
def test_a_mask_may_be_float32_whatever_the_queries_are(kind, t):
    attention = t.nn.functional.scaled_dot_product_attention
    t.manual_seed(0)
    q, k, v = (t.rand(1, 2, 3, 4).to(getattr(t, kind)).requires_grad_() for _ in range(3))
    mask = t.rand(3, 3).requires_grad_()
    out = attention(q, k, v, mask.detach())
    wanted = attention(q.double(), k.double(), v.double(), mask.double())
    assert out.dtype is q.dtype
    assert out.double().allclose(wanted, atol=0.02)
    attention(q, k, v, mask).sum().backward()
    assert (q.grad.dtype, mask.grad.dtype) == (q.dtype, t.float32)
    for other in {t.float16, t.bfloat16, t.float64} - {q.dtype}:
        with pytest.raises(RuntimeError, match="Expected attn_mask dtype to be bool or float or to match query dtype"):
            attention(q, k, v, mask.detach().to(other))


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_a_float32_mask_beyond_float16_leaves_out_no_key(kind, t):
    x = t.rand(1, 1, 3, 4).to(getattr(t, kind))
    out = t.nn.functional.scaled_dot_product_attention(x, x, x, t.full((3, 3), -1e9))
    assert out.float().allclose(x.float().mean(-2, keepdim=True), atol=0.01)


# ---- compiled -------------------------------------------------------------------------------------------------------


def compiled_names(executor, mask=None, causal=False):
    """The ops of a compiled step, after its results were compared with eager's."""
    given = tensors(*[(2, 3, n, 4) for n in ((7, 5, 5) if causal else (5, 7, 7))])

    def attention_step(q, k, v):
        out = SDPA(q, k, v, mask, is_causal=causal)
        return out, *grad((out * out).sum(), [q, k, v])

    step = lg.compile(attention_step, executor=executor)
    step(*given)
    for ours, right in zip(step(*given), attention_step(*given), strict=True):
        close(ours, right)
    return {e.name for e in step._calls.runner().graph.equations}


@pytest.mark.parametrize("executor", ["numpy", "replay"])
@pytest.mark.parametrize("masked", ["", "causal", "bool", "summand", "none for a query"])
def test_compiled_attention_is_products_that_are_merged_with_their_neighbours(executor, masked):
    mask = {"bool": lg.rand(5, 7) > 0.4, "summand": lg.randn(3, 5, 7, **F64)}.get(masked)
    if masked == "none for a query":
        mask = lg.arange(5)[:, None] > lg.zeros(7)
    names = compiled_names(executor, mask, causal=masked == "causal")
    assert "matmul" in names
    assert not names & {"attention", "attention_gradients"}


def test_many_scores_are_not_held_whole(monkeypatch):
    monkeypatch.setattr("leafgrad.ops.attention.WHOLE", 2 * 3 * 5 * 7 - 1)
    assert {"attention", "attention_gradients"} <= compiled_names("numpy")


def test_attention_lies_in_memory_as_its_queries():
    """So that heads may be joined by ``transpose(1, 2).view(...)``."""
    q, k, v = (lg.rand(2, 5, 4, 8).transpose(1, 2) for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v)
    assert out.transpose(1, 2).is_contiguous()
    assert out.transpose(1, 2).view(2, 5, 32).shape == (2, 5, 32)
    plain = F.scaled_dot_product_attention(q.contiguous(), k.contiguous(), v.contiguous())
    assert plain.is_contiguous()
    assert plain.allclose(out)
    x = lg.rand(2, 5, 4, 8, dtype=lg.float64).requires_grad_()
    lg.autograd.gradcheck(lambda x: F.scaled_dot_product_attention(*[x.transpose(1, 2)] * 3), x)
