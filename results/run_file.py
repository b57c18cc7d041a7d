"""A run as one file: one line of JSON for its plan and for each record, vouching and profile, packed with xz.

    {"run": {"schema_version": 3, "id": ...}}            first; `xzcat FILE | head -1` shows it
    {"record": {"cell": {...}, "block": 0, ...}}         and so on, then "vouching", then "profile"

The file may come from a stranger. It holds no paths, and unpacking writes nothing to the disk: it happens in memory, up
to a size limit, and reading stops at the first invalid line.
"""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from zoomgrad.results.fields import MOST_RECORDS
from zoomgrad.results.files import Unreadable, first_of, read_content
from zoomgrad.results.profile import AnyProfile
from zoomgrad.results.record import Model, Record, Run, Vouching

SUFFIX = ".jsonl.xz"

MOST_UNPACKED_BYTES = 16 * 2**20
"""A run of the preset `full` takes 2.5 MB."""
MOST_LINE_BYTES = 4 * 2**20
"""The largest record has 20 kB, the largest profile a megabyte. Parsing takes up to a hundred times as much memory."""
MOST_DECODER_BYTES = 100 * 2**20
"""Memory limit of the decoder. The file chooses the dictionary's size; xz's largest preset takes 65 MiB."""


class Snapshot(Model):
    """Everything that reports and the gate read from a run, without a profiler's own files."""

    run: Run
    records: Annotated[tuple[Record, ...], Field(max_length=MOST_RECORDS)]
    vouchings: tuple[Vouching, ...] = ()
    profiles: tuple[AnyProfile, ...] = ()

    @model_validator(mode="after")
    def _each_once_and_planned(self) -> Snapshot:
        by_workload = {vouching.workload: vouching for vouching in self.vouchings}
        for record in self.records:
            self.run.refuse(record, by_workload)
        keys = Counter[object]((record.cell, record.block) for record in self.records)
        keys.update(vouching.workload for vouching in self.vouchings)
        keys.update((profile.cell, profile.profiler) for profile in self.profiles)
        if twice := [key for key, count in keys.items() if count > 1]:
            raise ValueError(f"holds twice: {twice[0]}")
        return self


class Line(Model):
    """One line of the file: exactly one of these fields."""

    run: Run | None = None
    record: Record | None = None
    vouching: Vouching | None = None
    profile: AnyProfile | None = None

    @model_validator(mode="after")
    def _one(self) -> Line:
        if len(self.model_fields_set) != 1 or not any(getattr(self, name) for name in self.model_fields_set):
            raise ValueError(f"a line must hold exactly one of {', '.join(Line.model_fields)}")
        return self


def pack(snapshot: Snapshot) -> bytes:
    """Content of the file. One version of liblzma packs the same snapshot into the same bytes.

    Raises Unreadable if the content exceeds the limits of `unpack`.
    """
    import lzma  # missing from Pythons built without liblzma, where all else works

    parts = {"record": snapshot.records, "vouching": snapshot.vouchings, "profile": snapshot.profiles}
    models = [("run", snapshot.run), *((name, model) for name, part in parts.items() for model in part)]
    lines = [f'{{"{name}":{model.model_dump_json()}}}\n'.encode() for name, model in models]
    text, longest = b"".join(lines), max(map(len, lines))
    if len(text) > MOST_UNPACKED_BYTES or longest > MOST_LINE_BYTES:
        raise Unreadable(
            f"{snapshot.run.id}: too large for a file: {len(text):,} bytes, in lines of up to {longest:,}\n"
            "  Keep its folder instead."
        )
    # Contexts of four bits of the byte before, and none of its position, suit text.
    for_text = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}
    return lzma.compress(text, filters=[for_text])


def unpack(path: Path) -> Snapshot:
    """Read the snapshot in a file. Raises Unreadable, which names the file, the line and the fault."""
    where = str(path)
    lines: list[Line] = []
    text = io.BytesIO(_unpacked(path))
    try:
        while content := text.readline(MOST_LINE_BYTES + 1):
            where = f"{path}: line {len(lines) + 1}"
            if len(content) > MOST_LINE_BYTES:
                raise Unreadable(f"{where}: longer than zoomgrad writes\n  Remove the file.")
            lines.append(Line.model_validate_json(content))
            if lines[-1].run and len(lines) > 1:
                raise Unreadable(f"{where}: holds another plan\n  Get the file again, or ask its author.")
        where = str(path)
        return Snapshot(
            run=lines[0].run if lines else None,  # type: ignore[arg-type]  # None is refused
            records=tuple(line.record for line in lines if line.record),
            vouchings=tuple(line.vouching for line in lines if line.vouching),
            profiles=tuple(line.profile for line in lines if line.profile),
        )
    except ValidationError as error:
        raise Unreadable(
            f"{where}: {first_of(error)}\n"
            "  The file was edited, or written by another version of zoomgrad. "
            "Get the file again, or read it with the version that wrote it."
        ) from error


def _unpacked(path: Path) -> bytes:
    import lzma

    content = read_content(path)
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, MOST_DECODER_BYTES)
    try:
        text = decoder.decompress(content, MOST_UNPACKED_BYTES + 1)
    except lzma.LZMAError as error:
        raise Unreadable(f"{path}: not an xz file that zoomgrad wrote: {error}\n  Get the file again.") from error
    if len(text) > MOST_UNPACKED_BYTES:
        raise Unreadable(f"{path}: unpacks to more than {MOST_UNPACKED_BYTES:,} bytes\n  Remove the file.")
    if not decoder.eof or decoder.unused_data:
        fault = "has data after the end of its stream" if decoder.eof else "is cut short"
        raise Unreadable(f"{path}: {fault}\n  Get the file again.")
    return text
