"""Modules of PyTorch that leafgrad does not have: what they answer, and what they refuse."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import leafgrad
from leafgrad.compat.absent import refused, refused_class
from leafgrad.testing import names

TESTS = "compat.absent compat.functorch nn.parallel.data_parallel"

MODULES = (
    "_C __config__ _dynamo _dynamo.config accelerator amp compiler cpu distributed export fx hub jit "
    "mps multiprocessing nn.attention nn.parallel nn.parallel.data_parallel nn.parallel.distributed "
    "optim.optimizer overrides types utils._pytree utils.benchmark utils.model_zoo version xpu"
).split()


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_a_module_is_there(torch, name):
    module = importlib.import_module(f"torch.{name}")
    offered = module._sources[0].__all__
    assert offered
    for each in offered:
        assert getattr(module, each, "absent") != "absent"


def test_refusals():
    function = refused("torch.a.b", "do something else")
    with pytest.raises(
        NotImplementedError, match=r"^torch\.a\.b: leafgrad, which .* cannot do this; do something else$"
    ):
        function(1, x=2)
    assert function.__name__ == "b"
    absent = refused_class("torch.C", "use D")
    with pytest.raises(NotImplementedError, match="use D"):
        absent(1)
    assert not isinstance(1, absent)
    assert absent.__name__ == "C"


# ---- questions ------------------------------------------------------------------------------------------------------

NO = """
torch.jit.is_scripting() torch.jit.is_tracing() torch.distributed.is_available() torch.distributed.is_initialized()
torch.distributed.is_nccl_available() torch.distributed.is_torchelastic_launched() torch.compiler.is_compiling()
torch._dynamo.is_compiling() torch._C._is_tracing() torch._C._get_tracing_state() torch.is_autocast_enabled()
torch.is_autocast_enabled("cpu") torch.amp.is_autocast_available("mps") torch.mps.is_available()
torch.xpu.is_available() torch.mps.device_count() torch.onnx.is_in_onnx_export()
torch.overrides.has_torch_function((1,)) torch.overrides.has_torch_function_unary(1)
torch.overrides.has_torch_function_variadic(1,2) torch.cuda.is_current_stream_capturing()
torch._dynamo.is_dynamo_supported() torch.overrides.is_tensor_like(1) torch.overrides.is_tensor_method_or_property(len)
isinstance(torch.nn.ReLU(),torch.jit.ScriptModule) isinstance(1,torch.distributed.ProcessGroup)
isinstance(1,(torch.fx.GraphModule,torch.nn.parallel.DistributedDataParallel)) torch.newaxis
""".split()


@pytest.mark.parametrize("question", NO)
def test_what_is_not_so(torch, question):

    assert not eval(question)


def test_what_is_so(torch):
    assert torch.overrides.is_tensor_like(torch.ones(1))
    assert torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert torch.cpu.is_available()
    assert torch.cpu.device_count() == 1
    assert "numpy" in torch.compiler.list_backends()
    assert "leafgrad" in torch.__config__.show()
    assert torch.jit.Attribute(3, int).value == 3
    assert torch.jit.annotate(list[int], [1]) == [1]
    if not torch.cuda.is_available():
        assert not torch.accelerator.is_available()
        assert torch.accelerator.current_accelerator() is None
        assert torch.cuda.memory_allocated() == torch.cuda.max_memory_reserved() == 0
        torch.accelerator.synchronize()


UNCHANGED = """
torch.jit.ignore torch.jit.unused torch.jit.export torch.jit.interface torch.jit.script_if_tracing
torch._dynamo.disable torch._dynamo.allow_in_graph torch._dynamo.disallow_in_graph torch.compiler.disable
torch.compiler.allow_in_graph
""".split()


@pytest.mark.parametrize("name", UNCHANGED)
def test_decorators_that_change_nothing(torch, name):
    assert eval(name)(len) is len


def test_decorators_with_arguments(torch):
    assert torch.jit.ignore(drop=True)(len) is len
    assert torch._dynamo.disable(recursive=False)(len) is len
    assert torch._dynamo.optimize("eager")(len) is len


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("torch.jit.script(len)", "leafgrad.compile"),
        ("torch.jit.trace(len, (1,))", "leafgrad.compile"),
        ("torch.jit.load('a.pt')", "state_dict"),
        ("torch.distributed.reduce_scatter(1, 2)", "use all_reduce"),
        ("torch.nn.DataParallel(torch.nn.ReLU(), [0, 1])", "computes on one device, got 2 of them"),
        ("torch.export.export(1)", "leafgrad.trace"),
        ("torch.hub.load('a', 'b')", "download the weights yourself"),
        ("torch.utils.model_zoo.load_url('a')", "download the weights yourself"),
        ("torch.profiler.tensorboard_trace_handler('a', use_gzip=True)", "plain JSON"),
        ("torch._dynamo.explain(len)", "explain"),
        ("torch.utils.benchmark.Timer(num_threads=2)", "expected 1, got 2"),
    ],
)
def test_what_would_have_to_do_something(torch, call, message):

    with pytest.raises(NotImplementedError, match=message):
        eval(call)


def test_groups_that_are_not_there(torch):
    relu, dist, parallel = torch.nn.ReLU(), torch.distributed, torch.nn.parallel
    calls = dist.get_rank, lambda: dist.all_reduce(torch.ones(1)), dist.barrier
    for call in (*calls, lambda: parallel.DistributedDataParallel(relu)):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(ValueError, match="expected 'mpi', got 'gloo'"):
        dist.init_process_group("gloo")


def test_script_with_the_switch_of_pytorch(torch, monkeypatch):
    monkeypatch.setenv("PYTORCH_JIT", "0")
    assert torch.jit.script(len) is torch.jit.trace(len, ()) is len


# ---- what does something --------------------------------------------------------------------------------------------


def test_autocast_for_cuda_where_there_is_none(torch):
    if torch.cuda.is_available():
        pytest.skip("there is CUDA")
    with pytest.warns(UserWarning, match="CUDA is not available.* Disabling autocast"):
        context = torch.autocast("cuda", dtype=torch.float16)
    with context:
        assert (torch.ones(2) @ torch.ones(2)).dtype is torch.float32


def test_data_parallel(torch):
    net = torch.nn.DataParallel(torch.nn.Linear(2, 3))
    assert net(torch.ones(4, 2)).shape == (4, 3)
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    assert torch.nn.parallel.data_parallel(net.module, torch.ones(4, 2)).tolist() == net(torch.ones(4, 2)).tolist()


def test_functions_of_nn_that_are_torchs(torch):
    for name in torch.conv2d, torch.relu_, torch.max_pool2d, torch.prelu:
        assert callable(name)
    assert torch.conv2d is torch.nn.functional.conv2d
    assert torch.relu_(torch.tensor([-1.0, 2])).tolist() == [0, 2]


@pytest.fixture(params=["leafgrad", "torch"])
def either(request):
    """leafgrad as torch, and PyTorch where it is installed."""
    if request.param == "torch":
        yield pytest.importorskip("torch")
    else:
        yield request.getfixturevalue("torch")


def test_older_names_of_functions(either):
    F, init = either.nn.functional, either.nn.init
    x = either.arange(8.0).reshape(1, 2, 2, 2)
    with pytest.warns(UserWarning, match="deprecated"):
        assert F.upsample(x, scale_factor=2).tolist() == F.interpolate(x, scale_factor=2).tolist()
    with pytest.warns(UserWarning, match="deprecated"):
        assert F.upsample_nearest(x, (3, 3)).tolist() == F.interpolate(x, (3, 3)).tolist()
    with pytest.warns(UserWarning, match="deprecated"):
        larger = F.upsample_bilinear(x, scale_factor=2)
    assert larger.tolist() == F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True).tolist()
    values, indices = F.max_pool2d_with_indices(x, 2)
    assert (values.flatten().tolist(), indices.flatten().tolist()) == ([3, 7], [3, 3])
    assert F.adaptive_max_pool2d_with_indices(x, 1)[1].flatten().tolist() == [3, 3]
    w = either.empty(2, 3)
    with pytest.warns(FutureWarning, match="`nn.init.constant` is now deprecated in favor of `nn.init.constant_`."):
        assert init.constant(w, 2.0) is w
    assert w.tolist() == [[2.0] * 3] * 2
    assert init._calculate_fan_in_and_fan_out(either.ones(2, 3, 5)) == (15, 10)
    assert init._calculate_correct_fan(either.ones(2, 3, 5), "fan_out") == 10
    for name in "dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform xavier_normal".split():
        assert callable(getattr(init, name))


def test_functorch(torch):
    import functorch
    from functorch import grad, vmap

    assert vmap(grad(lambda x: x**2))(torch.tensor([1.0, 2])).tolist() == [2, 4]
    with pytest.raises(NotImplementedError, match=r"leafgrad\.trace"):
        functorch.make_fx(torch.nn.ReLU())


def test_functions_of_modules_by_their_older_names(torch):
    from functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers, vmap

    model, x = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).eval(), torch.rand(4, 2)
    function, params, buffers = make_functional_with_buffers(model)
    assert [p.shape for p in params] == [p.shape for p in model.parameters()]
    assert all(p.is_leaf and p.requires_grad and p is not q for p, q in zip(params, model.parameters(), strict=True))
    assert function(params, buffers, x).equal(model(x))
    assert len(buffers) == 3
    zeros = tuple(torch.zeros_like(p) for p in params)
    plain, taken = make_functional(torch.nn.Linear(2, 3), disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in taken)
    assert plain(zeros[:2], x).tolist() == [[0, 0, 0]] * 4
    models = [torch.nn.Linear(2, 1) for _ in range(3)]
    together, params, buffers = combine_state_for_ensemble(models)
    found = vmap(together, in_dims=(0, 0, None))(params, buffers, x)
    assert torch.allclose(found, torch.stack([m(x) for m in models]))


def test_functionalize_gives_the_same(torch):
    function = torch.func.functionalize(lambda x: x.clone().add_(1), remove="mutations_and_views")
    assert function(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="expected remove to be"):
        torch.func.functionalize(function, remove="all")


@pytest.mark.parametrize(
    ("n", "options"), [(1, {}), (2, {"stride": 2, "padding": 1}), (3, {"groups": 2}), (1, {"dilation": 2})]
)
def test_gradients_of_convolutions_as_functions(torch, n, options):
    x = torch.rand(2, 4, *[6] * n, dtype=torch.float64).requires_grad_()
    w = torch.rand(2, 4 // options.get("groups", 1), *[3] * n, dtype=torch.float64).requires_grad_()
    out = getattr(torch.nn.functional, f"conv{n}d")(x, w, **options)
    g = torch.rand(out.shape, dtype=torch.float64).requires_grad_()
    expected = torch.autograd.grad(out, (x, w), g)
    by_input, by_weight = (getattr(torch.nn.grad, f"conv{n}d_{part}") for part in ("input", "weight"))
    assert torch.allclose(by_input(x.shape, w, g, **options), expected[0])
    assert torch.allclose(by_weight(x, w.shape, g, **options), expected[1])
    assert torch.autograd.gradcheck(lambda w, g: by_input(x.shape, w, g, **options), (w, g), fast_mode=True)


def test_hub_folder(torch, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert torch.hub.get_dir() == str(tmp_path / "hub")


def test_multiprocessing_is_pythons(torch):
    import multiprocessing

    from torch.multiprocessing import Queue, set_sharing_strategy

    assert Queue == multiprocessing.Queue
    set_sharing_strategy("file_system")


def test_spawn(tmp_path):
    script = tmp_path / "work.py"
    script.write_text(
        "import sys\n"
        "from leafgrad.compat.torch import multiprocessing as mp\n"
        "def work(i, folder):\n"
        "    if folder == 'fail': sys.exit(3)\n"
        "    open(f'{folder}/{i}', 'w').close()\n"
        "if __name__ == '__main__':\n"
        "    mp.spawn(work, (sys.argv[1],), nprocs=2)\n"
        "    mp.spawn(work, ('fail',), nprocs=1)\n"
    )
    failed = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert {"0", "1"} < {path.name for path in tmp_path.iterdir()}
    assert "spawn: process 0 ended with exit code 3" in failed.stderr


def test_profiles(torch):
    from torch.profiler import ProfilerAction, profile, record_function, schedule

    @record_function("double")
    def double(x):
        return x * 2

    with profile() as whole, record_function("outer"):
        double(double(1))
    assert {e.key: e.count for e in whole.key_averages()} == {"outer": 1, "double": 2}
    assert all(e.cpu_time_total > 0 for e in whole.key_averages())
    lines = whole.key_averages().table(row_limit=1).splitlines()
    assert len(lines) == 5
    assert "outer" in lines[2]
    plan = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    actions = "NONE NONE WARMUP RECORD RECORD_AND_SAVE NONE WARMUP RECORD RECORD_AND_SAVE NONE NONE".split()
    assert [plan(i) for i in range(11)] == [ProfilerAction[n] for n in actions]
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        schedule(wait=0, warmup=0, active=0)
    ended = []
    with profile(schedule=plan, on_trace_ready=lambda p: ended.append(p.step_num)) as parts:
        for _ in range(12):
            double(1)
            parts.step()
    assert ended == [5, 9]
    assert {e.key: e.count for e in parts.key_averages()} == {"ProfilerStep*": 2, "double": 2}  # of the last cycle
    with record_function("not recorded"):
        pass


class Clock:
    """Seconds that pass only where the timed statement says so, and once in a pause of the machine."""

    now = 0.0
    pauses = 0

    def __call__(self):
        return self.now

    def work(self, seconds=1e-6):
        self.now += seconds
        if not self.pauses:
            self.now += 0.5
            self.pauses = 1


def test_timers(torch):
    from torch.utils.benchmark import Timer

    clock = Clock()
    timer = Timer(
        "work()", globals={"work": clock.work}, timer=clock, label="sum", sub_label="small", description="ints"
    )
    many = timer.blocked_autorange(min_run_time=0.02)
    assert many.number_per_run == 1000  # although the first run took half a second
    assert many.median == pytest.approx(1e-6)
    assert many.iqr == pytest.approx(0)
    assert 0.02 <= sum(many.raw_times) < 0.0211
    once = timer.timeit(30)
    assert (once.number_per_run, len(once.times), once.title) == (30, 1, "sum: small")
    assert once.mean == once.median == once.times[0] == pytest.approx(1e-6)
    assert once.iqr == 0
    assert "30 runs" in repr(once)
    assert "Median" in repr(many)
    assert Timer("x + 1", globals={"x": 1}).timeit(30).mean > 0


# ---- trees ----------------------------------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")
TREES = [
    3,
    [],
    [1, (2, None), {"b": 3, "a": [4]}],
    OrderedDict(b=1, a=(2,)),
    defaultdict(list, {"k": [1, 2]}),
    deque([1, 2], maxlen=3),
    Point(1, Point([2], {})),
    (leafgrad.Size([1, 2]), "text", range(3)),
]


@pytest.fixture(params=["leafgrad", "torch"])
def pytree(request):
    """leafgrad's, and PyTorch's where it is installed."""
    if request.param == "leafgrad":
        return importlib.import_module("leafgrad.compat.torch.utils._pytree")
    return pytest.importorskip("torch").utils._pytree


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_trees(pytree, tree):
    leaves, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree
    assert type(again) is type(tree)
    assert spec == pytree.tree_structure(tree)
    assert spec.num_leaves == len(leaves) == len(pytree.tree_leaves(tree))
    assert pytree.tree_map(lambda a, b: a is b, tree, tree) == pytree.tree_map(lambda a: True, tree)


def test_specs(pytree):
    spec = pytree.tree_structure([1, {"a": Point(2, 3)}])
    assert repr(spec).split() == repr(pytree.tree_structure([7, {"a": Point(8, 9)}])).split()
    assert repr(pytree.tree_structure([1, {"a": 2}])) == "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a'], [*])])"
    assert spec != pytree.tree_structure([1, {"b": Point(2, 3)}])
    assert pytree.tree_structure(1).is_leaf()
    assert not spec.is_leaf()


def test_maps_of_several_trees(pytree):
    assert pytree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}) == {"a": (1, 4), "b": (2, 3)}
    assert pytree.tree_map_only(int, lambda x: x + 1, [1, "a"]) == [2, "a"]
    assert pytree.tree_map(len, [[1, 2]], is_leaf=lambda x: x == [1, 2]) == [2]
    for tree, other in [([1, 2], [1]), ([1], (1,)), ({"a": 1}, {"b": 1}), ([[1]], [1])]:
        with pytest.raises(ValueError, match=r"\w"):
            pytree.tree_map(lambda a, b: a, tree, other)
    with pytest.raises(ValueError, match="2"):
        pytree.tree_unflatten([1], pytree.tree_structure([1, 2]))
    assert pytree.tree_any(lambda x: x is None, [1, None])
    assert not pytree.tree_all(lambda x: x is None, [1, None])
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    assert not pytree.tree_any_only(int, lambda x: x > 1, [1, "a"])


def test_registered_containers(pytree):
    class Box:
        def __init__(self, *items):
            self.items = items

    pytree.register_pytree_node(Box, lambda box: (list(box.items), None), lambda items, _: Box(*items))
    mapped = pytree.tree_map(lambda x: x + 1, [Box(1, 2)])
    assert mapped[0].items == (2, 3)
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(list, list, list)


# ---- the table ------------------------------------------------------------------------------------------------------


def test_the_table_of_names_is_up_to_date():
    page = names.PAGE.read_text(encoding="utf-8")
    assert names.TABLE.search(page)[0] == names.table(), "stale: run python -m leafgrad.testing.names"


def test_names_that_are_and_are_not_there():
    assert names.has("torch.Tensor", "add_")
    assert names.has("torch", "jit")
    assert names.has("torch", "conv2d")
    assert not names.has("torch", "ops")
    assert "while_loop" in names.missing("torch")
    assert len(names.names_by_module()) > 30


def test_the_names_are_pytorchs():
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip("another PyTorch")
    for module, listed in names.names_by_module().items():
        holder = torch.Tensor if module == "torch.Tensor" else importlib.import_module(module)
        assert [name for name in listed if not hasattr(holder, name)] == []
