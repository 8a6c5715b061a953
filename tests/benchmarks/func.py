"""Gradients of each sample of an MLP, the Hessian of a function of 20 variables: leafgrad.func beside torch.func."""

from __future__ import annotations

from compare import compare, each, start, ways


def gradients_of_each_sample(library):
    library.manual_seed(0)
    nn, func = library.nn, library.func
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, y = library.randn(64, 64), library.arange(64) % 10

    def loss(params, x, y):
        return nn.functional.cross_entropy(func.functional_call(model, params, (x,)), y)

    each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
    return each, (params, x, y)


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

    return each, ()


def hessian(library):
    library.manual_seed(0)
    a, x = library.randn(20, 20), library.randn(20)
    whole = library.func.hessian(lambda x: (library.tanh(a @ x) ** 2).sum() + library.logsumexp(x, 0))
    return whole, (x,)


def main() -> None:
    start("Functions of functions")
    compare("vmap(grad), 64-64-10, 64 samples", ways(gradients_of_each_sample), runs=31, targets=(0.5,))
    compare("the same in a loop", each(lambda library: loop_over_samples(library)[0]), runs=11)
    compare("hessian, 20 variables", ways(hessian), runs=31, targets=(0.5,))


if __name__ == "__main__":
    main()
