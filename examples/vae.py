"""A variational autoencoder lays handwritten digits out on a plane (Kingma & Welling, ICLR 2014).

The images are scikit-learn's, 8 x 8 pixels, ink or no ink. Printed is how probable the model finds those that it has
not seen: a lower bound of log p in nats an image, beside log p of a model whose pixels know nothing of each other.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import leafgrad as lg
from leafgrad import Tensor, nn, optim
from leafgrad.distributions import Bernoulli, Normal, kl_divergence
from leafgrad.utils import Training


class VAE(nn.Module):
    """Images (n, 64) have places (n, 2) on the plane, which are standard normal before one knows the image."""

    def __init__(self) -> None:
        super().__init__()
        linear, silu, drop = nn.Linear, nn.SiLU(), nn.Dropout(0.3)
        self.encoder = nn.Sequential(linear(64, 128), silu, linear(128, 128), silu, drop, linear(128, 2 * 2))
        self.decoder = nn.Sequential(linear(2, 128), silu, linear(128, 128), silu, drop, linear(128, 64))

    def encode(self, x: Tensor) -> Normal:
        loc, scale = self.encoder(x).chunk(2, 1)
        return Normal(loc, nn.functional.softplus(scale))

    def decode(self, z: Tensor) -> Bernoulli:
        return Bernoulli(logits=self.decoder(z))

    def bound(self, x: Tensor, samples: int = 1) -> Tensor:
        """At most log p(x), by samples of places through which gradients flow to the encoder. (n, 64) -> (n,)"""
        log_p, kl = self.terms(x, samples)
        return log_p - kl

    def terms(self, x: Tensor, samples: int = 1) -> tuple[Tensor, Tensor]:
        q = self.encode(x)
        log_p = self.decode(q.rsample((samples,))).log_prob(x)
        return log_p.sum(-1).mean(0), kl_divergence(q, Normal(0.0, 1.0)).sum(-1)


@lg.no_grad()
def draw(model: VAE, images: Tensor, labels: list[int], file: Path) -> None:
    """Where the test images lie, what lies everywhere, and images that nobody wrote."""
    fig = Figure(figsize=(15, 5.3), layout="constrained")
    axes = fig.subplots(1, 3)
    axes[0].set(title="test images, each at its mean place", xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    for (x, y), digit in zip(model.encode(images).mean.tolist(), labels, strict=True):
        axes[0].text(x, y, digit, color=f"C{digit}", ha="center", va="center", weight="bold", clip_on=True)
    middles = lg.linspace(-2.8, 2.8, 15, device=images.device)  # of 15 x 15 tiles
    grid = lg.cartesian_prod(-middles, middles).flip(1)
    for ax, z, title in zip(axes[1:], (grid, lg.randn_like(grid)), ("what lies where", "drawn at random"), strict=True):
        tiles = nn.functional.pad(model.decode(z).mean.reshape(15, 15, 8, 8), (1, 1, 1, 1)).transpose(1, 2)
        ax.imshow(tiles.reshape(150, 150).tolist(), cmap="gray_r", extent=(-3, 3, -3, 3))
        ax.set(title=title, xticks=[], yticks=[])
    fig.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=200, help="passes over the images")
    parser.add_argument("--quick", dest="epochs", action="store_const", const=30, help="30 passes, not 200")
    parser.add_argument("--out", type=Path, default=Path("vae"), help="folder for picture and checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    args = parser.parse_args()
    lg.manual_seed(args.seed)
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images >= 8, labels, test_size=0.2, stratify=labels, random_state=args.seed)
    train, test = (lg.tensor(p, dtype=lg.float32, device=args.device) for p in parts[:2])
    model = VAE().to(args.device)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

    @lg.compile
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.zero_grad()
        log_p, kl = (term.mean() for term in model.terms(x))
        (kl - log_p).backward()
        optimizer.step()
        return log_p, kl

    trained = {"model": model, "optimizer": optimizer, "schedule": schedule}
    setup = {"seed": args.seed, "epochs": args.epochs}
    with Training(args.out, every=10, resume=args.resume, setup=setup, **trained) as training:
        for _ in training.steps(args.epochs):
            for batch in lg.randperm(len(train), device=args.device)[: len(train) // 64 * 64].split(64):
                log_p, kl = step(train[batch])
            schedule.step()
            training.note(log_p=log_p, kl=kl)
    model.eval()
    pixels = Bernoulli((train.sum(0) + 0.5) / (len(train) + 1))
    print(f"log p of {len(test)} test images, at least: {model.bound(test, samples=100).mean().item():.2f}")
    print(f"log p with independent pixels: {pixels.log_prob(test).sum(-1).mean().item():.2f}")
    args.out.mkdir(parents=True, exist_ok=True)
    draw(model, test, parts[3].tolist(), args.out / "vae.png")


if __name__ == "__main__":
    main()
