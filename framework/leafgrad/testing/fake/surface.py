"""What CuPy 14.2 has of NumPy 2's surface, as data read off the two packages."""

from __future__ import annotations

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


DTYPES: Final = _names(
    """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"""
)

ABSENT: Final = _names(
    """asmatrix block bmat busday_count busday_offset busdaycalendar bytes_ char character clongdouble
    complex256 core ctypeslib datetime64 datetime_as_string datetime_data dtypes einsum_path emath
    errstate f2py flexible float128 frompyfunc fromregex geomspace get_include getbufsize geterr
    geterrcall histogram_bin_edges info insert is_busday isnat little_endian longdouble ma matrix matvec
    memmap nanpercentile nanquantile ndenumerate nditer nested_iters object_ polyder polydiv polyint rec
    recarray record sctypeDict setbufsize seterr seterrcall show_runtime spacing str_ strings test
    timedelta64 typecodes unstack vecdot vecmat void linalg.diagonal linalg.matrix_norm linalg.multi_dot
    linalg.outer linalg.svdvals linalg.tensordot linalg.test linalg.trace linalg.vecdot
    linalg.vector_norm fft.test load loads loadtxt genfromtxt fromfile fromstring frombuffer fromiter
    fromfunction from_dlpack save savez savez_compressed savetxt vectorize apply_along_axis
    apply_over_axes piecewise"""
)
"""Names that CuPy lacks and, from `load` on, names that read from the host or call back into Python."""

LACKING_KEYWORDS: Final = frozenset({"where", "initial", "correction", "like", "device", "subok", "ndmax"})
"""Keywords that no function of CuPy takes."""

LACKING_KEYWORDS_OF: Final = {
    "argpartition": frozenset({"kind", "order"}),
    "argsort": frozenset({"order", "stable"}),
    "clip": frozenset({"min", "max"}),
    "count_nonzero": frozenset({"keepdims"}),
    "isin": frozenset({"kind"}),
    "lexsort": frozenset({"axis"}),
    "linalg.cholesky": frozenset({"upper"}),
    "linalg.matrix_rank": frozenset({"hermitian", "rtol"}),
    "linalg.pinv": frozenset({"hermitian", "rtol"}),
    "linalg.svd": frozenset({"hermitian"}),
    "nanstd": frozenset({"mean"}),
    "nanvar": frozenset({"mean"}),
    "partition": frozenset({"kind", "order"}),
    "percentile": frozenset({"weights"}),
    "quantile": frozenset({"weights"}),
    "sort": frozenset({"order", "stable"}),
    "std": frozenset({"mean"}),
    "take": frozenset({"mode"}),
    "trim_zeros": frozenset({"axis"}),
    "unique": frozenset({"sorted"}),
    "var": frozenset({"mean"}),
}

UFUNC_METHODS: Final = {
    "reduce": ("add", "multiply"),
    "accumulate": ("add", "multiply"),
    "reduceat": ("add",),
    "at": ("add", "bitwise_and", "bitwise_or", "bitwise_xor", "maximum", "minimum", "subtract"),
}
"""The only ufuncs that have these methods; every ufunc has `outer`."""

SYNCHRONISING: Final = _names(
    """argwhere bincount compress delete extract flatnonzero histogram histogram2d histogramdd interp
    intersect1d ix_ mask_indices nanmax nanmin nonzero percentile place quantile ravel_multi_index
    real_if_close setdiff1d trim_zeros union1d unique unique_all unique_counts unique_inverse
    unique_values unravel_index"""
)
"""Functions that make the host wait, most because the shape of their result depends on values."""

WRAPS: Final = _names("take put")
"""Functions in which an index out of range counts around, as it does in indexing and in the `at` of a ufunc."""

GIVES_0D: Final = frozenset({"allclose", "array_equal", "array_equiv"})
"""Functions that give a bool in NumPy and an array on the device in CuPy."""

METHODS: Final = _names(
    """all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod
    cumsum diagonal dot fill flatten max mean min nonzero partition prod put ravel repeat reshape round
    searchsorted sort squeeze std sum swapaxes take trace transpose var view"""
)
"""Methods of arrays that compute on the device."""

OPERATORS: Final = _names(
    """__abs__ __neg__ __pos__ __invert__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__
    __imul__ __truediv__ __rtruediv__ __itruediv__ __floordiv__ __rfloordiv__ __ifloordiv__ __mod__
    __rmod__ __imod__ __divmod__ __rdivmod__ __pow__ __rpow__ __ipow__ __matmul__ __rmatmul__ __and__
    __rand__ __iand__ __or__ __ror__ __ior__ __xor__ __rxor__ __ixor__ __lshift__ __rlshift__
    __ilshift__ __rshift__ __rrshift__ __irshift__ __lt__ __le__ __eq__ __ne__ __gt__ __ge__"""
)
"""Operators of arrays; `@=` and `__index__` are not among them."""
