"""Event files for TensorBoard, read back by a small reader of their own format, and by TensorBoard itself."""

from __future__ import annotations

import io
import math
import struct
import zlib

import pytest

import leafgrad
from leafgrad import nn
from leafgrad.utils import Training
from leafgrad.utils.protobuf import varint
from leafgrad.utils.tensorboard import SummaryWriter, masked_crc

TESTS = "utils.graph_def utils.hparams utils.protobuf"


def records(path):
    """The data of each record of a file, whose check sums are right."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked_crc(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked_crc(body)
        found.append(body)
        at += 16 + length
    assert at == len(data)
    return found


def fields(data):
    """Field number -> values of a protocol buffer: ints, floats and bytes."""
    stream, found = io.BytesIO(data), {}

    def integer():
        value = shift = 0
        while True:
            byte = stream.read(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while stream.tell() < len(data):
        key = integer()
        match key & 7:
            case 0:
                value = integer()
            case 1:
                (value,) = struct.unpack("<d", stream.read(8))
            case 2:
                value = stream.read(integer())
            case 5:
                (value,) = struct.unpack("<f", stream.read(4))
        found.setdefault(key >> 3, []).append(value)
    return found


def summaries(folder):
    """(tag, step, fields of the value) of everything in the files of a folder."""
    found = []
    for path in sorted(folder.glob("events*")):
        first, *others = map(fields, records(path))
        assert first[3] == [b"brain.Event:2"]
        for event in others:
            assert event[1][0] > 1e9
            for value in fields(event[5][0])[1] if 5 in event else []:
                of = fields(value)
                found.append((of[1][0].decode(), event.get(2, [None])[0], of))
    return found


def test_check_sums_are_those_of_the_standard():
    crc = masked_crc(b"123456789")
    unmasked = (crc - 0xA282EAD8) & 0xFFFFFFFF
    assert (unmasked >> 17 | unmasked << 15) & 0xFFFFFFFF == 0xE3069283  # the check value of CRC-32C
    assert varint(300) == b"\xac\x02"
    assert len(varint(-1)) == 10


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for i in range(30):
            writer.add_scalar("loss", leafgrad.tensor(1 / (i + 1)), i)
        writer.add_scalar("none", 2)
        writer.add_scalar("odd", float("nan"), 3)
        writer.add_scalar("large", 1e300, 3)
    found = summaries(tmp_path)
    assert [step for tag, step, _ in found if tag == "loss"] == list(range(30))
    assert [of[2][0] for tag, _, of in found if tag == "loss"][:2] == [1.0, 0.5]
    (none,), (odd,), (large,) = ([e for e in found if e[0] == tag] for tag in ("none", "odd", "large"))
    assert (none[1], none[2][2]) == (None, [2.0])
    assert math.isnan(odd[2][2][0])
    assert large[2][2] == [math.inf]


def test_several_scalars_are_runs_of_their_own(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("a/b", {"x": 1, "y": 2}, 4)
        writer.add_scalars("a/b", {"x": 3}, 5)
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["a_b_x", "a_b_y"]
    assert [(t, s, v[2]) for t, s, v in summaries(tmp_path / "a_b_x")] == [("a/b", 4, [1.0]), ("a/b", 5, [3.0])]


def test_histograms(tmp_path):
    values = leafgrad.randn(500, generator=leafgrad.Generator().manual_seed(0))
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", values, 1, bins=8)
        writer.add_histogram("same", [2.0, 2.0])
    (_, _, w), (_, _, same) = summaries(tmp_path)
    histogram = fields(w[5][0])
    assert histogram[1] == [values.min().item()]
    assert histogram[2] == [values.max().item()]
    assert histogram[3] == [500.0]
    limits, counts = (struct.unpack("<8d", histogram[n][0]) for n in (6, 7))
    assert sum(counts) == 500
    assert limits[-1] == pytest.approx(values.max().item())
    below = [(values <= limit).sum().item() for limit in limits]
    assert max(abs(sum(counts[: i + 1]) - n) for i, n in enumerate(below)) <= 1  # one may lie on a limit
    assert sum(struct.unpack("<30d", fields(same[5][0])[7][0])) == 2
    with pytest.raises(ValueError, match="at least one element"):
        SummaryWriter(tmp_path / "b").add_histogram("w", [])
    with pytest.raises(ValueError, match="nan or inf"):
        SummaryWriter(tmp_path / "c").add_histogram("w", [float("nan")])


def decoded(data):
    """(width, height, rows) of a PNG file."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, parts = 8, {}
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(name + body)
        parts[name] = body
        at += 12 + length
    width, height = struct.unpack_from(">II", parts[b"IHDR"])
    raw = zlib.decompress(parts[b"IDAT"])
    step = len(raw) // height
    return width, height, [list(raw[i * step + 1 : (i + 1) * step]) for i in range(height)]


