"""Files of ``torch.save`` are read, and nothing in them is run."""

from __future__ import annotations

import base64
import contextlib
import copy
import functools
import io
import operator
import os
import pickle
import random
import re
import struct
import zipfile
import zlib
from argparse import Namespace
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import leafgrad
from leafgrad.utils.pickles import Machine

# PyTorch 2.13: torch.save(OrderedDict(w=base.reshape(2, 3).t(), part=base[2:4], p=Parameter(torch.ones(1).double()),
# bf=torch.tensor([1.5, -2], dtype=torch.bfloat16), meta=[3, 0.5, "x", None, True, (torch.Size([1, 2]), torch.int8,
# torch.device("cpu"))]), f) with base = torch.arange(6.); compressed.
STORED = zlib.decompress(
    base64.b85decode(
        "c-o~_NpI6Y6rR|rn;Pf}q_j}V9-yR&lO`!!kcHfXC1_KSqDm-olWAjclRRfqmQxW5%MJbj;#a_t-"
        "Z%pi;?M&U2gCuvks~v9Ft$rtwH;+VvOV82Gw(fTTIGWXg+gdu>qY%YGmB+?8IPAVqD5<W3`OonbDp-"
        "s6^m8Fz(t~0D|PX@S;8hRUDb<31avwFfk-|;$?gJIBvr~5Ei{O3)Ww2{=Nr0FDiB<$SIxq*Bmy6a<U8r)I-RL4VhGw0Q8B6-"
        "nYAB^&|wkAK*;lSEY=#(sR{%_Gb&Pfm3s_bYCz>5gZQk>4D2GXI|qC6bd{*4nFPAaRHqy)ca(*)h3uJ8IhAWduNr7VpN;A#Fpz`2mQ)S)wee2*"
        "v?WZiDZ+l6wdMF~wJ~pC$8y->iNhcj3=lZLtWvEZb{Vz>4-z<(gOR7!&EY37nu8;Gj-uul;HZaNwzeala@dbq>=GQO>>Pm;jGZp$Bx65ivquQf"
        ">lteks9_Dx-h#1+%1>p#*oSRV+=Fx1p0-qG^#_zXO1F~k=y(%iIf%Dj=@pU@L2BKV@UmW{Qxnc{B%3gigVYm9<3@B^?F`-"
        "iv36&au7&mKw(%B5!%n<K7pmrxMheT=tkbws<ghR7oEB#SZ+@;lVhdosy}%Gk{}X7%SV1%N#mW+{5JgV3)7Yq`lFUH%E_`Q)#cgPy4`m$#^Y;m"
        "^vSd-@3)|8C+YFr$12YfJOJ5HNR7Kd(LpQqY$?EZ#BA?%Z0h@ItOD|XGkM<SXUtM92!q30G7^E)-H*qxPbre_R2-"
        "=$duPoF1KJfb;69{dhchRdSDRO4pJFuEXt4zCdX6`G?uHc5+J+26FVtYsDpAeb)`<IJ1H;=y&B>hVOYw2}t>NEo$Xsmh{^pYY+w`eAoNlqp+nM"
        "^W0nVN_tGwH-cES`~)vD9QbO&?E6u~b}2SXuJ=;o*-"
        "F>LX&g3^22fPj`*zUFY2Y9rB~y1t9D});QFzs`yFVNj&5sdG97!S2_GV?nLbK@Z@;3z5w{)?yTwdz(4WGm%DzfI|IDfa?pp3`?2l__F_N#v63I"
        "_j=vrc_C^QtN4y{G4vP^F_=5}l|A3uV1!3%Oc=P8RWS4K8;_UIBV2>2X{%N4MEf4mWqeHMUUDkYi?jK)g4^9"
    )
)


def load(data, *args, **kwargs):
    return leafgrad.load(io.BytesIO(data), *args, **kwargs)


@pytest.fixture
def stored():
    return load(STORED)


