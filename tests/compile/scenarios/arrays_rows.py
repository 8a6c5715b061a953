"""NumPy arrays and other memory outside of tensors, changed in place between calls."""

from __future__ import annotations

import array
import ctypes
import struct
import types

import numpy as np
from compile.scenarios.harness import points, row

import leafgrad
from leafgrad.nn import functional as F


def numbers(dtype="float32"):
    return np.array([1.0, 2.0, 3.0], dtype)


@row
def element_of_an_array(w):
    a = numbers()
    step = w.compile(lambda x: x * float(a[0]))
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def element_of_an_array_as_numpy_number(w):
    a = numbers("float64")
    step = w.compile(lambda x: x * a[0])
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def item_of_an_array(w):
    a = numbers()
    step = w.compile(lambda x: x * a.item(0) + a.sum().item())
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def array_of_no_dimensions(w):
    a = np.array(1.0)
    step = w.compile(lambda x: x * float(a))
    for a[()] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def branch_on_an_array(w):
    a = numbers()
    step = w.compile(lambda x: x * 2 if (a > 2.5).any() else x * 3)
    for a[2] in w.turns(3.0, 0.0, 3.0):
        w.call(step, points())


@row
def loop_over_an_array(w):
    a = numbers()
    step = w.compile(lambda x: sum((x * float(k) for k in a), x))
    for a[1] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def tensor_of_an_array(w):
    a = numbers()
    step = w.compile(lambda x: x + leafgrad.tensor(a))
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def from_numpy_of_an_array(w):
    a = numbers()
    step = w.compile(lambda x: x + leafgrad.from_numpy(a))
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def as_tensor_of_an_array(w):
    a = numbers()
    step = w.compile(lambda x: x + leafgrad.as_tensor(a))
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def tensor_made_outside_from_numpy(w):
    a = numbers()
    t = leafgrad.from_numpy(a)
    step = w.compile(lambda x: x + t)
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def array_given_as_an_argument(w):
    step = w.compile(lambda x, a: x + leafgrad.tensor(a))
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points(), numbers() * np.float32(k))


@row
def array_given_as_an_argument_and_changed_in_place(w):
    a = numbers()
    step = w.compile(lambda x, a: x * float(a[0]))
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points(), a)


@row
def numpy_number_as_an_argument(w):
    step = w.compile(lambda x, k: x * float(k))
    for k in w.turns(np.float64(1.0), np.float32(2.0), np.float64(3.0), np.int64(2)):
        w.call(step, points(), k)


@row
def array_in_an_attribute_that_is_replaced(w):
    o = types.SimpleNamespace(a=numbers())
    step = w.compile(lambda x: x * float(o.a[0]) + leafgrad.tensor(o.a))
    for k in w.turns(1.0, 2.0, 3.0):
        o.a = numbers() * np.float32(k)
        w.call(step, points())


@row
def array_that_grows(w):
    o = types.SimpleNamespace(a=numbers())
    step = w.compile(lambda x: x.sum() * leafgrad.tensor(o.a))
    for n in w.turns(3, 4, 2):
        o.a = np.arange(n, dtype="float32")
        w.call(step, points())


@row
def array_whose_dtype_changes(w):
    o = types.SimpleNamespace(a=numbers())
    step = w.compile(lambda x: x * leafgrad.tensor(o.a))
    for dtype in w.turns("float32", "float64", "int64"):
        o.a = numbers(dtype)
        w.call(step, points())


