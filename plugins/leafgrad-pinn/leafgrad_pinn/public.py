"""The names of this package, which imports them when one is first asked for."""

from leafgrad_pinn import references as references
from leafgrad_pinn.complex import ComplexField as ComplexField, d as d
from leafgrad_pinn.conditions import (
    Boundary as Boundary,
    Dirichlet as Dirichlet,
    Initial as Initial,
    Interior as Interior,
    Neumann as Neumann,
    Robin as Robin,
    Wrap as Wrap,
)
from leafgrad_pinn.domains import Domain as Domain, Parameter as Parameter, Time as Time
from leafgrad_pinn.ellipses import Ellipse as Ellipse
from leafgrad_pinn.field import Derivative as Derivative, Field as Field, Hard as Hard, fields as fields
from leafgrad_pinn.functions import InputFunction as InputFunction, Sampled as Sampled
from leafgrad_pinn.gaussian import GaussianField as GaussianField
from leafgrad_pinn.implicit import SignedDistance as SignedDistance
from leafgrad_pinn.integrals import Energy as Energy, Integral as Integral
from leafgrad_pinn.layers import Even as Even, Factorised as Factorised, Fourier as Fourier, Periodic as Periodic
from leafgrad_pinn.losses import Huber as Huber
from leafgrad_pinn.networks import (
    MLP as MLP,
    SIREN as SIREN,
    ModifiedMLP as ModifiedMLP,
    Own as Own,
    PirateNet as PirateNet,
)
from leafgrad_pinn.observations import At as At, Data as Data
from leafgrad_pinn.operators import FNO as FNO, DeepONet as DeepONet
from leafgrad_pinn.points import R3 as R3, RAD as RAD, Fresh as Fresh
from leafgrad_pinn.polygons import LShape as LShape, Polygon as Polygon
from leafgrad_pinn.problem import Problem as Problem
from leafgrad_pinn.references import Reference as Reference
from leafgrad_pinn.shapes import Ball as Ball, Box as Box, Disk as Disk, Interval as Interval, Shape as Shape
from leafgrad_pinn.solution import Solution as Solution
from leafgrad_pinn.stages import (
    LBFGS as LBFGS,
    SOAP as SOAP,
    Adam as Adam,
    GaussNewton as GaussNewton,
    LeastSquares as LeastSquares,
    LevenbergMarquardt as LevenbergMarquardt,
    Muon as Muon,
    SSBroyden as SSBroyden,
)
from leafgrad_pinn.stochastic import Stochastic as Stochastic
from leafgrad_pinn.surfaces import Surface as Surface
from leafgrad_pinn.tables import Table as Table
from leafgrad_pinn.unknowns import Unknown as Unknown
from leafgrad_pinn.weights import (
    NTK as NTK,
    RBA as RBA,
    Causal as Causal,
    GradNorm as GradNorm,
    SelfAdaptive as SelfAdaptive,
)
