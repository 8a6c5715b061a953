"""Profiles, benchmarks and settings; what they print of times is left out."""

import torch
import torch.profiler
import torch.utils.benchmark as benchmark
from fixed import fill, show, wave
from torch.profiler import ProfilerActivity, profile, record_function, schedule

net = fill(torch.nn.Linear(4, 4))
x = wave(3, 4)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    for _ in range(3):
        with record_function("model_inference"):
            net(x)
rows = [e for e in prof.key_averages() if e.key == "model_inference"]
print(rows[0].count, rows[0].cpu_time_total > 0)
print("model_inference" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
ready = []
with profile(
    schedule=schedule(wait=1, warmup=1, active=2, repeat=1), on_trace_ready=lambda p: ready.append(p.step_num)
) as p:
    for step in range(6):
        net(x)
        p.step()
print(ready)
t0 = benchmark.Timer(stmt="f(x)", setup="import math", globals={"x": x, "f": net}, label="linear", description="eager")
m = t0.timeit(20)
print(m.mean > 0, m.number_per_run, m.title, len(m.times))
print(t0.blocked_autorange(min_run_time=0.01).median > 0)


@torch.compile
def f(v):
    return torch.sin(v) ** 2 + torch.cos(v) ** 2


show("compiled", f(x))
torch._dynamo.reset()


@torch._dynamo.disable
def g(v):
    return v + 1


@torch.compiler.disable
def h(v):
    return v * 2


show("disabled", h(g(x)))
print(torch.compiler.is_compiling(), torch.jit.is_scripting(), torch.overrides.has_torch_function((x,)))
print(torch.__version__.split(".")[0], torch.version.cuda, torch.backends.mps.is_available(), torch.xpu.is_available())
print(torch.get_num_threads() > 0, torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled())
print(isinstance(net, torch.jit.ScriptModule), isinstance(net, torch.fx.GraphModule))
torch.set_printoptions(precision=2, sci_mode=False)
print(x)
torch.set_printoptions(profile="default")
with torch.autograd.profiler.record_function("part"):
    pass
with torch.autograd.set_detect_anomaly(True):
    net(x).sum().backward()
print(torch.initial_seed() >= 0, torch.Generator().manual_seed(7).initial_seed())
