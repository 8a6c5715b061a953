"""The functions of `leafgrad.linalg`. Written by `python -m leafgrad.testing.stubs`; do not edit."""

from leafgrad.tensor.blas import matmul as matmul, multi_dot as multi_dot
from leafgrad.tensor.decompositions import (
    cholesky as cholesky,
    cholesky_ex as cholesky_ex,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    ldl_factor as ldl_factor,
    ldl_factor_ex as ldl_factor_ex,
    ldl_solve as ldl_solve,
    linalg_diagonal,
    lu as lu,
    lu_factor as lu_factor,
    lu_factor_ex as lu_factor_ex,
    qr as qr,
    svd as svd,
    svdvals as svdvals,
)
from leafgrad.tensor.lapack import householder_product as householder_product
from leafgrad.tensor.linalg import (
    det as det,
    inv as inv,
    inv_ex as inv_ex,
    linalg_cross,
    linalg_vander,
    lstsq as lstsq,
    lu_solve as lu_solve,
    matrix_exp as matrix_exp,
    matrix_power as matrix_power,
    pinv as pinv,
    slogdet as slogdet,
    solve as solve,
    solve_ex as solve_ex,
    solve_triangular as solve_triangular,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
    vecdot as vecdot,
)
from leafgrad.tensor.norms import (
    cond as cond,
    matrix_norm as matrix_norm,
    matrix_rank as matrix_rank,
    norm as norm,
    vector_norm as vector_norm,
)

cross = linalg_cross
diagonal = linalg_diagonal
vander = linalg_vander