def archive(data, entries=(), compression=zipfile.ZIP_STORED):
    """A file as torch.save makes them, around a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as out:
        for name, content in {"data.pkl": data, "byteorder": b"little", **dict(entries)}.items():
            out.writestr(f"archive/{name}", content)
    return file.getvalue()


def test_values_dtypes_and_kinds(stored):
    assert type(stored) is OrderedDict
    assert list(stored) == ["w", "part", "p", "bf", "meta"]
    assert stored["w"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert stored["w"].stride() == (1, 3)
    assert (stored["bf"].tolist(), stored["bf"].dtype) == ([1.5, -2], leafgrad.bfloat16)
    assert stored["p"].dtype is leafgrad.float64
    assert stored["p"].requires_grad
    assert stored["p"].is_leaf
    assert not stored["w"].requires_grad
    assert stored["meta"] == [3, 0.5, "x", None, True, (leafgrad.Size([1, 2]), leafgrad.int8, leafgrad.device("cpu"))]


SCALAR = (  # torch.save(Parameter(torch.tensor(-2.5)), f)
    b"\x80\x02ctorch._utils\n_rebuild_parameter\n(ctorch._utils\n_rebuild_tensor_v2\n("
    b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0" + b"0X\x03\0\0\0cpuK\x01tQK\0))\x89"
    b"ccollections\nOrderedDict\n)RtR\x88ccollections\nOrderedDict\n)RtR."
)


def test_parameters_of_no_dimensions():
    found = load(archive(SCALAR, {"data/0": np.float32(-2.5).tobytes()}))
    assert isinstance(found, leafgrad.nn.Parameter)
    assert (found.item(), found.shape, found.requires_grad) == (-2.5, (), True)


def test_what_shared_memory_shares_it(stored):
    stored["part"][0] = 9
    assert stored["w"].tolist() == [[0, 3], [1, 4], [9, 5]]


@pytest.mark.parametrize("map_location", [None, "cpu"])
def test_versions_of_modules_are_kept(map_location):
    state = OrderedDict(a=1)
    state._metadata = OrderedDict({"": {"version": 2}})
    assert load(archive(pickle.dumps(state, 2)), map_location)._metadata == {"": {"version": 2}}


def test_arguments(tmp_path):
    path = tmp_path / "weights.pt"
    path.write_bytes(STORED)
    for options in (
        {"weights_only": True},
        {"weights_only": False},
        {"mmap": True},
        {"weights_only": None, "mmap": None},
        {"map_location": "cpu"},
    ):
        assert leafgrad.load(path, **options)["w"].tolist() == [[0, 3], [1, 4], [2, 5]]
    seen = []
    moved = leafgrad.load(path, lambda tensor, where: seen.append((tuple(tensor.shape), where)))
    assert seen == [((3, 2), "cpu"), ((2,), "cpu"), ((1,), "cpu"), ((2,), "cpu")]
    assert type(moved) is OrderedDict
    with open(path, "rb") as file:
        assert list(leafgrad.load(file)) == ["w", "part", "p", "bf", "meta"]
    from_middle = io.BytesIO(b"before" + STORED)
    from_middle.seek(6)
    assert list(leafgrad.load(from_middle)) == ["w", "part", "p", "bf", "meta"]


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


FOREIGN = [
    (Evil(), r"(posix|nt)\.mkdir"),
    (np.random.default_rng(0), r"numpy\.\S+"),
    (np.random.default_rng, r"numpy\S*\.default_rng"),
    (pytest.raises, r"_pytest\.\w+\.raises"),
    (range(3), r"\S+range"),
    (OrderedDict, "collections.OrderedDict"),
    (ChainMap({}), "collections.ChainMap"),
    (zipfile.ZipInfo(), "zipfile.ZipInfo"),
    (functools.partial(os.mkdir, "evil"), "functools.partial"),
]


@pytest.mark.parametrize(("obj", "name"), FOREIGN)
@pytest.mark.parametrize("protocol", [2, 4])
def test_anything_else_is_not_run_and_stands_by_its_name(obj, name, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=f"it has {name} in it; leafgrad reads tensors, numbers"):
        load(archive(pickle.dumps(obj, protocol=protocol)))
    found = load(archive(pickle.dumps({"epoch": 3, "other": [(obj, 1)]}, protocol=protocol)), map_location="cpu")
    assert found["epoch"] == 3
    ((inert, one),) = found["other"]
    assert one == 1
    assert re.fullmatch(f"<{name}, which was not loaded>", repr(copy.deepcopy(inert)))
    uses = [bool, len, list, float, "{0[0]}".format, operator.methodcaller("f"), lambda x: x(), lambda x: x + 1]
    for use in uses:
        with pytest.raises(
            TypeError, match=f"expected an object, got <{name}, which was not loaded>, .*add_safe_globals"
        ):
            use(inert)
    assert not list(tmp_path.iterdir())


class Options:
    """What a checkpoint may hold beside tensors."""

    def __init__(self, lr):
        self.lr = lr


@pytest.mark.parametrize("protocol", [2, 4])
def test_objects_of_classes_that_the_caller_trusts(protocol):
    data = archive(pickle.dumps([Options(0.5), {"again": Options}], protocol=protocol))
    with leafgrad.serialization.safe_globals([Options]):
        options, again = load(data)
    assert (type(options), options.lr, again) == (Options, 0.5, {"again": Options})
    assert repr(load(data)[0]) == f"<{__name__}.Options, which was not loaded>"
    with leafgrad.serialization.safe_globals([(SimpleNamespace, f"{__name__}.Options")]):
        assert load(data)[0] == SimpleNamespace(lr=0.5)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("map_location", [None, "cpu"])
@pytest.mark.parametrize(
    "obj",
    [
        Counter("hello"),
        defaultdict(list, {"a": [1]}),
        Namespace(lr=0.1, folder=Path("a") / "b"),
        SimpleNamespace(a=1),
        {1, "a", (2, None)},
        frozenset([1.5]),
        deque([1, 2]),
        np.float32(1.5),
        np.float64(0.1),
        np.bool_(True),
        b"bytes",
        b"",
        1j,
        slice(1, 2),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_what_checkpoints_hold_beside_tensors(obj, protocol, map_location):
    first, second = load(archive(pickle.dumps([obj, obj], protocol=protocol)), map_location)
    assert first == second == obj
    assert type(first) is type(obj)
    assert getattr(first, "default_factory", None) is getattr(obj, "default_factory", None)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3), "int16")), np.zeros((0, 3)), np.array(1)]
)
def test_arrays_are_read(array, protocol):
    first, second = load(archive(pickle.dumps([array, array], protocol=protocol)))
    assert first is second
    assert first.dtype == array.dtype
    assert first.tolist() == array.tolist()
    assert first.shape == array.shape


@pytest.mark.parametrize("lost", [np.array(["text"]), np.array([None]), np.datetime64("2020-01-01"), np.array(b"a")])
def test_what_has_a_dtype_that_leafgrad_has_not_says_so_where_it_is_used(lost):
    found = load(archive(pickle.dumps({"a": [lost, lost], "b": 1}, protocol=2)))
    assert found["b"] == 1
    assert repr(found["a"][1]).startswith("<numpy.dtype(")
    with pytest.raises(TypeError, match="which was not loaded>, since leafgrad has no such dtype, or making it would"):
        len(found["a"][0])


def test_tensors_of_dtypes_that_leafgrad_has_not():
    storage = b"(X\x07\x00\x00\x00storagectorch\nOddStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x02\x85K\x01\x85\x89}tR"
    parameter = b"ctorch._utils\n_rebuild_parameter\n" + tensor + b"\x88}\x87R"
    for data in tensor, parameter:
        found = load(archive(b"\x80\x02]" + data + b"aK\x01a."))
        assert repr(found) == "[<torch.OddStorage, which was not loaded>, 1]"


def nested(times):
    """A pickle of a tuple whose hash takes 2**times steps."""
    return b"\x80\x02)q\x00" + b"h\x00h\x00\x86q\x00" * times


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02}" + nested(60)[2:] + b"K\x01s.",
        nested(60) + b")R.",
        b"\x80\x02c__builtin__\nset\n" + nested(60)[2:] + b"\x85\x85R.",
        b"\x80\x02ccollections\nCounter\n" + nested(60)[2:] + b"\x85\x85R.",
        b"\x80\x02ccollections\nOrderedDict\n" + nested(60)[2:] + b"K\x01\x86\x85\x85R.",
        pickle.dumps({2**61 - 1: 1}, protocol=2),
        pickle.dumps(np.arange(3, dtype=">f4"), protocol=2),
        b"\x80\x02cnumpy._core.multiarray\n_reconstruct\n)R\x85.",
    ],
)
def test_pickles_that_nobody_wrote(data):
    with pytest.raises(RuntimeError, match="load: "):
        load(archive(data))


def long(number):
    data = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def of_one_hash(count):
    """Pairs of integers that have one hash, by going back through what CPython does with a tuple's items."""
    one, two, five, full = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x27D4EB2F165667C5, 2**64
    found, a = [], 0
    while len(found) < count:
        a += 1
        mixed = (five + a * two) % full
        mixed = ((mixed << 31 | mixed >> 33) % full) * one % full
        b = (12345 - mixed) * pow(two, -1, full) % full
        b = b - full if b >= full // 2 else b
        if abs(b) < 2**60:
            found.append((a, b))
    assert len(set(map(hash, found))) == 1
    return found


