"""Handwritten digits: a small network learns scikit-learn's 8 x 8 images. About 98 % of the test images in seconds."""

from __future__ import annotations

import argparse
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import leafgrad as lg
from leafgrad import nn, optim
from leafgrad.utils import Training


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("digits"), help="folder for checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate of Adam")
    args = parser.parse_args()
    lg.manual_seed(args.seed)

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=0.2, stratify=labels, random_state=args.seed)
    train_x, test_x = (lg.tensor(p, dtype=lg.float32, device=args.device) for p in parts[:2])
    train_y, test_y = (lg.tensor(p, dtype=lg.int64, device=args.device) for p in parts[2:])

    model = nn.Sequential(
        nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
    ).to(args.device)  # fmt: skip
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    loss_of = nn.CrossEntropyLoss()

    setup = {"seed": args.seed, "lr": args.lr}
    with Training(args.out, every=5, resume=args.resume, setup=setup, model=model, optimizer=optimizer) as training:
        for _ in training.steps(args.epochs):
            for batch in lg.randperm(len(train_x), device=args.device).split(32):
                optimizer.zero_grad()
                loss = loss_of(model(train_x[batch]), train_y[batch])
                loss.backward()
                optimizer.step()
            training.note(loss=loss)

    model.eval()
    with lg.no_grad():
        right = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"test accuracy: {right:.4f}")


if __name__ == "__main__":
    main()
