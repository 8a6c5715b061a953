"""A transformer that writes like this project's documentation, one character after another.

The text is README.md, CONTRIBUTING.md and docs/*.md of this repository; the last tenth of each file is kept for the
test. Printed are a sample, and bits per character of that part: about 4.9 if one only knows how often each occurs.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import leafgrad as lg
from leafgrad import Tensor, nn, optim
from leafgrad.nn import functional as F
from leafgrad.utils import Training

ROOT = Path(__file__).parent.parent
CONTEXT = 96  # how many characters the model sees


class Writer(nn.Module):
    """The scores of each next character. (batch, length) -> (batch, length, characters)"""

    def __init__(self, characters: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(characters, width), nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width))
        self.head = nn.Linear(width, characters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT), persistent=False)

    def forward(self, text: Tensor) -> Tensor:
        n = text.shape[1]
        x = self.characters(text) + self.places.weight[:n]
        return self.head(self.layers(x, self.mask[:n, :n], is_causal=True))


def windows(text: Tensor, starts: Tensor) -> Tensor:
    """CONTEXT + 1 characters from each start; each but the last is to predict the next."""
    return text[starts.unsqueeze(1) + lg.arange(CONTEXT + 1, device=text.device)]


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


@lg.no_grad()
def write(model: nn.Module, text: Tensor, length: int) -> Tensor:
    """``length`` more characters, each drawn from what the model expects, made a little less daring."""
    for _ in range(length):
        scores = model(text[-CONTEXT:].unsqueeze(0))[0, -1]
        text = lg.cat([text, lg.multinomial((scores / 0.7).softmax(0), 1)])
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller model and fewer steps")
    parser.add_argument("--steps", type=int, help="2000 by default, 800 with --quick")
    parser.add_argument("--out", type=Path, default=Path("char_transformer"), help="folder for checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    args = parser.parse_args()
    lg.manual_seed(args.seed)

    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
    texts = [file.read_text(encoding="utf-8") for file in files]
    letters = sorted(set("".join(texts)))
    train, test = (
        lg.tensor([letters.index(c) for text in texts for c in text[slice(*cut(len(text)))]], device=args.device)
        for cut in (lambda n: (0, n * 9 // 10), lambda n: (n * 9 // 10, n))
    )
    sizes, steps = ((64, 2, 0.0), args.steps or 800) if args.quick else ((128, 3, 0.1), args.steps or 2000)
    model = Writer(len(letters), *sizes).to(args.device)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    @lg.compile
    def step(batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return loss

    trained = {"model": model, "optimizer": optimizer, "schedule": schedule}
    setup = {"seed": args.seed, "steps": steps, "quick": args.quick}
    with Training(args.out, every=50, resume=args.resume, setup=setup, **trained) as training:
        for _ in training.steps(steps):
            loss = step(windows(train, lg.randint(len(train) - CONTEXT, (16,), device=args.device)))
            schedule.step()
            training.note(bits=loss / math.log(2))
    model.eval()
    with lg.no_grad():
        parts = windows(test, lg.arange(0, len(test) - CONTEXT, CONTEXT, device=args.device)).split(32)
        bits = sum(loss_of(model, part).item() * len(part) for part in parts) / sum(map(len, parts)) / math.log(2)
    print("".join(letters[n] for n in write(model, test[:CONTEXT], 300)[CONTEXT:].tolist()))
    print(f"bits per character: {bits:.3f}")


if __name__ == "__main__":
    main()
