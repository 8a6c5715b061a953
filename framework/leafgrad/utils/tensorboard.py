"""``SummaryWriter``: numbers, histograms, images, texts and figures for TensorBoard, in its own event files.

    writer = SummaryWriter("runs/first")
    for step, (x, y) in enumerate(loader):
        writer.add_scalar("loss", train(x, y), step)
    writer.close()                                  # then: tensorboard --logdir runs

Nothing but ``tensorboard`` itself, which shows the files, needs to be installed for that.
"""

from __future__ import annotations

import itertools
import os
import platform
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

from leafgrad import dtypes
from leafgrad.tensor.data import as_tensor
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils.protobuf import bytes_field, float_field, number_field, text_field

__all__ = ["SummaryWriter"]

_files: Final = itertools.count()


class SummaryWriter:
    """Writes event files into a folder, which TensorBoard shows.

    Args:
        log_dir: the folder; by default ``runs/DATE_TIME_HOST`` with ``comment`` behind it.
        purge_step: what TensorBoard has of this step and later ones, from a run that broke off, is no longer shown.
        max_queue: so many records wait in memory. flush_secs: after so many seconds they are written, whatever comes.
        filename_suffix: what the file's name ends with.
    """

    def __init__(
        self,
        log_dir: str | Path | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        host = platform.node() or "localhost"
        if log_dir is None:
            log_dir = Path("runs") / f"{datetime.now():%b%d_%H-%M-%S}_{host}{comment}"
        self.log_dir = str(log_dir)
        self.max_queue, self.flush_secs = max_queue, flush_secs
        Path(log_dir).mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{host}.{os.getpid()}.{next(_files)}{filename_suffix}"
        self._path, self._closed = Path(log_dir) / name, False
        self._waiting: list[bytes] = []
        self._flushed = time.monotonic()
        self._others: dict[str, SummaryWriter] = {}
        self._write(text_field(3, "brain.Event:2"), None, None)
        if purge_step is not None:
            self._write(bytes_field(7, number_field(1, 1)), purge_step, None)
        self.flush()

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    # ---- what is written --------------------------------------------------------------------------------------

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number of a curve.

        Args:
            tag: the curve; a slash makes groups of them. scalar_value: a number, or a tensor of one element.
            global_step: its place along the curve. walltime: the time, if it is not now.

        Raises:
            TypeError, ValueError: it is no number.
        """
        self._summary(tag, float_field(2, scalar(scalar_value)), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers in one diagram, each as a run of its own in a folder below."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            writer = self._others.get(folder)
            if writer is None:
                writer = self._others[folder] = SummaryWriter(folder)
            writer.add_scalar(main_tag, value, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: int | str = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How the elements of a tensor are distributed.

        Args:
            values: a tensor, an array or numbers. bins: how many intervals of one width; 30 by default.

        Raises:
            ValueError: there are no elements, or one is nan or inf.
        """
        numbers = as_tensor(values).detach().reshape(-1).to(dtypes.float64)
        if not numbers.numel():
            raise ValueError(f"add_histogram({tag!r}): values: expected at least one element")
        if not numbers.isfinite().all():
            raise ValueError(f"add_histogram({tag!r}): values: found nan or inf, of which there is no histogram")
        self._summary(tag, bytes_field(5, histogram(numbers, bins if isinstance(bins, int) else 30)),
                      global_step, walltime)  # fmt: skip

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture.

        Args:
            img_tensor: of 1, 3 or 4 channels, in the order that ``dataformats`` says, "CHW", "HWC" or "HW": uint8 from
                0 to 255, floats from 0 to 1.

        Raises:
            ValueError: another number of dimensions or channels.
        """
        rows, channels = pixels(as_tensor(img_tensor), dataformats, f"add_image({tag!r})")
        picture = png(rows, channels)
        parts = number_field(1, len(rows)) + number_field(2, len(rows[0]) // channels if rows else 0)
        self._summary(
            tag, bytes_field(4, parts + number_field(3, channels) + bytes_field(4, picture)), global_step, walltime
        )

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several pictures of one size, side by side."""
        given = as_tensor(img_tensor)
        wide = dataformats.replace("N", "").index("W")
        self.add_image(tag, joined(list(given), wide), global_step, walltime, dataformats.replace("N", ""))

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of Matplotlib's, or several below each other as pictures of their own; closed afterwards."""
        from io import BytesIO

        for i, each in enumerate(figure if isinstance(figure, (list, tuple)) else [figure]):
            buffer = BytesIO()
            each.savefig(buffer, format="png")
            width, height = (int(n) for n in each.get_size_inches() * each.dpi)
            parts = number_field(1, height) + number_field(2, width) + number_field(3, 4)
            name = tag if i == 0 else f"{tag}/{i}"
            self._summary(name, bytes_field(4, parts + bytes_field(4, buffer.getvalue())), global_step, walltime)
            if close:
                from matplotlib import pyplot

                pyplot.close(each)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text, which TensorBoard reads as Markdown."""
        shape = bytes_field(2, bytes_field(2, number_field(1, 1)))
        tensor = number_field(1, 7) + shape + text_field(8, text_string)
        self._summary(f"{tag}/text_summary", of_plugin("text") + bytes_field(8, tensor), global_step, walltime)

    def add_graph(self, model: Any, input_to_model: Any = None, **_: Any) -> None:
        """The operations of a module, in boxes by the modules within it.

        Args:
            model: it runs once, after which its buffers and the random numbers are what they were.
            input_to_model: its argument, or a tuple of them.

        Raises:
            RuntimeError: no gradient flows to a parameter or input. TypeError: ``model`` is no Module.
        """
        from leafgrad.utils.graph_def import graph_def  # which few programs need

        if not hasattr(model, "named_modules"):
            raise TypeError(f"add_graph: model: expected a Module, got {type(model).__name__}")
        inputs = tuple(input_to_model) if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        self._write(bytes_field(4, graph_def(model, inputs)), None, None)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Settings of a run and what came of them, which TensorBoard compares with those of other runs.

        They are a run of their own, in a folder below.

        Args:
            hparam_dict: the settings: strings, bools and numbers. metric_dict: numbers by tag, as of ``add_scalar``.
            hparam_domain_discrete: the values that a setting may have, by its name.
            run_name: the folder; by default the time.

        Raises:
            TypeError: a setting is something else.
        """
        from leafgrad.utils.hparams import hparams  # which few programs need

        records = hparams(hparam_dict, metric_dict, hparam_domain_discrete or {})
        with SummaryWriter(f"{self.log_dir}/{run_name or time.time()}") as writer:
            for tag, content in records.items():
                writer._summary(tag, of_plugin("hparams", content), None, None)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    # ---- the file -----------------------------------------------------------------------------------------------

    def _summary(self, tag: str, value: bytes, step: int | None, walltime: float | None) -> None:
        if not isinstance(tag, str):
            raise TypeError(f"tag: expected a string, got {type(tag).__name__}")
        self._write(bytes_field(5, bytes_field(1, text_field(1, tag) + value)), step, walltime)

    def _write(self, what: bytes, step: int | None, walltime: float | None) -> None:
        if self._closed:
            raise ValueError("SummaryWriter: it is closed; make another one")
        head = struct.pack("<Bd", 1 << 3 | 1, time.time() if walltime is None else walltime)
        self._waiting.append(record(head + (number_field(2, int(step)) if step is not None else b"") + what))
        if len(self._waiting) > self.max_queue or time.monotonic() - self._flushed > self.flush_secs:
            self.flush()

    def flush(self) -> None:
        """Write what waits in memory."""
        if self._waiting:
            with open(self._path, "ab") as file:
                file.write(b"".join(self._waiting))
        self._waiting, self._flushed = [], time.monotonic()
        for writer in self._others.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files. Doing it twice does no harm."""
        self.flush()
        self._closed = True
        for writer in self._others.values():
            writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# ---- values ------------------------------------------------------------------------------------------------------


def of_plugin(name: str, content: bytes = b"") -> bytes:
    """Which plugin of TensorBoard's shows a value, and what it wants to know of it."""
    return bytes_field(9, bytes_field(1, text_field(1, name) + bytes_field(2, content) * bool(content)))


def scalar(value: Any) -> float:
    """A number, also from a tensor or an array of one element."""
    if isinstance(value, Tensor):
        return float(value.detach().item())
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"add_scalar: scalar_value: expected a number or a tensor of one, got {type(value).__name__}")
    return float(value)


