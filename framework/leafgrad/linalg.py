"""Linear algebra on batches of matrices, as ``torch.linalg``."""

from leafgrad.errors import LinAlgError
from leafgrad.tensor.elimination import cholesky_ex, inv_ex, lu, lu_factor, lu_factor_ex, lu_solve, solve_ex
from leafgrad.tensor.factorizations import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from leafgrad.tensor.grids import linalg_vander as vander
from leafgrad.tensor.linalg import (
    det,
    inv,
    lstsq,
    matrix_exp,
    matrix_power,
    pinv,
    slogdet,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from leafgrad.tensor.matmul import matmul, multi_dot
from leafgrad.tensor.matrices import linalg_cross as cross, linalg_diagonal as diagonal, vecdot
from leafgrad.tensor.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from leafgrad.tensor.out import take_out
from leafgrad.tensor.public import publish

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm",
    "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex",
    "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

publish(globals())
take_out(globals())
