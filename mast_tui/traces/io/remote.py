"""Remote traces: paths of URLs, fetched file by file with fsspec when they are read.

Examples: ``s3://bucket/runs/a.json``, ``https://host/a.jsonl``,
``zip://runs/a.json::s3://bucket/a.zip``. A ``RemotePath`` is used like any path. Its text is its
URL without user and query, which ``url_secrets`` stores for reading. Reading makes a copy; the
names of copies depend on the URL and the state of the file, so that a changed file is fetched
again. fsspec's own ``filecache`` is not used, because processes lose each other's entries in its
single list.
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

from mast_tui.traces.io.private_files import PART, make_private, remove_least_used
from mast_tui.traces.io.url_secrets import ADDRESSES, split_url

MOST_BYTES: Final = 2 << 30
"""The most bytes of all copies; the least recently used are removed."""

_SWEEP_BYTES: Final = 256 << 20
"""The bytes that a process fetches before it removes old copies again."""

_SCHEME: Final = r"(?i)[a-z][a-z0-9+.-]*://"
_CACHE_PREFIXES: Final = r"(?i)(?:(?:simplecache|filecache|blockcache)::)+"
"""The caches of fsspec that may begin a URL; they are dropped, because this module keeps copies."""

_FACTS_SECONDS: Final = 5.0
"""The seconds after which the facts of a file are requested again."""

_CHECKSUMS: Final = ("ETag", "etag", "md5Hash", "Content-MD5", "checksum", "CRC", "chksum")
_STATE_FACTS: Final = (
    *_CHECKSUMS,
    *("LastModified", "last_modified", "Last-Modified", "updated", "mtime", "created"),
)
"""The names of fsspec's facts that differ between two states of a file; each store has its own."""

_LEAST_LISTED_FILES: Final = 4
"""The least number of files for which their folder is listed; fsspec caches the list."""

_MOST_DOWNLOADS: Final = 16
"""The most files that are fetched at the same time."""

_WEB_PREFIXES: Final = ("http:", "https:")
_SIGNED_SCHEMES: Final = ("http", "https")
_GONE_STATUSES: Final = (404, 410)
_REFUSED_STATUSES: Final = (401, 403, 407)

_SILENCE_SECONDS: Final = 60.0
"""The seconds for which a web server may send nothing. The whole download has no limit, unlike
aiohttp's default of five minutes."""

_MOST_TRIES: Final = 3
_RETRY_SECONDS: Final = 0.5
"""The seconds between two tries of a download from a web server. The clients of object stores
repeat failed requests themselves."""


def is_url(text: str) -> bool:
    """Return whether a path is a URL, which fsspec opens."""
    return "://" in text and re.match(_SCHEME, re.sub(_CACHE_PREFIXES, "", text)) is not None


def trace_path(text: str) -> Path:
    """Return the path of a file or folder of traces.

    The path of a URL lacks its user and query, which ``ADDRESSES`` stores for reading.

    Args:
        text: A path of this machine, or a URL in the form of fsspec.
    """
    if not is_url(text):
        return Path(text)
    text = ADDRESSES.remember(re.sub(_CACHE_PREFIXES, "", text))
    # In a chain such as zip://a.json::file.zip the last part is the outermost container.
    member, chained, containers = text.partition("::")
    inner_containers, separator, outermost = containers.rpartition("::")
    # A local container gets an absolute path, because another process may read it elsewhere.
    if chained and not is_url(outermost):
        containers = f"{inner_containers}{separator}{Path(outermost).absolute()}"
    scheme, _, inside = member.partition("://")
    return RemotePath(f"{scheme.lower()}:{quote(containers, safe='')}", inside.strip("/"))