def test_images(tmp_path):
    gray = leafgrad.tensor([[0, 10, 20], [30, 40, 50]], dtype=leafgrad.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("gray", gray, dataformats="HW")
        writer.add_image("colour", leafgrad.stack([gray / 255.0] * 3), 2)
        writer.add_images("two", leafgrad.stack([gray[None], gray[None]]))
    images = {tag: fields(of[4][0]) for tag, _, of in summaries(tmp_path)}
    assert decoded(images["gray"][4][0]) == (3, 2, [[0, 10, 20], [30, 40, 50]])
    assert decoded(images["colour"][4][0])[2][0] == [0, 0, 0, 10, 10, 10, 20, 20, 20]
    assert decoded(images["two"][4][0]) == (6, 2, [[0, 10, 20] * 2, [30, 40, 50] * 2])
    assert (images["colour"][1], images["colour"][2], images["colour"][3]) == ([2], [3], [3])
    with pytest.raises(ValueError, match="expected 1, 3 or 4 channels, got 2"):
        SummaryWriter(tmp_path / "b").add_image("x", leafgrad.ones(2, 3, 3))


def test_texts(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "é", 7)
    (note,) = summaries(tmp_path)
    assert note[:2] == ("note/text_summary", 7)
    assert fields(note[2][8][0])[8] == ["é".encode()]


def test_settings_and_results_are_a_run_of_their_own(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams(
            {"lr": leafgrad.tensor(0.5), "opt": "adam", "bn": False, "n": 3}, {"accuracy": 0.5}, {"n": [3, 4]}, "one", 2
        )
        writer.add_hparams({"lr": 1}, {})
    assert summaries(tmp_path) == []
    assert len([p for p in tmp_path.iterdir() if p.is_dir()]) == 2
    *about, accuracy = summaries(tmp_path / "one")
    assert (accuracy[0], accuracy[1], accuracy[2][2]) == ("accuracy", 2, [0.5])
    data = []
    for tag, _, of in about:
        plugin = fields(fields(of[9][0])[1][0])
        assert plugin[1] == [b"hparams"]
        data.append((tag, fields(plugin[2][0])))
    (first, experiment), (second, start), (third, end) = data
    assert [first, second, third] == [
        f"_hparams_/{n}" for n in ("experiment", "session_start_info", "session_end_info")
    ]
    infos = [fields(info) for info in fields(experiment[2][0])[4]]
    assert [(i[1][0], i[4][0]) for i in infos] == [(b"lr", 3), (b"opt", 1), (b"bn", 2), (b"n", 3)]
    assert [fields(value)[2] for value in fields(infos[3][5][0])[1]] == [[3.0], [4.0]]
    assert fields(fields(fields(experiment[2][0])[5][0])[1][0])[2] == [b"accuracy"]
    pairs = [fields(pair) for pair in fields(start[3][0])[1]]
    values = {pair[1][0].decode(): fields(pair[2][0]) for pair in pairs}
    assert values == {"lr": {2: [0.5]}, "opt": {3: [b"adam"]}, "bn": {4: [0]}, "n": {2: [3.0]}}
    assert fields(end[4][0])[1] == [1]
    with pytest.raises(TypeError, match="'layers': expected a string, a bool or a number, got list"):
        writer.add_hparams({"layers": [1, 2]}, {})
    with pytest.raises(TypeError, match="metric_dict: expected a dict, got float"):
        writer.add_hparams({"a": 1}, 0.5)
    with pytest.raises(ValueError, match="'b' is not in hparam_dict"):
        writer.add_hparams({"a": 1}, {}, {"b": [1]})


def test_folders_files_and_misuse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_first", max_queue=0)
    assert writer.log_dir.startswith("runs")
    assert writer.get_logdir().endswith("_first")
    writer.add_scalar("a", 1)
    assert len(summaries(tmp_path / writer.log_dir)) == 1  # written at once
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="it is closed"):
        writer.add_scalar("a", 1)
    with SummaryWriter("other") as other:
        with pytest.raises(TypeError, match="expected a number or a tensor of one, got str"):
            other.add_scalar("a", "1")
        with pytest.raises(RuntimeError, match="2 elements"):
            other.add_scalar("a", leafgrad.ones(2))
        with pytest.raises(TypeError, match="add_graph: model: expected a Module, got NoneType"):
            other.add_graph(None)
        with pytest.raises(RuntimeError, match="expected a result that requires grad"):
            other.add_graph(nn.ReLU(), leafgrad.ones(2).long())


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(3), nn.Dropout(0.5)

    def forward(self, x):
        return nn.functional.relu(x, inplace=True) + self.drop(self.norm(x))


def test_the_graph_of_a_module(tmp_path):
    model = nn.Sequential(nn.ReLU(inplace=True), Block(), nn.Linear(3, 2))
    x = leafgrad.arange(6.0).reshape(2, 3) - 2
    before, state, values = leafgrad.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}, x.tolist()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, x)
    assert leafgrad.get_rng_state().equal(before)
    assert all(v.equal(state[k]) for k, v in model.state_dict().items())
    assert x.tolist() == values
    (path,) = tmp_path.glob("events*")
    nodes = [fields(node) for node in fields(fields(records(path)[1])[4][0])[1]]
    reads = {n[1][0].decode(): [source.decode() for source in n.get(3, [])] for n in nodes}
    assert len(reads) == len(nodes)
    assert {source for sources in reads.values() for source in sources} <= reads.keys()
    assert reads["output/0"] == ["Sequential/2/Addmm"]
    assert "Sequential/2/weight" in reads["Sequential/2/T"]
    assert {"Sequential/1/norm/weight", "Sequential/1/norm/bias"} < set(reads["Sequential/1/norm/NativeBatchNorm"])
    assert reads["Sequential/1/Add"] == ["Sequential/1/Relu", "Sequential/1/drop/Mul"]
    assert reads["Sequential/0/Relu"] == ["input/Clone"]
    assert reads["input/Clone"] == ["input/0"]


