"""A comparison on disk: a folder with `blocks.jsonl`, a line for the plan and one for each thing measured."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from pydantic import BaseModel

from zoomgrad.harness.compare.turns import Plan
from zoomgrad.results import files
from zoomgrad.results.files import inside
from zoomgrad.results.store import RUNS


class Folder:
    """The folder of one comparison."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def create(cls, plan: Plan, under: Path = RUNS) -> tuple[Folder, Plan]:
        """Make a folder for a new comparison, and return the plan with the id that is its folder's name.

        If the id is taken, because two comparisons began in the same second, a number is put into it.
        """
        under.mkdir(parents=True, exist_ok=True)
        start, _, kind = plan.id.rpartition("-")
        for number in count(2):
            path = inside(under, plan.id)
            try:
                path.mkdir()
                break
            except FileExistsError:
                plan = plan.model_copy(update={"id": f"{start}-{number}-{kind}"})
        files.mark(path, plan.id)
        folder = cls(path)
        folder.append(plan)
        return folder, plan

    def file(self, name: str) -> Path:
        """Path of a file in the folder."""
        return inside(self._path, name)

    def append(self, one: BaseModel) -> None:
        """Add a line to `blocks.jsonl`, and flush it to the disk."""
        with self.file("blocks.jsonl").open("ab") as file:
            file.write(f'{{"{type(one).__name__.lower()}":{one.model_dump_json()}}}\n'.encode())
            file.flush()
            os.fsync(file.fileno())
