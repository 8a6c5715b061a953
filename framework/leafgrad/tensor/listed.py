"""Where public functions and methods are declared. Written by `python -m leafgrad.testing.stubs`; do not edit."""

from typing import Final

FUNCTIONS: Final = {
    "leafgrad.tensor.blas": """
        addbmm addmm addmv addr baddbmm bmm chain_matmul dot ger inner kron linalg.matmul linalg.multi_dot matmul mm mv
        outer vdot
    """,
    "leafgrad.tensor.choices": """
        cartesian_prod combinations
    """,
    "leafgrad.tensor.comparison": """
        allclose argsort bucketize eq equal fmax fmin ge greater greater_equal gt is_same_size isclose isfinite isin
        isinf isnan isneginf isposinf isreal kthvalue le less less_equal lt maximum minimum msort ne not_equal
        searchsorted sort topk
    """,
    "leafgrad.tensor.complex_numbers": """
        angle complex conj conj_physical imag is_complex is_conj is_neg polar real resolve_conj resolve_neg sgn
        view_as_complex view_as_real
    """,
    "leafgrad.tensor.conversions": """
        can_cast clone detach is_floating_point is_nonzero is_tensor result_type
    """,
    "leafgrad.tensor.creation": """
        arange empty empty_like eye full full_like linspace logspace ones ones_like tril_indices triu_indices zeros
        zeros_like
    """,
    "leafgrad.tensor.data": """
        as_tensor from_numpy tensor
    """,
    "leafgrad.tensor.decompositions": """
        linalg.cholesky linalg.cholesky_ex linalg.diagonal linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh
        linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.qr
        linalg.svd linalg.svdvals lu lu_unpack
    """,
    "leafgrad.tensor.differences": """
        cummax cummin cumprod cumsum cumulative_trapezoid diff gradient logcumsumexp trapezoid trapz
    """,
    "leafgrad.tensor.einsum": """
        einsum tensordot
    """,
    "leafgrad.tensor.exponents": """
        ldexp logaddexp2
    """,
    "leafgrad.tensor.gathering": """
        argwhere gather index_select masked_select nonzero nonzero_static take take_along_dim unravel_index
    """,
    "leafgrad.tensor.histograms": """
        bincount histc histogram
    """,
    "leafgrad.tensor.interop": """
        from_dlpack frombuffer
    """,
    "leafgrad.tensor.joining": """
        block_diag cat chunk column_stack concat concatenate dsplit dstack hsplit hstack meshgrid narrow row_stack
        select split split_with_sizes stack tensor_split unbind unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit
        vstack
    """,
    "leafgrad.tensor.kinds": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
        ShortTensor
    """,
    "leafgrad.tensor.lapack": """
        cholesky cholesky_inverse cholesky_solve det geqrf inverse linalg.householder_product logdet lu_solve matrix_exp
        matrix_power orgqr ormqr pca_lowrank pinverse qr slogdet svd svd_lowrank triangular_solve
    """,
    "leafgrad.tensor.linalg": """
        cross linalg.cross linalg.det linalg.inv linalg.inv_ex linalg.lstsq linalg.lu_solve linalg.matrix_exp
        linalg.matrix_power linalg.pinv linalg.slogdet linalg.solve linalg.solve_ex linalg.solve_triangular
        linalg.tensorinv linalg.tensorsolve linalg.vander linalg.vecdot vander
    """,
    "leafgrad.tensor.norms": """
        cdist linalg.cond linalg.matrix_norm linalg.matrix_rank linalg.norm linalg.vector_norm renorm
    """,
    "leafgrad.tensor.pointwise": """
        abs absolute acos acosh add addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
        atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu
        clamp clamp_max clamp_min clip copysign cos cosh deg2rad div divide erf erfc erfinv exp exp2 expm1 fix
        float_power floor floor_divide fmod frac gcd heaviside hypot lcm lerp log log10 log1p log2 logaddexp logical_and
        logical_not logical_or logical_xor logit mul multiply nan_to_num neg negative nextafter positive pow rad2deg
        reciprocal relu remainder round rsqrt rsub selu sigmoid sign signbit sin sinc sinh special.erf special.erfc
        special.erfinv special.exp2 special.expit special.expm1 special.log1p special.logit special.round special.sinc
        special.xlogy sqrt square sub subtract tan tanh true_divide trunc where xlogy
    """,
    "leafgrad.tensor.printing": """
        set_printoptions
    """,
    "leafgrad.tensor.random": """
        Generator get_rng_state initial_seed manual_seed normal rand rand_like randint randint_like randn randn_like
        randperm seed set_rng_state
    """,
    "leafgrad.tensor.rearranging": """
        diag diag_embed diagflat diagonal flip fliplr flipud repeat_interleave roll rot90 tile tril triu
    """,
    "leafgrad.tensor.reductions": """
        all any count_nonzero dist log_softmax logsumexp mean nanmean nansum norm prod softmax special.log_softmax
        special.logsumexp special.softmax std std_mean sum var var_mean
    """,
    "leafgrad.tensor.sampling": """
        bernoulli binomial multinomial poisson
    """,
    "leafgrad.tensor.scattering": """
        as_strided_scatter diagonal_scatter index_add index_copy index_fill index_put index_reduce masked_fill
        masked_scatter narrow_copy put scatter scatter_add scatter_reduce select_scatter slice_scatter
    """,
    "leafgrad.tensor.shapes": """
        adjoint atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors broadcast_to flatten moveaxis
        movedim numel permute ravel reshape squeeze swapaxes swapdims t transpose unflatten unsqueeze
    """,
    "leafgrad.tensor.special": """
        special.entr special.ndtr special.xlog1py
    """,
    "leafgrad.tensor.statistics": """
        amax amin aminmax argmax argmin corrcoef cov max median min mode nanmedian nanquantile quantile unique
        unique_consecutive
    """,
    "leafgrad.tensor.storage": """
        TypedStorage UntypedStorage as_strided empty_permuted empty_strided get_device is_signed
    """,
    "leafgrad.tensor.window_functions": """
        bartlett_window blackman_window hamming_window hann_window kaiser_window
    """,
}
METHODS: Final = {
    "leafgrad.autograd.api": """
        backward
    """,
    "leafgrad.tensor.blas": """
        addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ bmm dot ger inner kron matmul mm mv outer
        vdot
    """,
    "leafgrad.tensor.comparison": """
        allclose argsort eq eq_ equal fmax fmin ge ge_ greater greater_ greater_equal greater_equal_ gt gt_ is_same_size
        isclose isfinite isinf isnan isneginf isposinf isreal kthvalue le le_ less less_ less_equal less_equal_ lt lt_
        maximum minimum msort ne ne_ not_equal not_equal_ sort topk
    """,
    "leafgrad.tensor.complex_numbers": """
        H angle conj conj_physical conj_physical_ imag is_complex is_conj is_neg mH real resolve_conj resolve_neg sgn
        sgn_
    """,
    "leafgrad.tensor.conversions": """
        bfloat16 bool byte cdouble cfloat chalf char double float half int is_floating_point is_nonzero itemsize long
        nbytes short type type_as
    """,
    "leafgrad.tensor.creation": """
        new_empty new_full new_ones new_zeros
    """,
    "leafgrad.tensor.data": """
        __array_wrap__ __reduce__ new_tensor
    """,
    "leafgrad.tensor.decompositions": """
        lu
    """,
    "leafgrad.tensor.differences": """
        cummax cummin cumprod cumprod_ cumsum cumsum_ diff logcumsumexp
    """,
    "leafgrad.tensor.exponents": """
        ldexp ldexp_ logaddexp2
    """,
    "leafgrad.tensor.formats": """
        contiguous is_contiguous layout
    """,
    "leafgrad.tensor.gathering": """
        argwhere gather index_select masked_select nonzero nonzero_static take take_along_dim
    """,
    "leafgrad.tensor.histograms": """
        bincount histc histogram
    """,
    "leafgrad.tensor.indexing": """
        __getitem__ __setitem__
    """,
    "leafgrad.tensor.interop": """
        __dlpack__ __dlpack_device__
    """,
    "leafgrad.tensor.joining": """
        chunk dsplit hsplit narrow select split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split
        unsafe_split_with_sizes vsplit
    """,
    "leafgrad.tensor.kinds": """
        __new__ as_subclass new
    """,
    "leafgrad.tensor.lapack": """
        cholesky cholesky_inverse cholesky_solve det geqrf inverse logdet lu_solve matrix_exp matrix_power orgqr ormqr
        pinverse qr slogdet svd trace triangular_solve
    """,
    "leafgrad.tensor.linalg": """
        cross
    """,
    "leafgrad.tensor.namespace": """
        __array_namespace__ to_device
    """,
    "leafgrad.tensor.norms": """
        renorm renorm_
    """,
    "leafgrad.tensor.notebook": """
        _repr_html_
    """,
    "leafgrad.tensor.operators": """
        __abs__ __add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__
        __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__
        __rmul__ __ror__ __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __sub__ __truediv__ __xor__
    """,
    "leafgrad.tensor.pointwise": """
        __iadd__ __iand__ __ifloordiv__ __ilshift__ __imod__ __imul__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__
        __ixor__ abs abs_ absolute absolute_ acos acos_ acosh acosh_ add add_ addcdiv addcdiv_ addcmul addcmul_ arccos
        arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_ asin
        asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ bitwise_and bitwise_and_ bitwise_left_shift
        bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_
        bitwise_xor bitwise_xor_ ceil ceil_ clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ copysign
        copysign_ cos cos_ cosh cosh_ deg2rad deg2rad_ div div_ divide divide_ erf erf_ erfc erfc_ erfinv erfinv_ exp
        exp2 exp2_ exp_ expm1 expm1_ fix fix_ float_power float_power_ floor floor_ floor_divide floor_divide_ fmod
        fmod_ frac frac_ gcd gcd_ heaviside heaviside_ hypot hypot_ lcm lcm_ lerp lerp_ log log10 log10_ log1p log1p_
        log2 log2_ log_ logaddexp logical_and logical_and_ logical_not logical_not_ logical_or logical_or_ logical_xor
        logical_xor_ logit logit_ mul mul_ multiply multiply_ nan_to_num nan_to_num_ neg neg_ negative negative_
        nextafter nextafter_ positive pow pow_ rad2deg rad2deg_ reciprocal reciprocal_ relu relu_ remainder remainder_
        round round_ rsqrt rsqrt_ sigmoid sigmoid_ sign sign_ signbit sin sin_ sinc sinc_ sinh sinh_ sqrt sqrt_ square
        square_ sub sub_ subtract subtract_ tan tan_ tanh tanh_ true_divide true_divide_ trunc trunc_ where xlogy xlogy_
    """,
    "leafgrad.tensor.printing": """
        __repr__
    """,
    "leafgrad.tensor.protocols": """
        __bool__ __complex__ __contains__ __float__ __format__ __index__ __int__ __iter__ __len__ __reversed__
    """,
    "leafgrad.tensor.rearranging": """
        diag diag_embed diagflat diagonal flip fliplr flipud repeat repeat_interleave roll rot90 tile tril triu unfold
    """,
    "leafgrad.tensor.reductions": """
        all any count_nonzero dist log_softmax logsumexp mean nanmean nansum norm prod softmax std sum var
    """,
    "leafgrad.tensor.reshaping": """
        as_strided_ resize_ resize_as_ set_ share_memory_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_
    """,
    "leafgrad.tensor.sampling": """
        bernoulli multinomial
    """,
    "leafgrad.tensor.scattering": """
        as_strided_scatter diagonal_scatter index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put
        index_put_ index_reduce index_reduce_ masked_fill masked_fill_ masked_scatter masked_scatter_ narrow_copy put
        put_ scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ select_scatter slice_scatter
    """,
    "leafgrad.tensor.shapes": """
        T adjoint broadcast_to dim element_size expand expand_as flatten mT moveaxis movedim ndimension nelement numel
        permute ravel reshape reshape_as size squeeze stride sum_to_size swapaxes swapdims t transpose unflatten
        unsqueeze view view_as
    """,
    "leafgrad.tensor.statistics": """
        amax amin aminmax argmax argmin corrcoef cov max median min mode nanmedian nanquantile quantile unique
        unique_consecutive
    """,
    "leafgrad.tensor.storage": """
        as_strided data_ptr dim_order get_device is_cpu is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested
        is_pinned is_quantized is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_xla is_xpu
        new_empty_strided pin_memory storage storage_offset untyped_storage
    """,
    "leafgrad.tensor.writes": """
        apply_ bernoulli_ cauchy_ copy_ exponential_ fill_ fill_diagonal_ geometric_ log_normal_ map2_ map_ normal_
        random_ tril_ triu_ uniform_ zero_
    """,
}
