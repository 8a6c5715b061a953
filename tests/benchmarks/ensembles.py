"""Networks trained at once, one program for all: ``vmap`` over `leafgrad.func.stack_module_state`, beside torch.func's.

Each step computes the loss and the gradients of every network on its own batch and takes a step of SGD.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from compare import arguments, compare, start, ways

CASES = {
    "10 of 64-64-10, batch 64": (10, (64, 64, 10), 64),
    "100 of 64-64-10, batch 64": (100, (64, 64, 10), 64),
    "10 of 2-20-20-20-1, batch 256": (10, (2, 20, 20, 20, 1), 256),
    "100 of 2-20-20-20-1, batch 256": (100, (2, 20, 20, 20, 1), 256),
}


def ensemble(library, count, sizes, batch):
    library.manual_seed(0)
    nn, func = library.nn, library.func

    def network():
        layers = [f for n, m in pairwise(sizes) for f in (nn.Linear(n, m), nn.Tanh())]
        return nn.Sequential(*layers[:-1])

    networks = [network() for _ in range(count)]
    base = networks[0]
    params, _ = func.stack_module_state(networks)
    params = {name: p.detach() for name, p in params.items()}
    x, y = library.randn(count, batch, sizes[0]), library.randn(count, batch, sizes[-1])

    def loss(params, x, y):
        return ((func.functional_call(base, params, (x,)) - y) ** 2).mean()

    def step(params, x, y):
        found = func.vmap(func.grad(loss))(params, x, y)
        return {name: p - 0.01 * found[name] for name, p in params.items()}

    return step, (params, x, y)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=21)
    args = parser.parse_args()
    cores = f"{args.threads} core{'s' * (args.threads > 1)}"
    start(f"Ensembles trained at once, {cores}", args.threads)
    for what, (count, sizes, batch) in CASES.items():
        steps = ways(partial(ensemble, count=count, sizes=sizes, batch=batch))
        compare(what, steps, args.runs, unit="ms", targets=(0.5, 0.5))


if __name__ == "__main__":
    main()
