"""Remote traces: paths that fsspec opens, fetched file by file when they are read.

``s3://bucket/runs/a.json``, ``https://host/a.jsonl``, ``zip://runs/a.json::s3://bucket/a.zip``. A
``RemotePath`` answers as any path does. Its name is its URL without user and query, which
``url_secrets`` remembers for reading. Reading makes a copy. Copies are named by URL and state, so
that what has changed is fetched anew. fsspec's own
``filecache`` keeps one list of its files, in which processes lose each other's entries.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from errno import EFBIG, EIO, ENOENT, ENOPKG
from functools import lru_cache, partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path, PurePosixPath
from random import random
from typing import Any, Final
from urllib.parse import quote, unquote
from uuid import uuid4

from mast_tui.traces.io.private_files import make_private
from mast_tui.traces.io.url_secrets import ADDRESSES, split_url

MOST_BYTES: Final = 2 << 30
"""The most bytes of all copies; the least recently used go first."""

_SWEEP_BYTES: Final = 256 << 20
"""After so much that a process has fetched it looks whether too much is kept."""

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_COPIES: Final = re.compile(r"(?:(?:simplecache|filecache|blockcache)::)+", re.IGNORECASE)
"""Caches of fsspec that a URL may name first; what is fetched is kept here anyway."""

_LOOKED: Final = 5.0
"""Seconds for which what a path was found to be is believed."""

_CHECKSUMS: Final = ("ETag", "etag", "md5Hash", "Content-MD5", "checksum", "CRC", "chksum")
_STATES: Final = (
    *_CHECKSUMS,
    *("LastModified", "last_modified", "Last-Modified", "updated", "mtime", "created"),
)
"""The names of fsspec's facts that differ between two states of a file; each store has its own."""

_WORTH_LISTING: Final = 4
"""With so many files of a folder it is listed, which stores remember."""

_BROKEN_OFF: Final = 600.0
"""Seconds without a new byte after which a download counts as broken off."""

_AT_A_TIME: Final = 16
"""So many files are fetched together."""

_WEB: Final = ("http:", "https:")
_SIGNED: Final = ("http", "https")
_GONE: Final = (404, 410)
_FOR_SOME: Final = (401, 403, 407)

_SILENT: Final = 60.0
"""Seconds for which a web server may say nothing; the whole may take any time, where aiohttp would
end it after five minutes."""

_TRIES: Final = 3
_PAUSE: Final = 0.5
"""Web servers are asked so often, as fsspec asks them once; clients of object stores see to it."""


def is_url(text: str) -> bool:
    """Return whether a path is one for fsspec."""
    return _SCHEME.match(_COPIES.sub("", text)) is not None


def trace_path(text: str) -> Path:
    """Return the path of a file or folder of traces, and remember what its URL holds beside it.

    Args:
        text: A path of this machine, or a URL as fsspec writes it.
    """
    if not is_url(text):
        return Path(text)
    text = ADDRESSES.public(_COPIES.sub("", text))
    first, chained, outer = text.partition("::")
    prefix, separator, last = outer.rpartition("::")
    if chained and not is_url(last):  # so that it is found from other folders too
        outer = f"{prefix}{separator}{Path(last).absolute()}"
    scheme, _, inside = first.partition("://")
    chain = quote(outer, safe="") if chained else ""
    return RemotePath(f"{scheme.lower()}:{chain}", inside.strip("/"))


