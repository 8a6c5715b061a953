"""All transforms, under the name that PyTorch gives to their module."""

from leafgrad.distributions.elementwise_transforms import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from leafgrad.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    Inverse,
    ReshapeTransform,
    Transform,
    identity_transform,
)
from leafgrad.distributions.vector_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "_InverseTransform", "identity_transform",
]  # fmt: skip

_InverseTransform = Inverse  # PyTorch's private name, which libraries read