def memory_of_one(kind, items=b"K\x01" * 20_000, times=2000):
    """A pickle that has one long thing, and makes others of it."""
    return b"\x80\x04](" + items + b"q\x00" + kind * times + b"e."


PAIRS = [long(a) + long(b) + b"\x86" for a, b in of_one_hash(200)]
COMPLEX = b"".join(
    b"cbuiltins\ncomplex\nG" + struct.pack(">d", 1e9 - 1_000_003 * i) + b"G" + struct.pack(">d", i) + b"\x86R"
    for i in range(200)
)
TEXT = b"X" + struct.pack("<I", 100_000) + b"a" * 100_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80\x04\x8f(" + b"".join(PAIRS) + b"\x90.", "one hash"),
        (b"\x80\x04(" + b"".join(PAIRS) + b"\x91.", "one hash"),
        (b"\x80\x04}(" + b"K\x01".join([*PAIRS, b""]) + b"u.", "one hash"),
        (b"\x80\x04\x8f(" + COMPLEX + b"\x90.", "one hash"),
        (memory_of_one(b"(h\x00\x91", b"(" + b"K\x01" * 20_000 + b"t"), "far more than its .* bytes explain"),
        (memory_of_one(b"ccollections\ndeque\nh\x00\x85R", b"](" + b"K\x01" * 20_000 + b"e"), "far more than"),
        (memory_of_one(b"ctorch\nSize\nh\x00\x85R", b"(" + b"K\x01" * 20_000 + b"t"), "far more than"),
        (memory_of_one(b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R", TEXT), "far more than"),
        (memory_of_one(b"cpathlib\nPosixPath\nh\x00\x85R", TEXT), "far more than"),
    ],
)
def test_small_files_with_large_work(data, message):
    with pytest.raises(RuntimeError, match=f"load: .*{message}"):
        load(archive(data))


def test_many_open_containers():
    deep = load(archive(b"\x80\x02" + b"(" * 100_000 + b"t" * 100_000 + b"."))
    for _ in range(99_999):
        (deep,) = deep
    assert deep == ()


def test_deep_and_shared_containers_are_moved_at_once():
    deep = load(archive(b"\x80\x02)" + b"\x85" * 50 + b"."), "cpu")
    assert type(deep) is tuple
    shared = load(archive(nested(60) + b"."), "cpu")
    assert shared[0] is shared[1]
    with pytest.raises(RuntimeError, match=r"load: .*recursion"):
        load(archive(b"\x80\x02)" + b"\x85" * 100_000 + b"."), "cpu")


def state(data):
    """A pickle that gives an OrderedDict attributes."""
    return b"\x80\x02ccollections\nOrderedDict\n)R" + data + b"b."


def storage(kind=b"FloatStorage", count=b"K\x02", size=b"K\x02\x85", stride=b"K\x01\x85", offset=b"K\x00"):
    """A pickle of one tensor."""
    names = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n" + kind + b"\n"
    rest = b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + count + b"tQ" + offset + size + stride + b"\x89Ntq"
    return names + rest + b"\x00R."


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive(b"\x80\x02K\x01")[:-30], "it is damaged"),
        (archive(b"\x80\x02K\x01."), None),
        (archive(b"\x80\x02K\x01.", compression=zipfile.ZIP_DEFLATED), "its byteorder is compressed"),
        (archive(b"\x80\x02K\x01.", {"byteorder": b"big"}), "its numbers are big-endian"),
        (archive(b"\x80\x02K\x01.").replace(b"data.pkl", b"data.pk_"), "not of torch.save: it has no data.pkl"),
        (archive(state(b"}X\x01\x00\x00\x00aK\x01s")), "it has a OrderedDict with attributes"),
        (archive(state(b"}X\x09\x00\x00\x00_metadata}s")), None),
        (archive(storage(), {"data/0": bytes(8)}), None),
        (archive(storage(), {"data/0": bytes(7)}), "a storage of 2 elements has 7 bytes"),
        (archive(storage()), "it is damaged: 'archive/data/0'"),
        (archive(storage(kind=b"QInt8Storage"), {"data/0": bytes(16)}), "has torch.QInt8Storage in it"),
        (archive(storage(offset=b"K\x01"), {"data/0": bytes(8)}), "load: "),
        (archive(storage(stride=b"K\x02\x85"), {"data/0": bytes(8)}), "load: "),
        (archive(storage(size=b"K\x02K\x01\x86"), {"data/0": bytes(8)}), "load: "),
    ],
)
def test_damage(data, message):
    if message is None:
        load(data)
        return
    with pytest.raises(RuntimeError, match=message):
        load(data)