@row
def view_of_an_array(w):
    a = np.arange(6.0, dtype="float32").reshape(2, 3)
    part = a[1]
    step = w.compile(lambda x: x + leafgrad.from_numpy(part) * float(part[0]))
    for a[1, 0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def array_as_a_class_attribute(w):
    class Settings:
        weights = numbers()

    step = w.compile(lambda x: x * float(Settings.weights[1]))
    for Settings.weights[1] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def structured_array(w):
    a = np.zeros(2, dtype=[("gain", "f4"), ("n", "i4")])
    step = w.compile(lambda x: x * float(a["gain"][1]) + int(a[0]["n"]))
    for gain, n in w.turns((1.0, 0), (2.0, 0), (2.0, 3)):
        a["gain"][1], a["n"][0] = gain, n
        w.call(step, points())


@row
def array_of_objects(w):
    a = np.array([1.0, None, "sin"], dtype=object)
    step = w.compile(lambda x: getattr(x, a[2])() * a[0])
    for a[0], a[2] in w.turns((1.0, "sin"), (2.0, "sin"), (2.0, "cos")):
        w.call(step, points())


@row
def interpolation_by_numpy(w):
    xs, ys, o = numbers(), numbers(), types.SimpleNamespace(at=1.5)
    step = w.compile(lambda x: x * float(np.interp(o.at, xs, ys)))
    for o.at, ys[1] in w.turns((1.5, 2.0), (2.5, 2.0), (2.5, 5.0)):
        w.call(step, points())


@row
def printing_options_and_errstate_of_numpy(w):
    o, zero = types.SimpleNamespace(how="ignore"), np.zeros(1)

    def step(x):
        with np.errstate(divide=o.how):
            return x + float(np.isinf(1 / zero)[0])

    step = w.compile(step)
    for o.how in w.turns("ignore", "raise", "ignore"):
        w.call(step, points())


@row
def python_array(w):
    a = array.array("d", [1.0, 2.0])
    step = w.compile(lambda x: x * a[0] + len(a))
    for a[0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def byte_array(w):
    data = bytearray(b"\x01\x02\x03")
    step = w.compile(lambda x: x * data[0] + sum(data))
    for data[0] in w.turns(1, 2, 3):
        w.call(step, points())


@row
def memory_view(w):
    data = bytearray(b"\x01\x02\x03")
    view = memoryview(data)
    step = w.compile(lambda x: x * view[0])
    for data[0] in w.turns(1, 2, 3):
        w.call(step, points())


@row
def number_of_ctypes(w):
    k = ctypes.c_double(1.0)
    step = w.compile(lambda x: x * k.value)
    for k.value in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def structure_of_ctypes(w):
    class Options(ctypes.Structure):
        _fields_ = (("gain", ctypes.c_double), ("table", ctypes.c_float * 2))

    o = Options(1.0)
    step = w.compile(lambda x: x * o.gain + o.table[1])
    for o.gain, o.table[1] in w.turns((1.0, 0.0), (2.0, 0.0), (2.0, 3.0)):
        w.call(step, points())


@row
def packed_bytes(w):
    buffer = bytearray(8)
    step = w.compile(lambda x: x * struct.unpack("d", buffer)[0])
    for k in w.turns(1.0, 2.0, 3.0):
        struct.pack_into("d", buffer, 0, k)
        w.call(step, points())


@row
def tensor_from_a_buffer(w):
    buffer = bytearray(np.ones(3, "float32").tobytes())
    step = w.compile(lambda x: x + leafgrad.frombuffer(buffer, dtype=leafgrad.float32))
    for k in w.turns(1.0, 2.0, 3.0):
        struct.pack_into("f", buffer, 4, k)
        w.call(step, points())


@row
def array_written_by_the_step(w):
    a = numbers()

    def step(x):
        a[0] += 1
        return x * float(a[0])

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def array_kept_as_a_buffer_of_samples(w):
    data, o = np.arange(12.0, dtype="float32").reshape(4, 3), types.SimpleNamespace(i=0)

    def step():
        o.i = (o.i + 1) % 4
        return leafgrad.from_numpy(data[o.i]).sum()

    step = w.compile(step)
    for i in range(9):
        w.call(step)
        data[:, 0] += i


@row
def class_weights_from_an_array(w):
    weights, target = numbers(), leafgrad.tensor([0, 2, 1])
    step = w.compile(lambda x: F.cross_entropy(x.expand(3, 3) * 1.0, target, weight=leafgrad.tensor(weights)))
    for weights[2] in w.turns(3.0, 5.0, 0.5):
        w.call(step, points() ** 2)


@row
def strides_decide(w):
    step = w.compile(lambda x: x.reshape(-1) * (2 if x.is_contiguous() else 3))
    for how in w.turns(lambda x: x, lambda x: x.T.contiguous().T, lambda x: x):
        w.call(step, how(points(6).reshape(2, 3)))


@row
def strides_are_read(w):
    step = w.compile(lambda x: x * x.stride(0) + x.stride(1))
    for how in w.turns(lambda x: x, lambda x: x.T.contiguous().T, lambda x: x[:, ::1]):
        w.call(step, how(points(6).reshape(2, 3)))


@row
def view_of_what_is_not_contiguous_is_an_error(w):
    step = w.compile(lambda x: x.view(-1) * 2)
    for how in w.turns(lambda x: x, lambda x: x.T.contiguous().T, lambda x: x):
        w.call(step, how(points(6).reshape(2, 3)))


@row
def strides_of_a_captured_tensor(w):
    o = types.SimpleNamespace(t=None)
    step = w.compile(lambda x: x * (2 if o.t.is_contiguous() else 3) + o.t.sum())
    for how in w.turns(lambda x: x, lambda x: x.T.contiguous().T, lambda x: x):
        o.t = how(points(6).reshape(2, 3))
        w.call(step, points())


@row
def steps_of_a_slice_as_an_argument(w):
    data = points(12)
    step = w.compile(lambda x: (x * 2).reshape(-1))
    for how in w.turns(slice(0, 4), slice(0, 8, 2), slice(1, 12, 3), slice(8, 12)):
        w.call(step, data[how])


@row
def array_of_a_tensor_that_the_step_writes(w):
    t = points()
    a = t.numpy()

    def step(x):
        t.mul_(0.5)
        return x * float(a[0])

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def array_of_a_tensor_that_is_written_in_a_branch(w):
    t, o = points(), types.SimpleNamespace(late=False)
    a = t.numpy()

    def first():
        return float(a[0])

    def step(x):
        t.mul_(0.5)
        return x * first() if o.late else x + t

    step = w.compile(step)
    for o.late in w.turns(False, True, False):
        w.call(step, points())


@row
def array_of_a_tensor_is_written_before_the_step_reads_that(w):
    t = points()
    a = t.numpy()

    def step(x):
        y = x * t
        a[0] += 1
        return y + x * t

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)
