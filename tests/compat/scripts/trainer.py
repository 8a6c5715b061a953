"""A trainer with callbacks, hooks and checkpoints, in the style of Lightning, without it."""

import inspect
import os
import tempfile
from collections import defaultdict
from pathlib import Path

import torch
from fixed import fill, show, wave
from torch.utils.data import DataLoader, TensorDataset, random_split


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.logged, self.trainer = defaultdict(list), None

    def save_hyperparameters(self):
        frame = inspect.currentframe().f_back
        self.hparams = {k: v for k, v in frame.f_locals.items() if k not in ("self", "__class__")}

    def log(self, name, value, prog_bar=False):
        self.logged[name].append(value.detach().item() if torch.is_tensor(value) else value)

    @property
    def device(self):
        return next(self.parameters()).device


class Regression(Module):
    def __init__(self, hidden=4, lr=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.LazyLinear(hidden), torch.nn.Softplus(), torch.nn.LazyLinear(1))
        self.example_input_array = torch.zeros(1, 3)

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.huber_loss(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", torch.nn.functional.l1_loss(self(batch[0]), batch[1]))

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams["lr"])
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)}


class Callback:
    def on_epoch_end(self, trainer, module):
        pass


class Checkpoint(Callback):
    def __init__(self, folder):
        self.folder, self.best = Path(folder), float("inf")

    def on_epoch_end(self, trainer, module):
        value = module.logged["val_loss"][-1]
        if value < self.best:
            self.best = value
            torch.save({"state_dict": module.state_dict(), "hyper_parameters": module.hparams}, self.folder / "best.pt")


class Trainer:
    def __init__(self, max_epochs, callbacks, accumulate=2, clip=1.0):
        self.max_epochs, self.callbacks, self.accumulate, self.clip = max_epochs, callbacks, accumulate, clip

    def fit(self, module, train, val):
        module.trainer = self
        module(module.example_input_array)
        fill(module)
        configured = module.configure_optimizers()
        opt, sched = configured["optimizer"], configured["lr_scheduler"]
        for epoch in range(self.max_epochs):
            module.train()
            for i, batch in enumerate(train):
                batch = [t.to(module.device, non_blocking=True) for t in batch]
                (module.training_step(batch, i) / self.accumulate).backward()
                if (i + 1) % self.accumulate == 0 or i + 1 == len(train):
                    torch.nn.utils.clip_grad_norm_(module.parameters(), self.clip)
                    opt.step()
                    opt.zero_grad()
            module.eval()
            with torch.inference_mode():
                for i, batch in enumerate(val):
                    module.validation_step(batch, i)
            sched.step()
            for c in self.callbacks:
                c.on_epoch_end(self, module)
            print(epoch, {k: round(v[-1], 4) for k, v in module.logged.items()}, f"{sched.get_last_lr()[0]:.4f}")


x = wave(24, 3)
data = TensorDataset(x, x.sum(1))
train, val = torch.utils.data.Subset(data, range(16)), torch.utils.data.Subset(data, range(16, 24))
print([len(d) for d in random_split(data, [18, 6], generator=torch.Generator().manual_seed(0))])
with tempfile.TemporaryDirectory() as folder:
    checkpoint = Checkpoint(folder)
    model = Regression(hidden=5)
    Trainer(3, [checkpoint]).fit(model, DataLoader(train, batch_size=4), DataLoader(val, batch_size=8))
    loaded = torch.load(os.path.join(folder, "best.pt"), map_location=torch.device("cpu"))
    print(loaded["hyper_parameters"], list(loaded["state_dict"]))
    again = Regression(**loaded["hyper_parameters"])
    again(again.example_input_array)
    again.load_state_dict(loaded["state_dict"])
    print(torch.allclose(again(x), model(x)), checkpoint.best == model.logged["val_loss"][-1])
print(again.net)
