"""An epoch of a DataLoader: a TensorDataset, a dataset of single samples, and the same from two workers."""

from __future__ import annotations

import warnings
from functools import partial
from importlib import import_module

from compare import compare, each, start

SAMPLES, FEATURES, BATCH = 20_000, 64, 64


def epoch(library, kind, **options):
    data = import_module(f"{library.__name__}.utils.data")
    x, y = library.rand(SAMPLES, FEATURES), library.zeros(SAMPLES, dtype=library.int64)
    tensors = data.TensorDataset(x, y)

    class Samples(data.Dataset):
        def __len__(self):
            return SAMPLES

        def __getitem__(self, index):
            return x[index], index

    dataset = {"tensors": tensors, "split": data.random_split(tensors, [0.5, 0.5])[0], "samples": Samples()}[kind]
    loader = data.DataLoader(dataset, batch_size=BATCH, **options)

    def run():
        for _ in loader:
            pass

    return run


def main() -> None:
    warnings.simplefilter("ignore")  # more workers than cores
    start(f"DataLoader, an epoch of {SAMPLES} x {FEATURES} in batches of {BATCH}", cores=2)
    cases = (
        ("tensors, in order", "tensors", {}, 0.5),
        ("tensors, shuffled", "tensors", {"shuffle": True}, None),
        ("half of the tensors", "split", {"shuffle": True}, None),
        ("single samples", "samples", {"shuffle": True}, 1.0),
        ("tensors, 2 workers", "tensors", {"shuffle": True, "num_workers": 2}, None),
        ("samples, 2 workers kept", "samples", {"num_workers": 2, "persistent_workers": True}, None),
    )
    for what, kind, options, target in cases:
        compare(what, each(partial(epoch, kind=kind, **options)), runs=5, unit="ms", targets=(target,))


if __name__ == "__main__":
    main()
