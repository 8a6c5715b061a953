"""The kernels of an op: those of a backend that is not here, on the stand-in; that of bfloat16 beside float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import leafgrad
from leafgrad import backends, plugins
from leafgrad.ops.op import Op
from leafgrad.testing import fake
from leafgrad.testing.conformance.declared import Declaration
from leafgrad.testing.conformance.edges import with_arrays
from leafgrad.testing.conformance.memory import COPY, shared
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import Sample, Subject, host, outputs

NARROW = "bfloat16"
ULPS = 2.0**-6  # two units in the last place of bfloat16


def kernels(subject: Subject) -> None:
    """Kernels give what the forward does: on the stand-in those of absent backends that use xp alone; bfloat16's."""
    if not isinstance(subject.op, Op) or not subject.op.kernels:
        raise Skip("the op has no kernels")
    fake.register()
    for name, kernel in subject.op.kernels.items():
        if name == NARROW:
            narrow(subject)
        elif name not in ("numpy", "fake") and not ready(name):
            elsewhere(subject, Declaration(f"kernel {name}", kernel))


def ready(name: str) -> bool:
    """Whether a backend is here and has a device."""
    try:
        return backends.by_device_type(plugins.backend(name).device_type).device_count() > 0
    except Exception:  # of any kind: an array library that does not import
        return False


def elsewhere(subject: Subject, kernel: Declaration) -> None:
    """Run a kernel for an absent backend on the stand-in's arrays."""
    backend = backends.by_device_type("fake")
    name = kernel.what.partition(" ")[2]
    where = f"kernel for {name!r} on fake:0"
    for sample in calls(subject):
        with np.errstate(all="ignore"):
            want = [host(r.detach()) for r in subject.run(sample, subject.tensors(sample, device="cpu"))]
        args = [backend.from_host(a) if isinstance(a, np.ndarray) else a for a in sample.args]
        try:
            made = outputs(kernel.function(backend.xp, *args, **subject.op.signature.bind(sample.params)))
            kinds = sorted({type(r).__name__ for r in made if not hasattr(r, "dtype")})
            got = [host(r) for r in made]
        except ImportError as error:
            subject.untried.append(f"{kernel}: not run: {name} kernel ({error})")
            return
        except Exception as error:
            if needs_its_library(error, name):
                subject.untried.append(f"{kernel}: not run: {name} kernel ({error})")
                return
            text = f"{type(error).__name__}: {error}"
            raise subject.fault(sample, "a result", text, "call what the library has", where, kernel.what) from error
        if kinds or len(made) != len(want):
            found = ", ".join(kinds) or f"{len(made)}"
            expected = "arrays" if kinds else f"{len(want)} results"
            raise subject.fault(sample, expected, found, "give what the forward does", where, kernel.what)
        for i in sample.arrays:
            what = f"argument {subject.argument(i)!r}, {where}"
            subject.compare(sample, host(args[i]), sample.args[i], 0.0, COPY, what, kernel.what)
            for r in made if "view" not in subject.traits else ():
                if host(r).size and shared(r, args[i]):
                    raise subject.fault(
                        sample,
                        "memory of its own",
                        f"that of argument {subject.argument(i)!r}",
                        COPY,
                        where,
                        kernel.what,
                    )
        for g, w in zip(got, want, strict=True):
            low = {"float32": 1e-5, "float16": 1e-2}.get(w.dtype.name, 1e-9)
            subject.compare(sample, g, w, max(low, subject.rtol), "mend the kernel, or the forward", where, kernel.what)


def calls(subject: Subject) -> Iterator[Sample]:
    """The samples in each dtype; of an elementwise op in other numbers of dimensions, too."""
    for _, sample in subject.each_dtype():
        yield sample
        if "elementwise" in subject.traits and (
            shape := np.broadcast_shapes(*[sample.args[i].shape for i in sample.arrays])
        ):
            for made, turn in (
                ("in one row", lambda a: a.reshape(-1)),
                ("of one element", lambda a: a.reshape(-1)[:1].reshape(())),
            ):
                arrays = [turn(np.broadcast_to(sample.args[i], shape)) for i in sample.arrays if np.prod(shape)]
                if arrays:
                    yield with_arrays(sample, arrays, f"its elements {made}")


OF_CUPY = """ElementwiseKernel RawKernel RawModule ReductionKernel cuda cublas cutensor fuse get_array_module asnumpy
    rsqrt scatter_add scatter_max scatter_min may_share_memory"""
"""What CuPy has beside NumPy's functions."""


def needs_its_library(error: Exception, name: str) -> bool:
    """Whether a kernel failed for want of what the stand-in has not, and its library has, or may have."""
    words = f"{error} "
    return isinstance(error, AttributeError) and (
        name != "cupy" or any(f"xp.{own} " in words for own in OF_CUPY.split())
    )


def narrow(subject: Subject) -> None:
    """The kernel of bfloat16 gives bfloat16, within two units in the last place of what float32 gives."""
    for sample in subject.samples:
        given = [leafgrad.from_numpy(a.copy()) if isinstance(a, np.ndarray) else a for a in sample.args]
        low = [g.to(leafgrad.bfloat16) if i in sample.floats else g for i, g in enumerate(given)]
        wide = [g.float() if i in sample.floats else g for i, g in enumerate(low)]
        for r, w in zip(subject.run(sample, low), subject.run(sample, wide), strict=True):
            if w.dtype is leafgrad.float32:
                if r.dtype is not leafgrad.bfloat16:
                    raise subject.fault(sample, "bfloat16", r.dtype, "return what came in", NARROW, f"kernel {NARROW}")
                r = r.float()
                w = w.to(leafgrad.bfloat16).float()
            subject.compare(
                sample,
                host(r.detach()),
                host(w.detach()),
                ULPS,
                "mend the kernel",
                f"arguments of {NARROW}",
                f"kernel {NARROW}",
            )
