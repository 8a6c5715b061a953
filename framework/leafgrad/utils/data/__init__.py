"""Data loading: datasets, samplers, and the DataLoader that makes batches of them."""

from typing import TYPE_CHECKING

from leafgrad.lazy import attach
from leafgrad.tensor.public import publish as _publish
from leafgrad.utils.data.collate import *
from leafgrad.utils.data.dataset import *
from leafgrad.utils.data.loader import *
from leafgrad.utils.data.sampler import *
from leafgrad.utils.data.worker import get_worker_info as get_worker_info

_publish(globals())

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