class RemotePath(type(Path())):  # type: ignore[misc] # the path of this system, as 3.11 wants it
    """The path of a remote file or folder.

    Its first part has the scheme and the rest of a chain of URLs, so that ``parent`` and ``/`` work
    within the innermost folder.
    """

    def __str__(self) -> str:
        scheme, _, outer = self.parts[0].partition(":")
        chain = f"::{unquote(outer)}" if outer else ""
        return f"{scheme}://{'/'.join(self.parts[1:])}{chain}"

    def __fspath__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process of this app has to read the file, too.
        return trace_path, (self.address,)

    @property
    def address(self) -> str:
        """The URL with user and query, for reading; never for storing or showing."""
        return ADDRESSES.full_url(str(self))

    def is_absolute(self) -> bool:
        """Return True, because a URL does not depend on the current folder."""
        return True

    def absolute(self) -> RemotePath:
        """Return the path itself, which is absolute."""
        return self

    def resolve(self, strict: bool = False) -> RemotePath:
        """Return the path itself, because there are no links."""
        if strict:
            self._file_facts()
        return self

    def relative_to(self, *folders: Any, **_: bool) -> PurePosixPath:
        """Return the path relative to a folder above it."""
        return PurePosixPath(*super().relative_to(*folders).parts)

    def samefile(self, _other: object) -> bool:
        """Return False, because no local file is the same."""
        return False

    def exists(self, **_: bool) -> bool:
        """Return whether the file or folder exists."""
        try:
            self._file_facts()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, **_: bool) -> bool:
        """Return whether the path is a folder, or a web page with links to files."""
        return self.exists() and bool(_is_folder(self, self._file_facts()))

    def is_file(self, **_: bool) -> bool:
        """Return whether the path is a file."""
        return self.exists() and not _is_folder(self, self._file_facts())

    def stat(self, **_: bool) -> os.stat_result:
        """Return the size, and a hash of the state as time of change (some stores have no time)."""
        facts = self._file_facts()
        kind = stat.S_IFDIR if _is_folder(self, facts) else stat.S_IFREG
        size = int(facts.get("size") or 0)
        change_time = int(sha256(_state_text(facts).encode()).hexdigest()[:12], 16)
        # st_mode, st_ino, st_dev, st_nlink, st_uid, st_gid, st_size, st_atime, st_mtime, st_ctime
        fields = (kind | 0o400, 0, 0, 1, 0, 0, size, 0, change_time, change_time)
        return os.stat_result(fields, {"st_mtime_ns": change_time, "st_mtime": float(change_time)})

    def open(self, mode: str = "rb", *_: object, **__: object) -> Any:
        """Open the copy of the file."""
        return self.fetched().open(mode)

    def iterdir(self) -> Iterator[RemotePath]:
        """Return the files and folders in the folder."""
        return iter([self / name for name in self.below(deep=False)])

    def glob(self, pattern: str, **_: bool) -> Iterator[RemotePath]:
        """Yield the files in the folder that match; none if the folder cannot be listed."""
        try:
            names = self.below(deep="**" in pattern)
        except OSError:
            return
        name_pattern = pattern.rsplit("/", 1)[-1]
        yield from (self / name for name in names if PurePosixPath(name).match(name_pattern))

    def rglob(self, pattern: str, **_: bool) -> Iterator[RemotePath]:
        """Yield the files at any depth in the folder that match."""
        return self.glob(f"**/{pattern}")

    def below(self, *, deep: bool = True, fresh: bool = False) -> Sequence[str]:
        """Return the paths of the files in a folder, relative to it, in sorted order.

        Args:
            deep: True for the files at any depth; else the files and folders directly in it.
            fresh: True to list the folder again, even if it was listed before.

        Raises:
            OSError: The folder cannot be listed.
        """
        with _file_errors(self):
            file_system, root = _file_system_of(self)
            if fresh:
                file_system.invalidate_cache()
            paths = file_system.find(root) if deep else file_system.ls(root, detail=False)
        if self.parts[0] in _WEB_PREFIXES:
            return self._names_of_links(paths, ADDRESSES.query_of(str(self)))
        prefix = f"{root.strip('/')}/".lstrip("/")  # empty for the root of an archive
        names = [name.strip("/") for name in paths]
        return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))

    def _names_of_links(self, links: Iterable[str], query: str) -> list[str]:
        """Return the names in this folder to which the links of its web page lead.

        ``ADDRESSES`` stores the queries of the links. ``query`` is the query of the page, for links
        without one.
        """
        prefix = f"{self}/"
        names = set()
        for link in links:
            # fsspec appends a relative link to the whole URL of the page.
            url = link.replace(f"{query}/", "/", 1) if query else link
            parts = split_url(url)
            if parts is None or not parts.public.startswith(prefix):
                continue
            name = parts.public.removeprefix(prefix).strip("/")
            if name:
                ADDRESSES.remember(f"{prefix}{name}{parts.query or query}")
                names.add(name)
        return sorted(names)

    def matches(self) -> list[RemotePath]:
        """Return the files and folders that match this path, a pattern with ``*``.

        Raises:
            OSError: The folder cannot be listed.
        """
        pattern_index = next(index for index, part in enumerate(self.parts) if "*" in part)
        base = RemotePath(*self.parts[:pattern_index])  # the folder without a pattern
        with _file_errors(self):
            file_system, path_pattern = _file_system_of(self)
            if self.parts[0] in _WEB_PREFIXES:
                pattern_below_base = str(self).removeprefix(f"{base}/")
                links = file_system.glob(f"{base.address}/{pattern_below_base}")
                names = base._names_of_links(links, ADDRESSES.query_of(str(self)))
                return [base / name for name in names]
            paths = [path.strip("/") for path in file_system.glob(path_pattern)]
            _, base_path = _file_system_of(base)
            prefix = f"{base_path.strip('/')}/".lstrip("/")  # empty for the root of an archive
        return [base / path.removeprefix(prefix) for path in sorted(paths)]

    def beginning(self, length: int) -> bytes:
        """Return the first bytes of the file.

        Raises:
            OSError: The file cannot be read.
        """
        with _file_errors(self):
            file_system, name = _file_system_of(self)
            data: bytes = file_system.cat_file(name, start=0, end=length)
        return data[:length]  # some web servers always send the whole file

    def fetched(self) -> Path:
        """Return the path of a copy of the file in its current state; fetch it if it is missing.

        Raises:
            OSError: The file cannot be fetched.
        """
        copy = self._copy_path()
        try:
            # Record the use, because the least recently used copies are removed first.
            os.utime(copy, ns=(time.time_ns(), copy.stat().st_mtime_ns))
        except FileNotFoundError:
            with _file_errors(self):
                _download(*_file_system_of(self), copy, self._callback_maker())
        return copy

    @property
    def many_at_a_time(self) -> bool:
        """True if several files can be fetched at the same time."""
        with suppress(OSError), _file_errors(self):
            return bool(_file_system_of(self)[0].async_impl)
        return False

    def _callback_maker(self) -> Any:
        """Return a maker of callbacks for ``_download``, which limit the size of the file.

        Raises:
            OSError: The size of the file, by its server's facts, is over the limit.
        """
        archive_files = import_module(f"{__package__}.archive_files")
        # The first part is the scheme, a colon and the archive, if there is one.
        is_member = not self.parts[0].endswith(":") and not is_row(self)
        if is_member:
            most = archive_files.MOST_MEMBER_BYTES
            error = archive_files.too_big("it", most)
        else:
            most = MOST_BYTES
            message = f"is larger than {most >> 20} MB, the limit for remote files"
            error = OSError(EFBIG, f"{message}; download it yourself")
        if (self._file_facts().get("size") or 0) > most:
            raise error
        return partial(archive_files.ByteLimit, error, most)

    def _copy_path(self) -> Path:
        """Return the path of the copy of the file in its current state."""
        facts = self._file_facts()
        address = str(self)
        if not any(facts.get(name) for name in _CHECKSUMS):
            # Without a checksum, only the query may distinguish two files of one size.
            address += ADDRESSES.query_of(address)
        name = sha256(f"{address}\0{_state_text(facts)}".encode()).hexdigest()[:40]
        return _copies_folder() / name[:2] / name

    def _file_facts(self) -> Mapping[str, Any]:
        """Return fsspec's facts of the file, such as its size, cached for a few seconds.

        Raises:
            OSError: There is no such file, or the server cannot be reached.
        """
        cached: tuple[float, Mapping[str, Any]] | None = self.__dict__.get("cached_facts")
        if cached is not None:
            time_of_request, cached_facts = cached
            if time.monotonic() - time_of_request < _FACTS_SECONDS:
                return cached_facts
        with _file_errors(self):
            file_system, name = _file_system_of(self)
            facts: Mapping[str, Any] = file_system.info(name)
        self.__dict__["cached_facts"] = (time.monotonic(), facts)
        return facts