class RemotePath(type(Path())):  # type: ignore[misc] # the path of this system, as 3.11 wants it
    """A path whose first part holds scheme and chain, so that files beside it can be named."""

    def __str__(self) -> str:
        scheme, _, outer = self.parts[0].partition(":")
        chain = f"::{unquote(outer)}" if outer else ""
        return f"{scheme}://{'/'.join(self.parts[1:])}{chain}"

    def __fspath__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process of this app has to read it, too.
        return trace_path, (self.address,)

    @property
    def address(self) -> str:
        """The URL with user and query, for reading; never for storing or showing."""
        return ADDRESSES.whole(str(self))

    def is_absolute(self) -> bool:
        """Return True: a URL does not depend on the current folder."""
        return True

    def absolute(self) -> RemotePath:
        """Return the path itself, which is absolute."""
        return self

    def resolve(self, strict: bool = False) -> RemotePath:
        """Return the path itself, as there are no links."""
        if strict:
            self._info()
        return self

    def expanduser(self) -> RemotePath:
        """Return the path itself, as it has no home folder."""
        return self

    def relative_to(self, *folders: Any, **_: bool) -> PurePosixPath:
        """Return the path relative to a folder above it."""
        return PurePosixPath(*super().relative_to(*folders).parts)

    def samefile(self, _other: object) -> bool:
        """Return False, as no local file is the same."""
        return False

    def exists(self, **_: bool) -> bool:
        """Return whether a file or folder is there."""
        try:
            self._info()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, **_: bool) -> bool:
        """Return whether it is a folder, or a page of a web server with links to its files."""
        return self.exists() and bool(_is_folder(self, self._info()))

    def is_file(self, **_: bool) -> bool:
        """Return whether it is a file."""
        return self.exists() and not _is_folder(self, self._info())

    def stat(self, **_: bool) -> os.stat_result:
        """Return size and time of change; another mark of the file's state may replace the time."""
        info = self._info()
        kind = stat.S_IFDIR if _is_folder(self, info) else stat.S_IFREG
        changed = int(sha256(_state(info).encode()).hexdigest()[:12], 16)
        facts = (kind | 0o400, 0, 0, 1, 0, 0, int(info.get("size") or 0), 0, changed, changed)
        return os.stat_result(facts, {"st_mtime_ns": changed, "st_mtime": float(changed)})

    def open(self, mode: str = "rb", *_: object, **__: object) -> Any:
        """Open the copy of the file."""
        return self.fetched().open(mode)

    def iterdir(self) -> Iterator[RemotePath]:
        """Return the files and folders in the folder."""
        return iter([self / name for name in self.below(deep=False)])

    def glob(self, pattern: str, **_: bool) -> Iterator[RemotePath]:
        """Yield the files below it that match; none where the folder cannot be listed."""
        try:
            names = self.below(deep="**" in pattern)
        except OSError:
            return
        last = pattern.rsplit("/", 1)[-1]
        yield from (self / below for below in names if PurePosixPath(below).match(last))

    def rglob(self, pattern: str, **_: bool) -> Iterator[RemotePath]:
        """Yield the files anywhere below it that match."""
        return self.glob(f"**/{pattern}")

    def below(self, *, deep: bool = True, fresh: bool = False) -> Sequence[str]:
        """Return the paths of the files in a folder, relative to it, in sorted order.

        Args:
            deep: Whether files of all folders below it are listed, rather than its own files and
                folders.
            fresh: Whether the folder is listed again, if that was done before.

        Raises:
            OSError: The folder cannot be listed.
        """
        with _plain_errors(self):
            files, root = _file_system_of(self)
            if fresh:
                files.invalidate_cache()
            paths = files.find(root) if deep else files.ls(root, detail=False)
        if self.parts[0] in _WEB:
            return self._link_names(paths, ADDRESSES.query(str(self)))
        begin = f"{root.strip('/')}/".lstrip("/")
        names = [name.strip("/") for name in paths]
        return sorted(name.removeprefix(begin) for name in names if name.startswith(begin))

    def _link_names(self, links: Iterable[str], query: str) -> list[str]:
        """Return the names of a page's links below this folder.

        Args:
            links: The URLs; each may be signed.
            query: That of the page, which links without one get too.
        """
        begin = f"{self}/"
        names = set()
        for link in links:
            # fsspec appends a relative link to the whole URL of the page.
            plain = link.replace(f"{query}/", "/", 1) if query else link
            parts = split_url(plain)
            if parts is None or not parts.public.startswith(begin):
                continue
            name = parts.public.removeprefix(begin).strip("/")
            if name:
                ADDRESSES.public(f"{begin}{name}{parts.query or query}")
                names.add(name)
        return sorted(names)

    def matches(self) -> list[RemotePath]:
        """Return the files and folders that match the path, which is a pattern with ``*``.

        Raises:
            OSError: The folder cannot be listed.
        """
        plain = next(index for index, part in enumerate(self.parts) if "*" in part)
        base = RemotePath(*self.parts[:plain])
        with _plain_errors(self):
            if self.parts[0] in _WEB:
                pattern = str(self).removeprefix(f"{base}/")
                paths = _file_system_of(self)[0].glob(f"{base.address}/{pattern}")
                names = base._link_names(paths, ADDRESSES.query(str(self)))
                return [base / name for name in names]
            paths = [
                name.strip("/") for name in _file_system_of(self)[0].glob(_file_system_of(self)[1])
            ]
            begin = f"{_file_system_of(base)[1].strip('/')}/".lstrip("/")
        return [base / name.removeprefix(begin) for name in sorted(paths)]

    def beginning(self, length: int) -> bytes:
        """Return the first bytes of the file.

        Raises:
            OSError: They cannot be read.
        """
        with _plain_errors(self):
            files, name = _file_system_of(self)
            data: bytes = files.cat_file(name, start=0, end=length)
        return data[:length]  # some web servers give the whole all the same

    def fetched(self) -> Path:
        """Fetch the file in its current state; return the path of the copy on this machine.

        Raises:
            OSError: It cannot be fetched.
        """
        copy = self._copy_path()
        try:
            os.utime(copy, ns=(time.time_ns(), copy.stat().st_mtime_ns))
        except FileNotFoundError:
            with _plain_errors(self):
                _fetch(*_file_system_of(self), copy, self._download_limit())
        return copy

    @property
    def many_at_a_time(self) -> bool:
        """True if fetching several files together is faster than one after the other."""
        with suppress(OSError), _plain_errors(self):
            return bool(_file_system_of(self)[0].async_impl)
        return False

    def _download_limit(self) -> Any:
        """Return what ends a download that is over the limit of an archive or of the cache."""
        archive_files = import_module(f"{__package__}.archive_files")
        is_member = not self.parts[0].endswith(":") and not is_row(self)
        most = archive_files.MOST_MEMBER_BYTES if is_member else MOST_BYTES
        size = self._info().get("size") or 0
        error = (
            archive_files.too_big("it", most)
            if is_member
            else OSError(
                EFBIG,
                f"has more than the {most >> 20} MB that are kept of files from elsewhere; "
                "download it yourself",
            )
        )
        if size > most:
            raise error
        return partial(archive_files.ByteLimit, error, most)

    def _copy_path(self) -> Path:
        """Return the path of the copy of the file in its current state."""
        info = self._info()
        address = str(self)
        if not any(info.get(name) for name in _CHECKSUMS):
            # The query may name the file, and then only it distinguishes two of one size.
            address += ADDRESSES.query(address)
        name = sha256(f"{address}\0{_state(info)}".encode()).hexdigest()[:40]
        return _folder() / name[:2] / name

    def _info(self) -> Mapping[str, Any]:
        cached: tuple[float, Mapping[str, Any]] | None = self.__dict__.get("looked")
        if cached is not None and time.monotonic() - cached[0] < _LOOKED:
            return cached[1]
        with _plain_errors(self):
            files, name = _file_system_of(self)
            info: Mapping[str, Any] = files.info(name)
        self.__dict__["looked"] = (time.monotonic(), info)
        return info


