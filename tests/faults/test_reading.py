"""Checkpoints that are not as they were written are refused, and the error names the file and what is wrong."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import threading

import pytest
import safetensors.numpy

import leafgrad as lg

STATE = {"w": lg.arange(3.0), "epoch": 7, "losses": [0.5, {"a": (None, True, "text")}]}
REFUSED = r"load: .*expected a whole safetensors file, but "


def saved(obj=STATE):
    file = io.BytesIO()
    lg.save(obj, file)
    return file.getvalue()


def test_every_single_bit(tried):
    whole = saved()
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(RuntimeError, match=REFUSED):
            lg.load(io.BytesIO(changed))
    tried("a checkpoint with one bit changed, each in turn", 8 * len(whole), "refused")


@pytest.mark.times(200, 20_000)
def test_bytes_at_random(count, tried):
    whole, chance = saved(), random.Random(0)
    for _ in range(count):
        changed = bytearray(whole)
        start = chance.randrange(len(whole))
        length = min(chance.choice([1, 2, 8, 64, 512]), len(whole) - start)
        changed[start : start + length] = chance.choice([bytes(length), chance.randbytes(length)])
        if changed != whole:
            with pytest.raises(RuntimeError, match=REFUSED):
                lg.load(io.BytesIO(changed))
    tried("a checkpoint with a stretch of zeros or noise", count, "refused")


def test_a_cut_anywhere(tmp_path, tried):
    whole, path = saved(), tmp_path / "file"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RuntimeError, match=REFUSED):
            lg.load(path)
    tried("a checkpoint that ends too early, at each byte", len(whole), "refused")


def test_other_programs_may_change_their_files(tmp_path):
    path = tmp_path / "file"
    safetensors.numpy.save_file({"a": lg.ones(2).numpy()}, path, {"format": "pt"})
    path.write_bytes(path.read_bytes()[:-1] + b"\0")  # nobody can know
    assert lg.load(path)["a"].tolist()[0] == 1


# ---- what is damaged is said ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "its structure has no rows and root"),
        ({"rows": [], "root": {"tensor": "y"}}, "it lacks tensor 'y'"),
        (
            {"rows": [], "root": {"row": 0}},
            "row 0 of its structure contains {'row': 0}, not a tensor or an earlier row",
        ),
        ({"rows": [["list", [{"row": -1}]]], "root": 1}, "row 0 .* not a tensor or an earlier row"),
        ({"rows": [["bag", []]], "root": 1}, r"row 0 of its structure is \['bag', \[\]\], not one of dict, "),
        ({"rows": [["dict", [[[], 1]]]], "root": 1}, r"row 0 of its structure has the key \[\], not a string"),
        ({"rows": [["dict", [1]]], "root": 1}, "row 0 of its structure is a dict, but not of pairs"),
        ({"rows": [["list", [[]]]], "root": 1}, r"row 0 of its structure contains \[\], not a value"),
        ({"rows": [[["list"], []]], "root": 1}, "row 0 of its structure is .* not one of dict, "),
    ],
)
def test_a_structure_that_cannot_be(tmp_path, data, message):
    from leafgrad.utils import safetensors as format

    path = tmp_path / "model.safetensors"
    encoded = format.encode({"x": lg.ones(2)}, {"leafgrad": json.dumps(data)})
    path.write_bytes(b"".join(encoded.sealed(encoded.digest())))
    with pytest.raises(RuntimeError, match=rf"load: .*model\.safetensors: .*{message}"):
        lg.load(path)


def headed(header, data=b""):
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


class Measured(io.BytesIO):
    """Notes how much is asked for at once."""

    most = 0

    def read(self, size=-1):
        self.most = max(self.most, size if size >= 0 else 2**62)
        return super().read(size)


HUGE = 5 * 2**30


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack("<Q", HUGE) + b"{}",
        struct.pack("<Q", 50_000_000) + b"{}",
        headed({"x": {"dtype": "U8", "shape": [HUGE], "data_offsets": [0, HUGE]}}, bytes(100)),
    ],
)
def test_what_is_not_there_is_not_asked_for(raw, tmp_path):
    file = Measured(raw)
    with pytest.raises(RuntimeError, match=rf"Measured: {REFUSED[6:]}.*(ends too early: .* bytes|claims a header of)"):
        lg.load(file)
    assert file.most < 1000
    path = tmp_path / "file"
    path.write_bytes(raw)
    with pytest.raises(RuntimeError, match=REFUSED):
        lg.load(path)


class Raw(io.RawIOBase):
    """A few bytes at a time, and no way back."""

    def __init__(self, data=b""):
        self.data = bytearray(data)

    def readable(self):
        return True

    def writable(self):
        return True

    def readinto(self, buffer):
        piece = self.data[: min(7, len(buffer))]
        del self.data[: len(piece)]
        buffer[: len(piece)] = piece
        return len(piece)

    def write(self, data):
        self.data += bytes(data[:7])
        return len(data[:7])


@pytest.mark.parametrize(("shape", "data"), [([1] * 65, bytes(4)), ([0] * 65, b""), ([0, 2**62, 2**62], b"")])
def test_shapes_that_no_array_has(shape, data):
    raw = headed({"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, len(data)]}}, data)
    with pytest.raises(RuntimeError, match=rf"BytesIO: {REFUSED[6:]}.*tensor 'x': "):
        lg.load(io.BytesIO(raw))


def test_raw_files():
    file = Raw()
    lg.save(STATE, file)
    assert bytes(file.data[8:]).startswith(b'{"__metadata__"')
    assert lg.load(Raw(file.data))["w"].tolist() == [0, 1, 2]


def test_a_raw_file_that_takes_no_more():
    class Full(Raw):
        def write(self, data):
            return None if len(self.data) > 20 else super().write(data)

    with pytest.raises(BlockingIOError, match=r"save: f: expected a file that takes all bytes, \d+ are left"):
        lg.save(STATE, Full())


def through_a_pipe(data):
    end, start = os.pipe()

    def feed():
        with open(start, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        with open(end, "rb") as file:
            return lg.load(file)
    finally:
        thread.join()


def test_pipes():
    whole = saved()
    assert through_a_pipe(whole)["epoch"] == 7
    for damaged in (whole[:5], whole[:-1], whole[:-1] + b"x", b"no safetensors file", struct.pack("<Q", HUGE)):
        with pytest.raises(RuntimeError, match=REFUSED):
            through_a_pipe(damaged)


def test_files_of_text_are_no_binary_files(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(saved())
    with (
        open(path, encoding="latin-1") as file,
        pytest.raises(TypeError, match="load: f: expected a file opened in bin"),
    ):
        lg.load(file)


# ---- nesting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}])
def test_nesting_of_any_depth(tmp_path, wrap):
    obj = lg.ones(1)
    for _ in range(20_000):
        obj = wrap(obj)
    lg.save([obj, 3], tmp_path / "file")
    found, three = lg.load(tmp_path / "file")
    for _ in range(20_000):
        assert type(found) is type(obj)
        (found,) = found.values() if isinstance(found, dict) else found
    assert (found.item(), three) == (1, 3)


def test_what_stands_in_several_places_is_stored_once(tmp_path):
    obj = [1.0]
    for _ in range(100):
        obj = [obj, obj]
    lg.save(obj, tmp_path / "file")
    first, second = lg.load(tmp_path / "file")
    assert first is second
    assert (tmp_path / "file").stat().st_size < 10_000


def test_a_container_in_itself_is_an_error(tmp_path):
    obj = {"a": [1]}
    obj["a"].append(obj)
    with pytest.raises(ValueError, match=r"save: obj at 'a\.1': expected a tree, got a dict in itself"):
        lg.save(obj, tmp_path / "file")