def test_tensorboard_reads_it(tmp_path):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 3)
        writer.add_histogram("w", leafgrad.ones(3), 1)
        writer.add_image("picture", leafgrad.ones(3, 4, 5), 1)
    read = accumulators.EventAccumulator(str(tmp_path))
    read.Reload()
    assert [(e.step, e.value) for e in read.Scalars("loss")] == [(3, 0.5)]
    assert read.Histograms("w")[0].histogram_value.num == 3
    assert (read.Images("picture")[0].width, read.Images("picture")[0].height) == (5, 4)


def train(folder, until, model, resume=False, fail_at=None):
    with Training(folder, every=2, resume=resume, callbacks=("tensorboard",), model=model) as training:
        for step in training.steps(until):
            training.note(loss=leafgrad.tensor(step / 2), **{"loss/left": 3.0})
            if step == fail_at:
                raise RuntimeError("power cut")


def test_a_training_writes_its_terms_and_goes_on_where_it_was_saved(tmp_path):
    model = nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="power cut"):
        train(tmp_path, 6, model, fail_at=4)
    first = summaries(tmp_path)
    assert [(tag, step, of[2][0]) for tag, step, of in first if tag == "loss"] == [
        ("loss", step, step / 2) for step in range(5)
    ]
    assert [step for tag, step, _ in first if tag == "loss/left"] == list(range(5))
    old = set(tmp_path.glob("events*"))
    train(tmp_path, 6, model, resume=True)
    (again,) = set(tmp_path.glob("events*")) - old
    purge = fields(records(again)[1])
    assert (purge[2], fields(purge[7][0])) == ([4], {1: [1]})  # from step 4 on, the first file counts no more
    assert [step for tag, step, _ in summaries(tmp_path) if tag == "loss"] == [0, 1, 2, 3, 4, 4, 5]


def test_a_training_that_starts_anew_hides_the_former_one(tmp_path):
    for _ in range(2):
        train(tmp_path, 2, nn.Linear(1, 1))
        for checkpoint in tmp_path.glob("checkpoint-*"):
            checkpoint.unlink()
    for path in tmp_path.glob("events*"):
        purge = fields(records(path)[1])
        assert (purge.get(2, [0]), fields(purge[7][0])) == ([0], {1: [1]})
