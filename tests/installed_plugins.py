"""Plugins as the loader finds them, without packages."""

from __future__ import annotations

import types

from leafgrad.plugins import hookimpl


class NamedOp:
    """As much of an op as the registry looks at."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **params):
        return args


def plugin(name="plug", *, ops=None, backends=None, executors=None, commands=None, **attributes):
    """A plugin module whose hooks return what is given, or call it."""
    module = types.ModuleType(name)
    listed = {
        "leafgrad_ops": ops,
        "leafgrad_backends": backends,
        "leafgrad_executors": executors,
        "leafgrad_cli": commands,
    }
    for hook, entries in listed.items():
        if entries is not None:
            setattr(module, hook, hookimpl(returning(entries)))
    for attribute, value in attributes.items():
        setattr(module, attribute, value)
    return module


def returning(entries):
    return lambda: entries() if callable(entries) else entries


class Distribution:
    def __init__(self, name, version):
        self.metadata = {"Name": name, "Version": version}


class Entry:
    """As much of importlib.metadata.EntryPoint as the loader looks at."""

    def __init__(self, name, target, distribution=None, version="1.0", value="somewhere"):
        self.name, self.value, self._target = name, value, target
        self.dist = Distribution(distribution or f"leafgrad-{name}", version)

    def load(self):
        if isinstance(self._target, BaseException):
            raise self._target
        return self._target


def names(registry):
    return [entry.name for entry in registry]


def by_name(made):
    return {record.name: record for record in made.status()}
