"""A loop with autocast, a gradient scaler, accumulation and questions about where it runs."""

import argparse
import contextlib
import os
import warnings

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.multiprocessing as mp
from fixed import fill, show, wave
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DataParallel, DistributedDataParallel as DDP

warnings.filterwarnings("ignore")
parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=2)
args = parser.parse_args([])

cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("high")


def is_main():
    return not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == 0


def reduce(value):
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(value)
    return value


model = fill(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)))
model = DataParallel(model)
print(list(model.state_dict()), isinstance(model, (DataParallel, DDP)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, betas=(0.9, 0.95), fused=False, foreach=None)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=6)
scaler = GradScaler(enabled=torch.cuda.is_available())
use_amp = torch.cuda.is_available()
x, y = wave(12, 4), wave(12, 1, shift=2.0)
for step in range(6):
    for micro in range(args.accumulate):
        sl = slice(micro * 6, micro * 6 + 6)
        with autocast(), contextlib.nullcontext():
            loss = torch.nn.functional.mse_loss(model(x[sl]), y[sl]) / args.accumulate
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    scheduler.step()
    if is_main():
        print(step, f"{reduce(loss.detach()).item():.4f} {scheduler.get_last_lr()[0]:.5f}")
print(scaler.is_enabled(), scaler.get_scale(), mp.get_start_method() in mp.get_all_start_methods())
print(os.environ.get("WORLD_SIZE", "1"), torch.cuda.device_count(), torch.is_autocast_enabled())
with torch.amp.autocast("cuda", dtype=torch.float16, enabled=use_amp):
    show("out", model(x[:2]))