def is_row(path: Path) -> bool:
    """Return whether a path is a row of a table, whose name is no file's."""
    return isinstance(path, RemotePath) and path.parts[0].startswith("parquet:")


def table_of(path: Path) -> RemotePath | None:
    """Return the rows of a table of traces, as a folder of files.

    Args:
        path: A file. It is such a table where it is Parquet with the columns ``id`` and ``content``
            and none that makes its rows the messages of one trace.

    Returns:
        The folder; None for any other file, and for one that cannot be opened.
    """
    if path.suffix.lower() != ".parquet" or is_row(path):
        return None
    try:
        if not path.is_file():
            return None
        columns_of = import_module(f"{__package__}.table_rows").columns_of
        table_path = str(path.absolute())
        with _plain_errors(path):
            columns = columns_of(ADDRESSES.whole(table_path))
    except (ImportError, OSError):  # reading the file will report the reason
        return None
    if not {"id", "content"} <= columns or "role" in columns:
        return None
    return RemotePath(f"parquet:{quote(table_path, safe='')}")


def list_folders(paths: Iterable[Path]) -> None:
    """List the folders that hold several of some files, so that no file needs a request."""
    far = (path for path in paths if isinstance(path, RemotePath))
    for folder, files in Counter(path.parent for path in far).items():
        if files >= _WORTH_LISTING and folder.parts[0] not in _WEB:
            with suppress(OSError):
                folder.below(deep=False)


