"""A folder of shards, on this machine or on object storage, and the manifest that lists them.

Each shard has two files: ``traces-NAME.parquet`` with a row for each trace, and
``events-NAME.parquet`` with a row for each suggestion. The traces are written last: a shard with
that file is done. The name of a shard follows from its files and the judge, so that a shard which
is written twice is the same one.
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
    """A fault in a folder of shards, or in its use; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The judge of the shards, and their names in the order of the scan.

    ``looks_at`` are the slugs of the modes on which the judge gives verdicts.
    """

    judge: str
    taxonomy: Taxonomy
    looks_at: tuple[str, ...]
    shards: tuple[str, ...]


def traces_file(shard: str) -> str:
    """Return the name of the file with the traces of a shard."""
    return f"traces-{shard}.parquet"


def events_file(shard: str) -> str:
    """Return the name of the file with the suggestions of a shard."""
    return f"events-{shard}.parquet"


class ShardFolder:
    """A folder by its path or URL; several processes may write to it, as their files differ."""

    def __init__(self, address: str) -> None:
        """Open a folder, which need not exist.

        Args:
            address: A path, or a URL that fsspec supports, such as ``s3://bucket/judged``.

        Raises:
            ShardsError: fsspec, or the package that it needs for the URL, is not installed.
        """
        self.address = ADDRESSES.remember(address)
        self._files: Any = None
        self._root = address
        if "://" in address:
            try:
                self._files, self._root = import_module("fsspec").core.url_to_fs(address)
            except ImportError as error:
                raise ShardsError(
                    f"{self.address}: URLs need an extra ({error}): pip install 'mast-tui[remote]'"
                ) from None
            except ValueError as error:
                reason = ADDRESSES.without_secrets(str(error))
                raise ShardsError(f"{self.address}: {reason}") from None

    def __reduce__(self) -> tuple[type[ShardFolder], tuple[str]]:
        # The process that receives it may have another working folder.
        if self._files is None:
            return ShardFolder, (str(Path(self._root).absolute()),)
        return ShardFolder, (ADDRESSES.full_url(self.address),)

    def names(self) -> frozenset[str]:
        """Return the names of the files in the folder."""
        try:
            if self._files is not None:
                self._files.invalidate_cache()
                paths = self._files.ls(self._root, detail=False)
                return frozenset(path.rsplit("/", 1)[-1] for path in paths)
            return frozenset(path.name for path in Path(self._root).iterdir())
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise self._error_of(error) from error

    def done(self, manifest: Manifest) -> frozenset[str]:
        """Return the names of the shards that are written."""
        files = self.names()
        return frozenset(name for name in manifest.shards if traces_file(name) in files)

    def read(self, name: str) -> bytes | None:
        """Read a file; return None if it does not exist."""
        try:
            if self._files is not None:
                content: bytes = self._files.cat_file(self.path(name))
                return content
            return Path(self.path(name)).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._error_of(error) from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file so that it exists as a whole or not at all.

        Args:
            name: The name of the file.
            data: The content.

        Raises:
            ShardsError: The file cannot be written.
        """
        try:
            if self._files is not None:
                self._files.pipe_file(self.path(name), data)
                return
            path = Path(self.path(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.{uuid4().hex}")
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            raise self._error_of(error) from error

    def withdraw(self, shard: str) -> None:
        """Remove the traces of a shard, so that it counts as not written."""
        path = self.path(traces_file(shard))
        try:
            if self._files is not None:
                self._files.rm_file(path)
                return
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise self._error_of(error) from error

    def path(self, name: str) -> str:
        """Return the path of a file within ``filesystem``."""
        return f"{self._root.rstrip('/')}/{name}"

    def filesystem(self) -> Any:
        """Return the file system for pyarrow; None for that of this machine."""
        if self._files is None:
            return None
        module = import_module("pyarrow.fs")
        return module.PyFileSystem(module.FSSpecHandler(self._files))

    def manifest(self) -> Manifest:
        """Read the manifest.

        Raises:
            ShardsError: The folder has no shards, or those of another version.
        """
        content = self.read(MANIFEST)
        if content is None:
            raise ShardsError(
                f"{self.address}: there are no shards, as there is no {MANIFEST}; 'mast-tui judge "
                "PATH … --judge rules --out FOLDER' writes some"
            )
        try:
            document: Mapping[str, Any] = json.loads(content)
            if document["format"] != FORMAT:
                raise ShardsError(
                    f"{self.address}: these shards are {document['format']}, and this version "
                    f"reads {FORMAT}; write them anew into another folder"
                )
            return Manifest(
                document["judge"],
                from_dict(document["taxonomy"], self.address),
                tuple(document["looks_at"]),
                tuple(document["shards"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ShardsError(
                f"{self.address}: {MANIFEST} is no manifest of shards ({error})"
            ) from None

    def begin(self, manifest: Manifest) -> None:
        """Write the manifest of the shards that will be written.

        Raises:
            ShardsError: The folder has the shards of another judge or taxonomy, or other files.
        """
        names = self.names()
        if MANIFEST in names:
            stored = self.manifest()
            owner = None
            if stored.judge != manifest.judge:
                owner = f"judge {stored.judge}"
            elif stored.taxonomy.identity != manifest.taxonomy.identity:
                owner = f"taxonomy {stored.taxonomy.ref}"
            if owner is not None:
                raise ShardsError(
                    f"{self.address}: holds the shards of {owner}; name another folder"
                )
            if stored == manifest:
                return
        elif names:
            raise ShardsError(
                f"{self.address}: holds other files, such as {min(names)}; name an empty folder"
            )
        document = {
            "format": FORMAT,
            "judge": manifest.judge,
            "taxonomy": to_dict(manifest.taxonomy),
            "looks_at": manifest.looks_at,
            "shards": manifest.shards,
        }
        self.write(MANIFEST, json.dumps(document, indent=1).encode())

    def _error_of(self, error: OSError) -> ShardsError:
        """Return the error to raise for a failed access, without secrets of the address."""
        reason = ADDRESSES.without_secrets(error.strerror or str(error) or type(error).__name__)
        return ShardsError(
            f"{self.address}: {reason}; once that is mended, the same command goes on"
        )
