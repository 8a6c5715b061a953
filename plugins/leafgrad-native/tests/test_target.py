"""What is known of the processor."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafgrad_native import compiler, target


def test_where_the_system_does_not_say_numpy_knows_the_features(monkeypatch):
    def refused(self, *arguments, **options):
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "read_text", refused)
    found = target.features.__wrapped__()
    assert found == target.measured()
    assert found
    assert all(name == name.lower() for name in found)


@pytest.mark.parametrize("name", ["avx", "avx2", "avx512f"])
def test_numpy_and_the_system_agree(name):
    if not Path("/proc/cpuinfo").exists():
        pytest.skip("nothing to compare with")
    assert (name in target.measured()) == (name in target.features())


def test_the_key_of_code_has_the_features(monkeypatch):
    monkeypatch.setattr(compiler, "features", lambda: frozenset({"one", "another"}))
    assert "another one" in compiler.processor.__wrapped__()