def is_row(path: Path) -> bool:
    """Return whether a path is a row of a table, not a file."""
    return isinstance(path, RemotePath) and path.parts[0].startswith("parquet:")


def table_of(path: Path) -> RemotePath | None:
    """Return a table of traces as a folder with a file for each row.

    Args:
        path: A file. A table of traces is a Parquet file with the columns ``id`` and ``content``,
            and without ``role``, which marks messages of one trace.

    Returns:
        The folder; None if the file is no table of traces, or cannot be opened.
    """
    if path.suffix.lower() != ".parquet" or is_row(path):
        return None
    try:
        if not path.is_file():
            return None
        columns_of = import_module(f"{__package__}.table_rows").columns_of
        table_path = str(path.absolute())
        with _file_errors(path):
            columns = columns_of(ADDRESSES.full_url(table_path))
    except (ImportError, OSError):  # reading the file will report the reason
        return None
    has_traces = {"id", "content"} <= columns and "role" not in columns
    if not has_traces:
        return None
    return RemotePath(f"parquet:{quote(table_path, safe='')}")


def list_folders(paths: Iterable[Path]) -> None:
    """List the remote folders that contain several of these files.

    fsspec caches the lists, so that the facts of each file need no request of their own.
    """
    remote_paths = (path for path in paths if isinstance(path, RemotePath))
    for folder, file_count in Counter(path.parent for path in remote_paths).items():
        if file_count >= _LEAST_LISTED_FILES and folder.parts[0] not in _WEB_PREFIXES:
            with suppress(OSError):
                folder.below(deep=False)


