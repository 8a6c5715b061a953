"""Batching rules of the core's ops, for those whose traits do not say enough."""

from leafgrad.batching.rules import classes, index, layout, normalize, order, product, random, windows

__all__ = ["classes", "index", "layout", "normalize", "order", "product", "random", "windows"]
