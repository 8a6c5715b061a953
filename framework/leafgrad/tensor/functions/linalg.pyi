"""The functions of `leafgrad.linalg`. Written by `python -m leafgrad.testing.stubs`; do not edit."""

from leafgrad.tensor.elimination import (
    cholesky_ex as cholesky_ex,
    inv_ex as inv_ex,
    lu as lu,
    lu_factor as lu_factor,
    lu_factor_ex as lu_factor_ex,
    lu_solve as lu_solve,
    solve_ex as solve_ex,
)
from leafgrad.tensor.factorizations import (
    cholesky as cholesky,
    eig as eig,
    eigh as eigh,
    eigvalsh as eigvalsh,
    qr as qr,
    svd as svd,
    svdvals as svdvals,
)
from leafgrad.tensor.grids import linalg_vander
from leafgrad.tensor.linalg import (
    det as det,
    inv as inv,
    lstsq as lstsq,
    matrix_exp as matrix_exp,
    matrix_power as matrix_power,
    pinv as pinv,
    slogdet as slogdet,
    solve as solve,
    solve_triangular as solve_triangular,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
from leafgrad.tensor.matmul import matmul as matmul, multi_dot as multi_dot
from leafgrad.tensor.matrices import linalg_cross, linalg_diagonal, vecdot as vecdot
from leafgrad.tensor.norms import (
    cond as cond,
    matrix_norm as matrix_norm,
    matrix_rank as matrix_rank,
    norm as norm,
    vector_norm as vector_norm,
)

cross = linalg_cross
diagonal = linalg_diagonal
eigvals = eig
vander = linalg_vander
