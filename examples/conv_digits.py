"""Handwritten digits: a convolutional network learns scikit-learn's 8 x 8 images. About 99 % of the test images."""

from __future__ import annotations

import argparse
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import leafgrad as lg
from leafgrad import nn, optim
from leafgrad.utils import Training


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5), nn.Linear(32 * 4 * 4, 10),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 passes over the images, not 20")
    parser.add_argument("--epochs", type=int, help="passes over the images")
    parser.add_argument("--out", type=Path, default=Path("conv_digits"), help="folder for checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--lr", type=float, default=4e-3, help="learning rate of Adam, which falls to 0")
    args = parser.parse_args()
    lg.manual_seed(args.seed)

    data = load_digits()
    parts = train_test_split(
        data.images[:, None] / 16, data.target, test_size=0.2, stratify=data.target, random_state=args.seed
    )
    train_x, test_x = (lg.tensor(p, dtype=lg.float32, device=args.device) for p in parts[:2])
    train_y, test_y = (lg.tensor(p, dtype=lg.int64, device=args.device) for p in parts[2:])

    model = network().to(args.device)
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    epochs = args.epochs or (3 if args.quick else 20)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

    @lg.compile
    def step(images: lg.Tensor, labels: lg.Tensor) -> lg.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    trained = {"model": model, "optimizer": optimizer, "schedule": schedule}
    setup = {"seed": args.seed, "epochs": epochs, "lr": args.lr}
    with Training(args.out, every=2, resume=args.resume, setup=setup, **trained) as training:
        for _ in training.steps(epochs):
            order = lg.randperm(len(train_x), device=args.device)
            for batch in order[: len(order) // 64 * 64].split(64):
                loss = step(train_x[batch], train_y[batch])
            schedule.step()
            training.note(loss=loss)

    model.eval()
    with lg.no_grad():
        right = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"{len(train_x)} images for training, {len(test_x)} held out (random_state={args.seed}), {epochs} epochs")
    print(f"test accuracy: {right:.4f}")


if __name__ == "__main__":
    main()