def fetch_all(paths: Iterable[Path]) -> None:
    """Fetch the remote files among these paths that can be fetched at the same time.

    Errors are ignored, because reading the files reports them.
    """
    remote_paths = [path for path in paths if isinstance(path, RemotePath) and path.many_at_a_time]
    if len(remote_paths) > 1:
        with ThreadPoolExecutor(_MOST_DOWNLOADS, "fetch") as threads:
            list(threads.map(_fetch_quietly, remote_paths))


def _fetch_quietly(path: RemotePath) -> None:
    """Fetch a file; ignore errors, and paths that are no file."""
    with suppress(OSError):
        if path.is_file():
            path.fetched()


def _download(
    file_system: Any, name: str, copy: Path, make_callback: Callable[[_CacheRoom], Any]
) -> None:
    """Download a file to ``copy``; for a web server, try again after an error.

    ``make_callback`` makes the callback of one try, which raises an error if the file is too big.
    For each piece it calls the ``_CacheRoom``, which makes room in the cache.
    """
    make_private(copy.parent)
    draft = copy.with_name(f"{copy.name}.{uuid4().hex}{PART}")
    room = _CacheRoom()
    try:
        for tries_left in reversed(range(_MOST_TRIES)):
            try:
                file_system.get_file(name, str(draft), callback=make_callback(room))
                break
            except (FileNotFoundError, PermissionError):
                raise
            except Exception as error:
                is_too_big = getattr(error, "errno", None) == EFBIG
                is_web = "http" in file_system.protocol  # other clients repeat by themselves
                if is_too_big or not is_web or not tries_left:
                    raise
                time.sleep(_RETRY_SECONDS)
        draft.replace(copy)
    finally:
        draft.unlink(missing_ok=True)


class _CacheRoom:
    """A function that makes room in the cache for the pieces of one file.

    Old copies are removed after every ``_SWEEP_BYTES``, at first after a random part of them, so
    that few small files cause a pass through the cache.
    """

    def __init__(self) -> None:
        self._bytes_until_sweep = int(random() * _SWEEP_BYTES)

    def __call__(self, size: int) -> None:
        """Count the bytes of a piece, and sometimes remove the least recently used copies."""
        self._bytes_until_sweep -= size
        if self._bytes_until_sweep < 0:
            self._bytes_until_sweep = _SWEEP_BYTES
            # Until the next sweep the cache may grow by as much as is left free here.
            remove_least_used(_copies_folder().glob("*/*"), max(0, MOST_BYTES - _SWEEP_BYTES))


def _copies_folder() -> Path:
    from platformdirs import user_cache_path  # start-up: needed only for URLs

    return user_cache_path("mast-tui", appauthor=False) / "fetched"


def _file_system_of(path: RemotePath) -> tuple[Any, str]:
    """Return the file system that contains a path, and the name of the path in it.

    Raises:
        OSError: The archive or table with the file is over a limit, or cannot be read.
    """
    # For a file in an archive or table, the first part is the scheme and address of the latter.
    scheme, _, container = path.parts[0].partition(":")
    if container:
        container_files = _container_files(scheme, ADDRESSES.full_url(unquote(container)))
        if isinstance(container_files, OSError):  # a cached error
            raise OSError(*container_files.args)
        return container_files, "/".join(path.parts[1:])
    fsspec = import_module("fsspec")
    options = {}
    if path.parts[0] in _WEB_PREFIXES:
        timeout = import_module("aiohttp").ClientTimeout(
            total=None, sock_connect=_SILENCE_SECONDS, sock_read=_SILENCE_SECONDS
        )
        configured = fsspec.config.conf.get(scheme, {}).get("client_kwargs", {})
        options = {"client_kwargs": {"timeout": timeout, **configured}}
    file_system, name = fsspec.core.url_to_fs(ADDRESSES.full_url(str(path)), **options)
    return file_system, name