def fetch_all(paths: Iterable[Path]) -> None:
    """Fetch the remote files among some files, many at a time.

    A file that cannot be fetched is reported when it is read.
    """
    far = [path for path in paths if isinstance(path, RemotePath) and path.many_at_a_time]
    if len(far) > 1:
        with ThreadPoolExecutor(_AT_A_TIME, "fetch") as threads:
            list(threads.map(_try_to_copy, far))


def _try_to_copy(path: RemotePath) -> None:
    with suppress(OSError):
        if path.is_file():
            path.fetched()


def _fetch(files: Any, name: str, copy: Path, limit: Callable[[_Room], Any]) -> None:
    """Copy a file, and remove older copies to make room before and while it is written."""
    make_private(copy.parent)
    draft = copy.with_name(f"{copy.name}.{uuid4().hex}")
    room = _Room()
    try:
        for left in reversed(range(_TRIES)):
            try:
                files.get_file(name, str(draft), callback=limit(room))
                break
            except (FileNotFoundError, PermissionError):
                raise
            except Exception as error:
                too_big = getattr(error, "errno", None) == EFBIG
                if too_big or not left or "http" not in files.protocol:
                    raise
                time.sleep(_PAUSE)
        draft.replace(copy)
    finally:
        draft.unlink(missing_ok=True)


class _Room:
    """Room in the cache for one file, made piece by piece as the file grows."""

    def __init__(self) -> None:
        # Each process looks now and then, so that many small files are not counted for each.
        self._left = int(random() * _SWEEP_BYTES)

    def __call__(self, size: int) -> None:
        """Make room for the next piece.

        Args:
            size: Its bytes.
        """
        self._left -= size
        if self._left < 0:
            self._left = _SWEEP_BYTES
            remove_old_copies(_folder(), max(0, MOST_BYTES - _SWEEP_BYTES))


def remove_old_copies(folder: Path, most: int) -> None:
    """Remove the copies that were used longest ago, and the remains of broken downloads.

    Args:
        folder: The folder of the copies.
        most: The bytes that may stay. A file that is being written stays, and counts.
    """
    copies = []
    now = time.time()
    for copy in folder.glob("*/*"):
        with suppress(OSError):  # another process was quicker
            facts = copy.stat()
            if not copy.suffix:
                copies.append((facts.st_atime_ns, facts.st_size, copy))
            elif now - facts.st_mtime > _BROKEN_OFF:
                copy.unlink()
            else:
                most -= facts.st_size
    for _, size, copy in sorted(copies, reverse=True):
        most -= size
        if most < 0:
            copy.unlink(missing_ok=True)


def _folder() -> Path:
    from platformdirs import user_cache_path  # start-up: whoever has no URL does without

    return user_cache_path("mast-tui", appauthor=False) / "fetched"


