"""``torch.futures``: names of what remote calls would give."""

from leafgrad.compat.absent import refused, refused_class

__all__ = ["Future", "collect_all", "wait_all"]

REMEDY = "Python's concurrent.futures has what runs in this process"
Future = refused_class("torch.futures.Future", REMEDY)
collect_all, wait_all = refused("torch.futures.collect_all", REMEDY), refused("torch.futures.wait_all", REMEDY)
