"""The profiler: what is recorded of eager and compiled steps, the table, and the trace."""

from __future__ import annotations

import json

import pytest

import leafgrad
from leafgrad import explain, modes, nn, optim
from leafgrad.profiler import profile, record_function, schedule, tensorboard_trace_handler

TESTS = "profiler.events"


def make_step():
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        sgd.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        sgd.step()
        return loss

    return net, step


def counts(prof):
    return {e.key: e.count for e in prof.key_averages()}


def test_an_eager_step():
    _, step = make_step()
    with profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        for _ in range(2):
            with record_function("step"):
                step(leafgrad.ones(16, 3))
    found = counts(prof)
    assert (found["step"], found["linear"], found["tanh"], found["TanhBackward0"]) == (2, 4, 2, 2)
    assert found["AddmmBackward0"] == 4
    assert found["full"] == 2
    tanh = next(e for e in prof.events() if e.name == "tanh")
    assert (tanh.shapes, tanh.bytes, tanh.kind) == (((16, 8),), 16 * 8 * 4, "op")
    assert __file__ in tanh.line
    part = next(e for e in prof.events() if e.name == "step")
    inside = [e for e in prof.events() if e.name != "step" and part.begin <= e.begin <= part.begin + part.seconds]
    assert sum(e.seconds for e in inside) == pytest.approx(part.inside)
    assert 0 < part.inside < part.seconds


def test_a_compiled_step_is_one_row_and_does_the_same():
    net, step = make_step()
    compiled = leafgrad.compile(step)
    for _ in range(3):
        compiled(leafgrad.ones(16, 3))
    before = compiled.explain().splitlines()[0]
    with profile() as prof:
        compiled(leafgrad.ones(16, 3))
    assert {k: n for k, n in counts(prof).items() if k.startswith("compiled")} == {f"compiled {step.__qualname__}": 1}
    assert "linear" not in counts(prof)
    assert compiled.explain().splitlines()[0] == before  # nothing is traced again
    state = [p.tolist() for p in net.parameters()]
    assert state == state


def test_recording_changes_no_numbers():
    def run():
        leafgrad.manual_seed(0)
        net, step = make_step()
        losses = [step(leafgrad.randn(4, 3)).item() for _ in range(3)]
        return losses, [p.tolist() for p in net.parameters()]

    plain = run()
    with profile(profile_memory=True, record_shapes=True):
        assert run() == plain
    assert not modes.get() & modes.WATCH


def test_tables():
    with profile(profile_memory=True, record_shapes=True) as prof, record_function("outer"):
        x = leafgrad.ones(1000)
        for _ in range(3):
            (x * 2).exp()
        leafgrad.ones(2).exp()
    averages = prof.key_averages()
    lines = averages.table(sort_by="count", row_limit=2).splitlines()
    assert lines[0].split("  ")[-1].strip() == "# of Calls"
    assert lines[2].split()[0] == "exp"
    assert len(lines) == 6
    assert "3.91 KB" in averages.table()
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert sorted(e.count for e in by_shape if e.key == "exp") == [1, 3]
    assert "(1000,)" in by_shape.table()
    total = sum(e.self_cpu_time_total for e in averages)
    assert total == pytest.approx(next(e.cpu_time_total for e in averages if e.key == "outer"))
    with pytest.raises(ValueError, match="sort_by: expected one of cpu_time_total"):
        averages.table(sort_by="cuda_time")