def _file_system_of(path: RemotePath) -> tuple[Any, str]:
    """Return the file system of a path, and the name of the path in it."""
    scheme, _, outer = path.parts[0].partition(":")
    if outer:
        inside = _container_files(scheme, ADDRESSES.whole(unquote(outer)))
        if isinstance(inside, OSError):
            raise OSError(*inside.args)
        return inside, "/".join(path.parts[1:])
    fsspec = import_module("fsspec")
    options = {}
    if path.parts[0] in _WEB:
        times = dict.fromkeys(("sock_connect", "sock_read"), _SILENT)
        timeout = import_module("aiohttp").ClientTimeout(total=None, **times)
        configured = fsspec.config.conf.get(scheme, {}).get("client_kwargs", {})
        options = {"client_kwargs": {"timeout": timeout, **configured}}
    files, name = fsspec.core.url_to_fs(ADDRESSES.whole(str(path)), **options)
    return files, name


@lru_cache(maxsize=8)
def _container_files(scheme: str, container: str) -> Any:
    """Return the files in an archive or a table, which is opened once; or why it is over a limit.

    Raises:
        OSError: It cannot be read.
    """
    try:
        if scheme == "parquet":
            return import_module(f"{__package__}.table_rows").TableRows(container)
        return import_module(f"{__package__}.archive_files").open_archive(scheme, container)
    except OSError as error:
        if error.errno != EFBIG:
            raise
        return error  # to find out once more would take as long


def _is_folder(path: RemotePath, info: Mapping[str, Any]) -> bool:
    if path.parts[0] in _WEB:
        page = str(info.get("mimetype") or "").startswith("text/html")
        return page and not path.name.endswith((".html", ".htm", ".json", ".jsonl"))
    return bool(info["type"] == "directory")


def _state(info: Mapping[str, Any]) -> str:
    states = [str(info[name]) for name in _STATES if info.get(name)]
    # Without a mark of its state each process fetches the file again.
    return f"{info.get('size')} {states[0] if states else os.getpid()}"


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn the errors of fsspec's libraries into those of files, without secrets of a URL.

    The library's own error quotes the whole URL, so it is not chained.
    """
    try:
        yield
    except FileNotFoundError as error:
        cause = error.__cause__
        gone = getattr(cause, "status", None) in _GONE
        if gone or cause is None or isinstance(cause, FileNotFoundError):
            raise FileNotFoundError(ENOENT, "no such file or folder", str(path)) from None
        raise _unreachable_error(path, cause) from None  # what fsspec makes of any failure of HTTP
    except ImportError as error:
        message = f"URLs need an extra ({error}): pip install 'mast-tui[remote]'"
        message = ADDRESSES.without_secrets(message)
        more = {"s3": " s3fs", "gs": " gcsfs", "gcs": " gcsfs", "abfs": " adlfs"}
        scheme = str(path).rsplit("::", 1)[-1].partition(":")[0]
        raise OSError(ENOPKG, message + more.get(scheme, ""), str(path)) from None
    except OSError as error:
        if error.errno == EFBIG:
            raise OSError(EFBIG, error.strerror, str(path)) from None
        raise _unreachable_error(path, error) from None
    except Exception as error:  # noqa: BLE001 # its message is in the error that is raised
        raise _unreachable_error(path, error) from None


def _unreachable_error(path: Path, error: BaseException) -> OSError:
    cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
    reason = ADDRESSES.without_secrets(" ".join(str(cause).split()))
    message = f"cannot be read ({reason})"
    refused = isinstance(error, PermissionError) or getattr(error, "status", None) in _FOR_SOME
    if refused or "credential" in message.lower():
        scheme = str(path).rsplit("::", 1)[-1].partition(":")[0]
        hint = f"set up credentials for {scheme} (docs/commands.md)"
        if scheme in _SIGNED and ADDRESSES.whole(str(path)) == str(path):
            hint += (
                "; if its URL had a user, a password or a query (?…), these are not kept: "
                "give the whole URL again, such as mast-tui 'https://…?…'"
            )
        elif scheme in _SIGNED:
            hint += "; the user or query (?…) of its URL is refused, and may have expired"
    elif "CERTIFICATE_VERIFY_FAILED" in message:
        hint = "if it is your own, name the certificate of who has signed it in SSL_CERT_FILE"
    else:
        hint = "look at the address and the network; the same command tries again"
    return OSError(EIO, f"{message}; {hint}", str(path))
