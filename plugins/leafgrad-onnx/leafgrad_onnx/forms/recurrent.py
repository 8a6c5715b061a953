"""Forms of recurrent layers: Scan, whose body is one step."""

from __future__ import annotations

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.ops import recurrent
from leafgrad_onnx.writer import OnnxWriter, Subgraph


def gates(w: OnnxWriter, name: str, count: int, hidden: int) -> list[str]:
    """The parts of one step's gates, side by side in the last dimension."""
    return [w.emit("Slice", name, w.ints([k * hidden]), w.ints([(k + 1) * hidden]), w.ints([1])) for k in range(count)]


class CellStep:
    """The body of a Scan over time.

    Args:
        states: the equation's inputs that are states, by where they are.
    """

    def __init__(self, w: OnnxWriter, e: Equation, states: tuple[int, ...]) -> None:
        self.w, self.e = w, e
        x, weight = e.values[:2]
        self.hidden = weight.shape[1]
        self.turned = w.emit("Transpose", w(weight), perm=[1, 0])
        self.states = [w(e.inputs[i]) for i in states]
        self.body = Subgraph()
        for i in states:
            v = e.inputs[i]
            assert isinstance(v, Value)
            self.body.inputs.append((w.fresh(), v.dtype, v.shape))
        self.body.inputs.append((w.fresh(), x.dtype, x.shape[1:]))
        self.names = [name for name, _, _ in self.body.inputs]
        self.outer, w.nodes = w.nodes, self.body.nodes

    def across(self) -> str:
        """w_hh h."""
        return str(self.w.emit("MatMul", self.names[0], self.turned))

    def done(self, *outputs: str) -> tuple[str, ...]:
        """Scan with these states, then results, of one step; returns the results of all."""
        w, count = self.w, len(self.states)
        states = [w.emit("Identity", name) for name in outputs[:count]]
        results = [w.emit("Identity", name) for name in outputs[count:]]
        w.nodes = self.outer
        shapes = [shape for _, _, shape in self.body.inputs[:count]]
        shapes += [value.shape[1:] for value in self.e.outputs]
        dtype = self.e.out.dtype
        self.body.outputs += [(n, dtype, s) for n, s in zip([*states, *results], shapes, strict=True)]
        found = w.emit(
            "Scan", *self.states, w(self.e.inputs[0]), outputs=count + len(results), body=self.body, num_scan_inputs=1
        )
        return tuple(found[count:])


@recurrent.rnn.lower("onnx")
def _rnn(w: OnnxWriter, e: Equation) -> str:
    step = CellStep(w, e, (2,))
    total = w.emit("Add", step.names[1], step.across())
    h = w.emit("Relu" if e.params["relu"] else "Tanh", total)
    return step.done(h, h)[0]


@recurrent.gru.lower("onnx")
def _gru(w: OnnxWriter, e: Equation) -> tuple[str, ...]:
    step = CellStep(w, e, (2,))
    h, x = step.names
    across = step.across()
    if len(e.values) > 3:
        across = w.emit("Add", across, w(e.inputs[3]))
    (a, d, n), (p, s, q) = (gates(w, v, 3, step.hidden) for v in (x, across))
    r, z = w.emit("Sigmoid", w.emit("Add", a, p)), w.emit("Sigmoid", w.emit("Add", d, s))
    n = w.emit("Tanh", w.emit("Add", n, w.emit("Mul", r, q)))
    new = w.emit("Add", n, w.emit("Mul", z, w.emit("Sub", h, n)))
    return step.done(new, new, w.emit("Concat", r, z, n, axis=1), q)


@recurrent.lstm.lower("onnx")
def _lstm(w: OnnxWriter, e: Equation) -> tuple[str, ...]:
    step = CellStep(w, e, (2, 3))
    _, c, x = step.names
    i, f, g, o = gates(w, w.emit("Add", x, step.across()), 4, step.hidden)
    i, f, o = (w.emit("Sigmoid", v) for v in (i, f, o))
    g = w.emit("Tanh", g)
    c = w.emit("Add", w.emit("Mul", f, c), w.emit("Mul", i, g))
    h = w.emit("Mul", o, w.emit("Tanh", c))
    return step.done(h, c, h, c, w.emit("Concat", i, f, g, o, axis=1))