def test_events_know_what_ran_in_them_and_are_a_table_too():
    with profile(record_shapes=True, with_stack=True) as prof, record_function("outer"):
        leafgrad.ones(1000).exp()
        with record_function("a name of more than twenty letters"):
            leafgrad.ones(2).exp()
    events = prof.function_events
    outer = next(e for e in events if e.key == "outer")
    assert [e.key for e in outer.cpu_children] == ["full", "exp", "a name of more than twenty letters"]
    assert all(e.cpu_parent is outer for e in outer.cpu_children)
    assert outer.time_range.elapsed_us() == pytest.approx(outer.cpu_time_total) == pytest.approx(outer.cpu_time)
    assert outer.self_cpu_time_total == pytest.approx(
        outer.cpu_time_total - sum(e.cpu_time_total for e in outer.cpu_children)
    )
    assert prof.self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    assert prof.total_average().count == len(events) == 6
    assert len({e.id for e in events}) == 6
    table = events.table(header="of events", top_level_events_only=True)
    assert (table.splitlines()[0], len(table.splitlines())) == ("of events", 6)
    assert "a name of more tha..." in prof.table(max_name_column_width=21)
    assert sorted(e.count for e in prof.key_averages(group_by_stack_n=1) if e.key == "exp") == [1, 1]
    assert "test_profiler.py" in prof.key_averages(group_by_stack_n=1).table(max_src_column_width=999)


def test_traces(tmp_path):
    with profile(with_stack=True, record_shapes=True) as prof, record_function("part"):
        leafgrad.ones(2) + 1
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert events[0]["name"] == "part"
    add = next(e for e in events if e["name"] == "add")
    assert (add["ph"], add["cat"], add["args"]["shapes"]) == ("X", "op", [[2]])
    part = events[0]
    assert part["ts"] <= add["ts"]
    assert add["ts"] + add["dur"] <= part["ts"] + part["dur"]


def test_schedules_and_handlers(tmp_path):
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(schedule=plan, on_trace_ready=tensorboard_trace_handler(str(tmp_path), "me")) as prof:
        for _ in range(6):
            leafgrad.ones(2).exp()
            prof.step()
    assert counts(prof)["exp"] == 2
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("me.")
    assert path.name.endswith(".pt.trace.json")
    assert json.loads(path.read_text())["traceEvents"]


def test_each_cycle_begins_with_nothing():
    seen = []

    def ready(prof):
        found = counts(prof)
        seen.append((prof.step_num, found.get("exp", 0), found["ProfilerStep*"]))

    def run(steps, **numbers):
        seen.clear()
        with profile(schedule=schedule(**numbers), on_trace_ready=ready) as prof:
            for _ in range(steps):
                leafgrad.ones(2).exp()
                prof.step()
        return list(seen)

    assert run(12, wait=1, warmup=1, active=2, repeat=2) == [(4, 2, 2), (8, 2, 2)]
    assert run(7, wait=1, warmup=1, active=2) == [(4, 2, 2), (7, 1, 2)]  # the last step is there, and empty
    assert run(2, wait=0, warmup=0, active=1) == [(1, 1, 1), (2, 1, 1), (2, 0, 1)]
    with pytest.raises(AssertionError, match="active: expected at least 1, got 0"):
        schedule(wait=1, warmup=1, active=0)


def test_memory_of_parts_is_that_of_what_is_inside():
    with profile(profile_memory=True) as prof, record_function("part"):
        y = leafgrad.ones(10) * 2
        y.view(2, 5).exp()
    found = {e.key: (e.cpu_memory_usage, e.self_cpu_memory_usage) for e in prof.key_averages()}
    assert found == {"full": (40, 40), "mul": (40, 40), "reshape": (0, 0), "exp": (40, 40), "part": (120, 0)}
    lines = prof.key_averages().table(sort_by="self_cpu_memory_usage").splitlines()
    assert lines[-3].split()[0] in ("part", "reshape")
    assert profile().key_averages().table().endswith("Self CPU time total: 0.000us\n")


def test_errors_leave_nothing_open():
    with profile() as prof:
        with pytest.raises(RuntimeError, match="cannot be multiplied"), record_function("failing"):
            leafgrad.ones(2, 3) @ leafgrad.ones(2, 3)
        leafgrad.ones(1).exp()
    assert counts(prof)["failing"] == 1
    assert all(e.seconds >= e.inside >= 0 for e in prof.events())


def test_with_other_watchers():
    with profile() as outer, explain.record(), profile() as inner:
        y = leafgrad.ones(2, requires_grad=True) * 2
    assert counts(outer)["mul"] == counts(inner)["mul"] == 1
    assert "It was made at" in explain(y)
    assert not modes.get() & modes.WATCH
