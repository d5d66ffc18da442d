"""A folder of shards, here or on object storage, and the manifest that says which there are.

Of each shard there are two files: ``traces-NAME.parquet`` with a row for each trace, and
``events-NAME.parquet`` with one for each suggestion. The former is written last: a shard that has
it is done. A name follows from what was judged and by whom, so that a shard which is written twice
is the same one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from mast_tui.errors import MastError
from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.url_secrets import ADDRESSES

MANIFEST: Final = "manifest.json"
FORMAT: Final = "mast-tui-shards@1"


class ShardsError(MastError):
    """Something in or about a folder of shards is wrong; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Whose word the shards hold, and their names in the order of the walk.

    ``looks_at`` are the slugs of the modes on which the judge gives verdicts.
    """

    judge: str
    taxonomy: Taxonomy
    looks_at: tuple[str, ...]
    shards: tuple[str, ...]


def traces_file(shard: str) -> str:
    """The file with a shard's traces."""
    return f"traces-{shard}.parquet"


def events_file(shard: str) -> str:
    """The file with a shard's suggestions."""
    return f"events-{shard}.parquet"


class ShardFolder:
    """A folder by its path or URL; any process may write to it, as no two write the same thing."""

    def __init__(self, place: str) -> None:
        """Name a folder; ``make`` makes it.

        Args:
            place: A path, or a URL that fsspec knows, such as ``s3://bucket/judged``.

        Raises:
            ShardsError: fsspec, or what it needs for the URL, is not installed.
        """
        self.place = ADDRESSES.public(place)
        self._files: Any = None
        self._root = place
        if "://" in place:
            try:
                self._files, self._root = import_module("fsspec").core.url_to_fs(place)
            except ImportError as error:
                raise ShardsError(
                    f"{self.place}: URLs need an extra ({error}): pip install 'mast-tui[remote]'"
                ) from None
            except ValueError as error:
                reason = ADDRESSES.without_secrets(str(error))
                raise ShardsError(f"{self.place}: {reason}") from None

    def __reduce__(self) -> tuple[type[ShardFolder], tuple[str]]:
        # The process that gets it may have another working folder.
        if self._files is None:
            return ShardFolder, (str(Path(self._root).absolute()),)
        return ShardFolder, (ADDRESSES.whole(self.place),)

    def names(self) -> frozenset[str]:
        """The files that are there, without their folder."""
        try:
            if self._files is not None:
                self._files.invalidate_cache()
                found = self._files.ls(self._root, detail=False)
                return frozenset(name.rsplit("/", 1)[-1] for name in found)
            return frozenset(path.name for path in Path(self._root).iterdir())
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise self._failed(error) from error

    def done(self, manifest: Manifest) -> frozenset[str]:
        """Those of the shards that are written."""
        there = self.names()
        return frozenset(name for name in manifest.shards if traces_file(name) in there)

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""
        try:
            if self._files is not None:
                found: bytes = self._files.cat_file(self.path(name))
                return found
            return Path(self.path(name)).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(error) from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file so that it is there as a whole or not at all."""
        try:
            if self._files is not None:
                self._files.pipe_file(self.path(name), data)
                return
            place = Path(self.path(name))
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_name(f".{place.name}.{uuid4().hex}")
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(place)
        except OSError as error:
            raise self._failed(error) from error

    def withdraw(self, shard: str) -> None:
        """Remove the traces of a shard, so that it is no longer done."""
        path = self.path(traces_file(shard))
        try:
            if self._files is not None:
                self._files.rm_file(path)
                return
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed(error) from error

    def path(self, name: str) -> str:
        """Where a file lies, as ``filesystem`` names it."""
        return f"{self._root.rstrip('/')}/{name}"

    def filesystem(self) -> Any:
        """The file system for pyarrow; None for that of this machine."""
        if self._files is None:
            return None
        module = import_module("pyarrow.fs")
        return module.PyFileSystem(module.FSSpecHandler(self._files))

    def manifest(self) -> Manifest:
        """What is in the folder.

        Raises:
            ShardsError: These are no shards, or those of another version.
        """
        data = self.read(MANIFEST)
        if data is None:
            raise ShardsError(
                f"{self.place}: there are no shards, as there is no {MANIFEST}; 'mast-tui judge "
                "PATH … --judge rules --out FOLDER' writes some"
            )
        try:
            told: Mapping[str, Any] = json.loads(data)
            if told["format"] != FORMAT:
                raise ShardsError(
                    f"{self.place}: these shards are {told['format']}, and this version reads "
                    f"{FORMAT}; write them anew into another folder"
                )
            return Manifest(
                told["judge"],
                from_dict(told["taxonomy"], self.place),
                tuple(told["looks_at"]),
                tuple(told["shards"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ShardsError(
                f"{self.place}: {MANIFEST} is no manifest of shards ({error})"
            ) from None

    def begin(self, manifest: Manifest) -> None:
        """Say which shards there will be.

        Raises:
            ShardsError: The folder holds something else: another judge's word, or other files.
        """
        names = self.names()
        if MANIFEST in names:
            there = self.manifest()
            for what, old, new in (
                ("judge", there.judge, manifest.judge),
                ("taxonomy", there.taxonomy.identity, manifest.taxonomy.identity),
            ):
                if old != new:
                    whose = there.judge if what == "judge" else there.taxonomy.ref
                    raise ShardsError(
                        f"{self.place}: holds the shards of {what} {whose}; name another folder"
                    )
            if there == manifest:
                return
        elif names:
            raise ShardsError(
                f"{self.place}: holds other files, such as {min(names)}; name an empty folder"
            )
        document = {
            "format": FORMAT,
            "judge": manifest.judge,
            "taxonomy": to_dict(manifest.taxonomy),
            "looks_at": manifest.looks_at,
            "shards": manifest.shards,
        }
        self.write(MANIFEST, json.dumps(document, indent=1).encode())

    def _failed(self, error: OSError) -> ShardsError:
        reason = ADDRESSES.without_secrets(error.strerror or str(error) or type(error).__name__)
        return ShardsError(f"{self.place}: {reason}; once that is mended, the same command goes on")