def test_random_damage_gives_one_kind_of_error():
    rng = random.Random(0)
    ended = Counter()
    for _ in range(400):
        data = bytearray(STORED)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            load(bytes(data))
            ended["read"] += 1
        except RuntimeError:
            ended["refused"] += 1
    assert min(ended["read"], ended["refused"]) > 40


def test_random_pickles_run_nothing():
    rng = random.Random(0)
    with zipfile.ZipFile(io.BytesIO(STORED)) as file:
        pickled = next(file.read(name) for name in file.namelist() if name.endswith("data.pkl"))
    for _ in range(400):
        data = bytearray(pickled)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            Machine(lambda key: bytes(24)).run(bytes(data))
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RuntimeError):
            continue


def test_complex_tensors_of_pytorch_conjugated_or_not(tmp_path):
    torch = pytest.importorskip("torch")
    z = torch.tensor([1 + 2j, 3], dtype=torch.complex64)
    torch.save({"z": z, "conj": z.to(torch.complex128).conj()}, tmp_path / "z.pt")
    found = leafgrad.load(tmp_path / "z.pt")
    assert (found["z"].dtype, found["z"].tolist()) == (leafgrad.complex64, [1 + 2j, 3])
    assert (found["conj"].dtype, found["conj"].tolist()) == (leafgrad.complex128, [1 - 2j, 3])