def histogram(numbers: Tensor, bins: int) -> bytes:
    """A HistogramProto of float64 numbers."""
    low, high = numbers.min().item(), numbers.max().item()
    step = (high - low) / bins or 1.0
    places = ((numbers - low) / step).to(dtypes.int64).clamp(max=bins - 1)
    counts = places.bincount(minlength=bins).tolist()
    limits = [low + step * (i + 1) for i in range(bins)]
    head = [low, high, float(numbers.numel()), numbers.sum().item(), (numbers * numbers).sum().item()]
    fields = b"".join(struct.pack("<Bd", (i + 1) << 3 | 1, n) for i, n in enumerate(head))
    packed = [struct.pack(f"<{bins}d", *row) for row in (limits, map(float, counts))]
    return fields + bytes_field(6, packed[0]) + bytes_field(7, packed[1])


def pixels(image: Tensor, order: str, where: str) -> tuple[list[bytes], int]:
    """The rows of a picture as bytes, and how many channels it has."""
    if sorted(order) not in (sorted("CHW"), sorted("HW")) or image.ndim != len(order):
        raise ValueError(f"{where}: expected a picture as {order!r} says, got {image.ndim} dimensions")
    at = {letter: i for i, letter in enumerate(order)}
    image = image.detach().unsqueeze(-1) if "C" not in at else image.detach().permute(at["H"], at["W"], at["C"])
    channels = image.shape[-1]
    if channels not in (1, 3, 4):
        raise ValueError(f"{where}: expected 1, 3 or 4 channels, got {channels}")
    if image.dtype is not dtypes.uint8:
        image = (image.to(dtypes.float32) * 255).clamp(0, 255).to(dtypes.uint8)
    return [row.tobytes() for row in image.contiguous().numpy(force=True)], channels


def joined(images: Sequence[Tensor], dim: int) -> Tensor:
    """Pictures side by side."""
    from leafgrad.tensor.joining import cat

    return cat(list(images), dim)


def png(rows: Sequence[bytes], channels: int) -> bytes:
    """A PNG file."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    kind = {1: 0, 3: 2, 4: 6}[channels]
    size = struct.pack(">IIBBBBB", len(rows[0]) // channels if rows else 0, len(rows), 8, kind, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


# ---- protocol buffers, and the records that hold them ----------------------------------------------------------------


def _crc_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE: Final = _crc_table()


def masked_crc(data: bytes) -> int:
    """The CRC-32C of bytes, turned and shifted as records have it, so that sums of sums differ."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """Bytes with their length before and check sums behind both."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))