@lru_cache(maxsize=8)
def _container_files(scheme: str, container: str) -> Any:
    """Return the file system of an archive or table, which is cached.

    If the archive is over a limit, the error is returned, so that it is cached, too.

    Raises:
        OSError: The archive or table cannot be read.
    """
    try:
        if scheme == "parquet":
            return import_module(f"{__package__}.table_rows").TableRows(container)
        return import_module(f"{__package__}.archive_files").open_archive(scheme, container)
    except OSError as error:
        if error.errno != EFBIG:
            raise
        return error


def _is_folder(path: RemotePath, facts: Mapping[str, Any]) -> bool:
    """Return whether these facts are of a folder, or of a web page with links."""
    if path.parts[0] in _WEB_PREFIXES:
        is_page = str(facts.get("mimetype") or "").startswith("text/html")
        has_file_name = path.name.endswith((".html", ".htm", ".json", ".jsonl"))
        return is_page and not has_file_name  # a page with a file name is itself a file
    return bool(facts["type"] == "directory")


def _state_text(facts: Mapping[str, Any]) -> str:
    """Return a text that differs for two states of a file: its size, and a checksum or time.

    Without these, the text has the process id, so that each process fetches the file.
    """
    states = [str(facts[name]) for name in _STATE_FACTS if facts.get(name)]
    state = states[0] if states else os.getpid()
    return f"{facts.get('size')} {state}"


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Turn each error of fsspec and its libraries into an ``OSError`` without secrets of a URL.

    The original error has the whole URL in its text, so it is not chained.
    """
    try:
        yield
    except FileNotFoundError as error:
        cause = error.__cause__
        is_gone = getattr(cause, "status", None) in _GONE_STATUSES
        if is_gone or cause is None or isinstance(cause, FileNotFoundError):
            raise FileNotFoundError(ENOENT, "no such file or folder", str(path)) from None
        # fsspec raises FileNotFoundError for every failure of HTTP.
        raise _unreachable_error(path, cause) from None
    except ImportError as error:
        message = (
            f"URLs need more packages ({error}); install them with: pip install 'mast-tui[remote]'"
        )
        message = ADDRESSES.without_secrets(message)
        packages = {"s3": " s3fs", "gs": " gcsfs", "gcs": " gcsfs", "abfs": " adlfs"}
        raise OSError(ENOPKG, message + packages.get(_server_scheme(path), ""), str(path)) from None
    except OSError as error:
        if error.errno == EFBIG:
            raise OSError(EFBIG, error.strerror, str(path)) from None
        raise _unreachable_error(path, error) from None
    except Exception as error:  # noqa: BLE001 # its message is in the error that is raised
        raise _unreachable_error(path, error) from None


def _unreachable_error(path: Path, error: BaseException) -> OSError:
    """Return the error of a file that cannot be read, with the reason and a hint for the user."""
    cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
    reason = ADDRESSES.without_secrets(" ".join(str(cause).split()))
    message = f"cannot be read ({reason})"
    status = getattr(error, "status", None)
    is_refused = isinstance(error, PermissionError) or status in _REFUSED_STATUSES
    if is_refused or "credential" in message.lower():
        hint = _credentials_hint(path)
    elif "CERTIFICATE_VERIFY_FAILED" in message:
        hint = "if it is your own server, set SSL_CERT_FILE to the certificate of its authority"
    else:
        hint = "check the address and the network, then run the same command again"
    return OSError(EIO, f"{message}; {hint}", str(path))


def _credentials_hint(path: Path) -> str:
    """Return advice for the user when a server refuses access to a file."""
    scheme = _server_scheme(path)
    hint = f"set up credentials for {scheme} (docs/commands.md)"
    if scheme not in _SIGNED_SCHEMES:
        return hint
    if ADDRESSES.full_url(str(path)) != str(path):
        return f"{hint}; the user or query (?…) of its URL is refused, and may have expired"
    return (
        f"{hint}; if its URL had a user, a password or a query (?…), these are not kept: "
        "give the whole URL again, such as mast-tui 'https://…?…'"
    )


def _server_scheme(path: Path) -> str:
    """Return the scheme of the server of a file, the last one of a chain (member::archive)."""
    return str(path).rsplit("::", 1)[-1].partition(":")[0]