# PyTorch 2.13: torch.save({"w": base.t(), "row": base[1], "n": 3}, f, _use_new_zipfile_serialization=False) with
# base = torch.arange(6.).reshape(2, 3).
OLD = zlib.decompress(
    base64.b85decode(
        "c-n1HyH3L}6iwo^1w)}cB{s&eR8?saOmsk9EFLXO78HfVYJ#k|*Kt~bR4Gd<$~Q1D@@sqo5(77_kQi$DUdhMD=bY=@dZXg!z59Lq"
        "^m%tw&#mh(f_(yp<JJtr7%Hh{AcZ&LDvf0VCKB8#-iTOh!9AXYv7dnT>QV&t^N@RK{K8Wp6R;h(gkTy;rJ=+um*6Q*G?ba`+J%Np"
        "22f#kmi>8}h>pPwv{XS<_c9%elzNIkX0Zr8&689rZ`7n<IgVQ?#F6O_IFRKN+7;5*_e+q1?QS9GqSbDnwi@Tn##yt~fYKsIFw8JV"
        "`9?#f#|%c8HG?%~GBShpd4MAe9%!66rMD{NiicNmpefLkK5S^%>_c@SqvRO2B1{vJXr<eBv~;QU(1T22hnZ8@okxYxo`(HC94w|z"
        ";E<8xA0EJ1rDOW_vhjcAm)JVEv2v`B&M&z4c*y"
    )
)


def test_files_before_pytorch_1_6():
    found = load(OLD)
    assert (found["w"].tolist(), found["n"]) == ([[0, 3], [1, 4], [2, 5]], 3)
    found["row"].fill_(9)
    assert found["w"].tolist() == [[0, 9], [1, 9], [2, 9]]
    for end in range(len(OLD)):
        with pytest.raises(RuntimeError, match="load: BytesIO: expected"):
            load(OLD[:end])


def test_random_damage_of_files_before_pytorch_1_6():
    draw = random.Random(0)
    for _ in range(300):
        data = bytearray(OLD)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        with contextlib.suppress(RuntimeError):
            load(bytes(data))


def test_as_pytorch_reads_its_own(tmp_path):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    whole = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "half": torch.ones(2).half()}
    torch.save(whole, tmp_path / "a.pt")
    ours = leafgrad.load(tmp_path / "a.pt")
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(ours["model"][name].numpy(), value.numpy())
    assert ours["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]
    twin = leafgrad.nn.Sequential(leafgrad.nn.Linear(3, 4), leafgrad.nn.BatchNorm1d(4))
    twin.load_state_dict(ours["model"])
    leafgrad.optim.Adam(twin.parameters()).load_state_dict(ours["optimizer"])
    kinds = [torch.float16, torch.float32, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]
    for dtype in (*kinds, torch.uint8, torch.bfloat16):
        for shape in ((), (3,), (0,), (2, 3), (2, 0, 3)):
            t = (torch.rand(shape) * 9).to(dtype)
            for value in (t, t.expand(2, *shape), t.mT if len(shape) > 1 else t):
                torch.save(value, tmp_path / "t.pt")
                found = leafgrad.load(tmp_path / "t.pt")
                assert found.dtype.name == str(dtype).removeprefix("torch.")
                np.testing.assert_array_equal(found.float().numpy(), value.float().numpy())
