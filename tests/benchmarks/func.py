"""Gradients of each sample of an MLP, the Hessian of a function of 20 variables: leafgrad.func beside torch.func."""

from __future__ import annotations

from compare import compare, header, one_thread, peer


def gradients_of_each_sample(library):
    library.manual_seed(0)
    nn, func = library.nn, library.func
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, y = library.randn(64, 64), library.arange(64) % 10

    def loss(params, x, y):
        return nn.functional.cross_entropy(func.functional_call(model, params, (x,)), y)

    each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
    return lambda: each(params, x, y)


def loop_over_samples(library):
    """What one would write without vmap."""
    library.manual_seed(0)
    nn = library.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    params = list(model.parameters())
    x, y = library.randn(64, 64), library.arange(64) % 10

    def each():
        for k in range(64):
            library.autograd.grad(nn.functional.cross_entropy(model(x[k]), y[k]), params)

    return each


def hessian(library):
    library.manual_seed(0)
    a, x = library.randn(20, 20), library.randn(20)
    whole = library.func.hessian(lambda x: (library.tanh(a @ x) ** 2).sum() + library.logsumexp(x, 0))
    return lambda: whole(x)


CASES = {
    "vmap(grad), 64-64-10, 64 samples": gradients_of_each_sample,
    "the same in a loop": loop_over_samples,
    "hessian, 20 variables": hessian,
}


def main() -> None:
    one_thread()
    header("Functions of functions")
    libraries = {name: library for name in ("leafgrad", "torch") if (library := peer(name)) is not None}
    for what, case in CASES.items():
        runs = {name: case(library) for name, library in libraries.items()}
        compare(what, runs, runs=31)
        if what != "the same in a loop":
            ours = libraries["leafgrad"]
            compiled = ours.compile(runs["leafgrad"])
            compare(f"{what}, leafgrad compiled", {**runs, "leafgrad": compiled}, runs=31)


if __name__ == "__main__":
    main()
