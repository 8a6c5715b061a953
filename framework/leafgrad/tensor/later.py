"""What few programs need: functions and methods whose modules are imported when one of them is first asked for."""

from __future__ import annotations

from typing import Final

from leafgrad.plugins.added import listed_methods
from leafgrad.tensor.methods import Later, Methods, expect

# Module -> its public functions, and its methods of Tensor.
MODULES: Final = {
    "leafgrad.tensor.cholesky": (
        "cholesky cholesky_inverse cholesky_solve lu_solve pca_lowrank svd_lowrank triangular_solve",
        "cholesky cholesky_inverse cholesky_solve lu_solve triangular_solve",
    ),
    "leafgrad.tensor.closeness": ("allclose equal isclose", "allclose equal isclose"),
    "leafgrad.tensor.counting": (
        "bincount combinations histc unique_consecutive unravel_index",
        "bincount histc unique_consecutive",
    ),
    "leafgrad.tensor.derived": (
        "angle can_cast clone complex conj conj_physical corrcoef cov cumulative_trapezoid detach diff gcd imag "
        "is_complex is_conj is_neg is_same_size isin isneginf isposinf isreal lcm ldexp logaddexp2 logit polar "
        "positive real resolve_conj resolve_neg result_type sgn trapezoid trapz view_as_complex view_as_real",
        "H angle conj conj_physical corrcoef cov diff gcd gcd_ imag is_complex is_conj is_neg is_same_size isneginf "
        "isposinf isreal itemsize lcm lcm_ ldexp logaddexp2 logit mH nbytes positive real resolve_conj resolve_neg "
        "sgn sgn_",
    ),
    "leafgrad.tensor.einsum": ("einsum tensordot", ""),
    "leafgrad.tensor.elimination": ("lu_unpack", ""),
    "leafgrad.tensor.extremes": (
        "amax amin aminmax argmax argmin cummax cummin cumprod cumsum logcumsumexp max median min mode nanmedian "
        "nanquantile quantile unique",
        "amax amin aminmax argmax argmin cummax cummin cumprod cumprod_ cumsum cumsum_ logcumsumexp max median min "
        "mode nanmedian nanquantile quantile unique",
    ),
    "leafgrad.tensor.gathering": (
        "gather index_add index_copy index_fill index_put index_select masked_fill masked_scatter masked_select "
        "scatter scatter_add scatter_reduce take take_along_dim",
        "gather index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_select "
        "masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select scatter scatter_ scatter_add "
        "scatter_add_ scatter_reduce scatter_reduce_ take take_along_dim",
    ),
    "leafgrad.tensor.grids": ("gradient histogram renorm vander", "histogram renorm renorm_"),
    "leafgrad.tensor.interop": ("from_dlpack frombuffer", "__dlpack__ __dlpack_device__"),
    "leafgrad.tensor.matrices": (
        "cdist cross det inverse logdet matrix_exp matrix_power pinverse qr slogdet svd",
        "cross det inverse logdet matrix_exp matrix_power pinverse qr slogdet svd trace",
    ),
    "leafgrad.tensor.namespace": ("", "__array_namespace__ to_device"),
    "leafgrad.tensor.notebook": ("", "_repr_html_"),
    "leafgrad.tensor.placing": (
        "as_strided_scatter diagonal_scatter index_reduce narrow_copy put select_scatter slice_scatter",
        "apply_ as_strided_scatter conj_physical_ diagonal_scatter index_reduce index_reduce_ ldexp_ logit_ map2_ map_ "
        "narrow_copy put put_ select_scatter slice_scatter",
    ),
    "leafgrad.tensor.printing": ("set_printoptions", ""),
    "leafgrad.tensor.reshaping": (
        "",
        "as_strided_ resize_ resize_as_ set_ share_memory_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_",
    ),
    "leafgrad.tensor.sorting": (
        "argsort argwhere bucketize kthvalue msort nonzero searchsorted sort topk",
        "argsort argwhere kthvalue msort nonzero sort topk",
    ),
    "leafgrad.tensor.storage": (
        "TypedStorage UntypedStorage as_strided empty_permuted empty_strided get_device is_signed",
        "as_strided data_ptr dim_order get_device is_cpu is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested "
        "is_pinned is_quantized is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_xla is_xpu "
        "new_empty_strided storage storage_offset untyped_storage",
    ),
    "leafgrad.tensor.window_functions": (
        "bartlett_window blackman_window hamming_window hann_window kaiser_window",
        "",
    ),
}
FUNCTIONS: Final = {name: module for module, (functions, _) in MODULES.items() for name in functions.split()}


for _module, (_, _names) in MODULES.items():
    for _name in _names.split():
        setattr(Methods, _name, Later(_module, _name))

expect(listed_methods())
