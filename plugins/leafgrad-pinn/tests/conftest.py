"""How tests solve: with steps that run as they are, or compiled, as users' do."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def as_they_are():
    """Steps run as Python, which for a few of them takes a quarter of the time that compiling does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAFGRAD_COMPILE", "0")
        yield


@pytest.fixture(autouse=True)
def compiled(request, as_they_are, monkeypatch):
    """They are compiled in tests that ask what compiled steps do, or take many, marked so, and in slow ones."""
    if {"compiled", "slow"} & {mark.name for mark in request.node.iter_markers()}:
        monkeypatch.delenv("LEAFGRAD_COMPILE")
        monkeypatch.setattr("leafgrad_pinn.trainee.PAYS", 0)


@pytest.fixture(autouse=True)
def in_turn(request, monkeypatch):
    """Seeds train one after the other, to the same results: short runs in processes of their own take twice the time.

    Tests of these processes are marked ``at_once``.
    """
    if not {"at_once", "slow"} & {mark.name for mark in request.node.iter_markers()}:
        monkeypatch.setattr("leafgrad_pinn.solver.at_once", lambda seeds, device: 1)
