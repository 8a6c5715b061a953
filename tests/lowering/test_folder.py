"""Folders that nobody else can write to, nor put others in the place of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leafgrad.lowering import folder
from leafgrad.lowering.folder import Folder, RefusedFolder, preferred

pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")


@pytest.mark.parametrize("depth", [1, 3])
def test_a_folder_in_one_that_others_may_write_is_refused(tmp_path, depth):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    path = shared.joinpath(*"abc"[:depth])
    with pytest.raises(RefusedFolder, match=r"shared, around it, may be written by others \(chmod go-w mends that\)"):
        Folder(path)
    shared.chmod(0o1777)  # as /tmp is: others cannot rename or remove what is ours
    assert Folder(path).path == path
    shared.chmod(0o755)
    assert Folder(path).path == path


def test_a_group_may_be_this_users_own(tmp_path, monkeypatch):
    tmp_path.chmod(0o775)
    monkeypatch.setattr(folder, "private", lambda status: False)
    with pytest.raises(RefusedFolder, match="may be written by others"):
        Folder(tmp_path / "a")
    monkeypatch.setattr(folder, "private", lambda status: True)
    Folder(tmp_path / "a")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_in_one_of_another_user_is_refused(tmp_path):
    theirs = tmp_path / "theirs"
    (theirs / "ours").mkdir(parents=True)
    os.chown(theirs, 12345, 12345)
    with pytest.raises(RefusedFolder, match="theirs, around it, belongs to another user"):
        Folder(theirs / "ours")


def test_links_are_followed_once(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = Folder(tmp_path / "link" / "cache")
    assert found.path == tmp_path / "real" / "cache"
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path)
    found.write("file", b"data")
    assert (tmp_path / "real" / "cache" / "file").read_bytes() == b"data"


def test_a_relative_cache_home_is_refused(monkeypatch, tmp_path):
    monkeypatch.delenv("LEAFGRAD_CACHE", raising=False)
    monkeypatch.setattr(folder.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "some/where")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedFolder, match="XDG_CACHE_HOME: expected an absolute path, got 'some/where'"):
        preferred("native")
    folder.of_process.cache_clear()
    with pytest.warns(RuntimeWarning, match="not kept for later processes: XDG_CACHE_HOME: expected an absolute path"):
        (found,) = folder.folders("native")
    assert not list(tmp_path.iterdir())
    assert found.path != Path("some/where")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert preferred("native") == tmp_path / "leafgrad" / "native"
