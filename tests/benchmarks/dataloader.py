"""An epoch of a DataLoader: a TensorDataset, a dataset of single samples, and the same from two workers."""

from __future__ import annotations

import warnings
from importlib import import_module

from compare import compare, header, one_thread, peer

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
    one_thread()
    warnings.simplefilter("ignore")  # more workers than cores
    header(f"DataLoader, an epoch of {SAMPLES} x {FEATURES} in batches of {BATCH}")
    libraries = {name: library for name in ("leafgrad", "torch") if (library := peer(name)) is not None}
    cases = (
        ("tensors, in order", "tensors", {}),
        ("tensors, shuffled", "tensors", {"shuffle": True}),
        ("half of the tensors", "split", {"shuffle": True}),
        ("single samples", "samples", {"shuffle": True}),
        ("tensors, 2 workers", "tensors", {"shuffle": True, "num_workers": 2}),
        ("samples, 2 workers kept", "samples", {"num_workers": 2, "persistent_workers": True}),
    )
    for what, kind, options in cases:
        runs = {name: epoch(library, kind, **options) for name, library in libraries.items()}
        compare(what, runs, runs=7, unit="ms")


if __name__ == "__main__":
    main()
