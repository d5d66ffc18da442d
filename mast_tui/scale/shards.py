"""Shards: their folder, the manifest that lists them, and their Parquet tables.

A folder is on this machine or on object storage. Each shard has two files: ``traces-NAME.parquet``
with a row for each trace and its verdicts, and ``events-NAME.parquet`` with a row for each
suggestion. The traces are written last, so that a shard with that file is done. The name of a shard
depends only on its files and the judge, so writing it twice gives the same shard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from msgspec import structs

from mast_tui.errors import MastError
from mast_tui.grouping import values_by_key
from mast_tui.judges.runner import JudgedTrace
from mast_tui.labels import Evidence, Finding, Judgement, Match
from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.io.url_secrets import ADDRESSES
from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace.judgements import suggestion_id
from mast_tui.workspace.records import SpanIndex, TraceRecord

MANIFEST: Final = "manifest.json"
FORMAT: Final = "mast-tui-shards@1"


class ShardsError(MastError):
    """An error in a folder of shards, or in its use; the message says what to do."""


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


_ASIDE: Final = "aside-"
"""The prefix of the files of shards that are not part of the last run."""


def _shard_files(manifest: Manifest) -> frozenset[str]:
    """Return the names of all files of the manifest's shards."""
    return frozenset(
        name for shard in manifest.shards for name in (traces_file(shard), events_file(shard))
    )


class ShardFolder:
    """A folder of shards by its path or URL; several processes may write different files to it."""

    def __init__(self, address: str) -> None:
        """Open a folder, which need not exist.

        Args:
            address: A path, or a URL that fsspec supports, such as ``s3://bucket/judged``.

        Raises:
            ShardsError: fsspec, or the package that it needs for the URL, is not installed.
        """
        self.address = ADDRESSES.remember(address)
        self._fsspec: Any = None
        self._root = address
        if "://" in address:
            try:
                self._fsspec, self._root = import_module("fsspec").core.url_to_fs(address)
            except ImportError as error:
                raise ShardsError(
                    f"{self.address}: URLs need more packages ({error}); install them with: "
                    "pip install 'mast-tui[remote]'"
                ) from None
            except ValueError as error:
                reason = ADDRESSES.without_secrets(str(error))
                raise ShardsError(f"{self.address}: {reason}") from None

    def __reduce__(self) -> tuple[type[ShardFolder], tuple[str]]:
        # The receiving process may have another working folder.
        if self._fsspec is None:
            return ShardFolder, (str(Path(self._root).absolute()),)
        return ShardFolder, (ADDRESSES.full_url(self.address),)

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Turn a failed access in the block to an error without secrets of the address."""
        try:
            yield
        except OSError as error:
            reason = ADDRESSES.without_secrets(error.strerror or str(error) or type(error).__name__)
            raise ShardsError(
                f"{self.address}: {reason}; fix this, then run the same command to continue"
            ) from error

    def names(self) -> frozenset[str]:
        """Return the names of the files in the folder; empty if it does not exist."""
        with self._readable_errors(), suppress(FileNotFoundError):
            if self._fsspec is None:
                return frozenset(path.name for path in Path(self._root).iterdir())
            self._fsspec.invalidate_cache()
            paths = self._fsspec.ls(self._root, detail=False)
            return frozenset(path.rsplit("/", 1)[-1] for path in paths)
        return frozenset()

    def done(self, manifest: Manifest) -> list[str]:
        """Return the names of the written shards, in the order of the manifest."""
        files = self.names()
        return [name for name in manifest.shards if traces_file(name) in files]

    def read(self, name: str) -> bytes | None:
        """Read a file; return None if it does not exist."""
        with self._readable_errors(), suppress(FileNotFoundError, NotADirectoryError):
            if self._fsspec is None:
                return Path(self.path(name)).read_bytes()
            content: bytes = self._fsspec.cat_file(self.path(name))
            return content
        return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file so that it exists as a whole or not at all.

        Args:
            name: The name of the file.
            data: The content.

        Raises:
            ShardsError: The file cannot be written.
        """
        with self._readable_errors():
            if self._fsspec is not None:
                self._fsspec.pipe_file(self.path(name), data)
                return
            path = Path(self.path(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.{uuid4().hex}")
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)

    def withdraw(self, shard: str) -> None:
        """Remove the traces of a shard, so that it counts as not written."""
        path = self.path(traces_file(shard))
        with self._readable_errors():
            if self._fsspec is None:
                Path(path).unlink(missing_ok=True)
            else:
                self._fsspec.rm_file(path)

    def set_aside_others(self, manifest: Manifest) -> None:
        """Rename the shards that the manifest does not list, once all others are written.

        A query over the files of the folder would count their traces again.
        """
        if len(self.done(manifest)) < len(manifest.shards):
            return
        for name in self.names() - _shard_files(manifest):
            if name.endswith(".parquet") and name.startswith(("traces-", "events-")):
                self._rename(name, _ASIDE + name)

    def _take_back(self, manifest: Manifest) -> None:
        """Use shards of the manifest that an earlier run has set aside."""
        names = self.names()
        for name in _shard_files(manifest) - names:
            if _ASIDE + name in names:
                self._rename(_ASIDE + name, name)

    def _rename(self, name: str, new_name: str) -> None:
        """Rename a file, unless another run has done so."""
        with self._readable_errors(), suppress(FileNotFoundError):
            if self._fsspec is None:
                Path(self.path(name)).rename(self.path(new_name))
            else:
                self._fsspec.mv(self.path(name), self.path(new_name))

    def path(self, name: str) -> str:
        """Return the path of a file within ``filesystem``."""
        return f"{self._root.rstrip('/')}/{name}"

    def filesystem(self) -> Any:
        """Return the file system of a URL for pyarrow; None for local files."""
        if self._fsspec is None:
            return None
        module = import_module("pyarrow.fs")
        return module.PyFileSystem(module.FSSpecHandler(self._fsspec))

    def manifest(self) -> Manifest:
        """Read the manifest.

        Raises:
            ShardsError: The folder has no shards, or those of another version.
        """
        content = self.read(MANIFEST)
        if content is None:
            raise ShardsError(
                f"{self.address}: no shards here ({MANIFEST} is missing); write them with "
                "'mast-tui judge PATH … --judge rules --out FOLDER'"
            )
        try:
            document: Mapping[str, Any] = json.loads(content)
            if document["format"] != FORMAT:
                raise ShardsError(
                    f"{self.address}: the shards' format is {document['format']}; expected "
                    f"{FORMAT}; write them again into another folder"
                )
            return Manifest(
                document["judge"],
                from_dict(document["taxonomy"], self.address),
                tuple(document["looks_at"]),
                tuple(document["shards"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ShardsError(
                f"{self.address}: {MANIFEST} is not a manifest of shards ({error})"
            ) from None

    def begin(self, manifest: Manifest) -> None:
        """Write the manifest of the shards that will be written.

        Raises:
            ShardsError: The folder has the shards of another judge or taxonomy, or other files.
        """
        names = self.names()
        if MANIFEST in names:
            stored = self.manifest()
            if stored.judge != manifest.judge:
                raise self._other_owner_error(f"judge {stored.judge}")
            if stored.taxonomy.identity != manifest.taxonomy.identity:
                raise self._other_owner_error(f"taxonomy {stored.taxonomy.ref}")
            if stored == manifest:
                return
        elif names:
            raise ShardsError(
                f"{self.address}: contains other files, such as {min(names)}; give an empty folder"
            )
        self._take_back(manifest)
        document = {
            "format": FORMAT,
            "judge": manifest.judge,
            "taxonomy": to_dict(manifest.taxonomy),
            "looks_at": manifest.looks_at,
            "shards": manifest.shards,
        }
        self.write(MANIFEST, json.dumps(document, indent=1).encode())

    def _other_owner_error(self, owner: str) -> ShardsError:
        return ShardsError(f"{self.address}: contains the shards of {owner}; give another folder")


PRESENT: Final = 1
ABSENT: Final = 0
UNSURE: Final = -1
"""The values in the column of a mode; null without a verdict."""

BINS: Final = 10
"""The number of bins for the onset of a mode, the part of the run in which it first appears."""

_TRACE: Final = {
    "key": "uint64",
    "trace_id": "string",
    "content_hash": "string",
    "content_bytes": "int64",
    "reader": "string",
    "key_scheme": "int32",
    "native": "bool_",
    "path": "string",
    "record": "int64",
    "spans": "int64",
    "task": "string",
    "system": "string",
    "model": "string",
    "benchmark": "string",
    "outcome": "string",
    "score": "float64",
    "version": "string",
    "started": "float64",
    "problem": "string",
}
_RECORD_FIELDS: Final = (
    *("trace_id", "record", "spans", "task", "system", "model", "benchmark"),
    *("score", "version", "started"),
)
"""The columns with the name and value of a field of the trace's record."""

_IDENTITY: Final = TraceIdentity._fields
_EVENT: Final = {
    "id": "string",
    "key": "uint64",
    "trace_id": "string",
    "mode": "string",
    "first": "string",
    "last": "string",
    "rationale": "string",
    "confidence": "float64",
    "decisive": "bool_",
    "remedy": "string",
}
_EVIDENCE: Final = {
    "key": "string",
    "quote": "string",
    "char_start": "int64",
    "char_end": "int64",
    "match": "string",
    "wording": "string",
}


_REQUESTS: Final = b"mast_tui.requests"
"""The key of the requests in the metadata of a shard's traces."""


class RequestSize(NamedTuple):
    """The tokens of a request to a model, by the server's count and by our estimate."""

    counted: int
    estimated: int


def trace_key(record: TraceRecord) -> int:
    """Return 64 bits of the hash of a trace's id and content.

    The chance that any two of ten million traces have the same key is one in 370,000.
    """
    content = "" if record.identity is None else record.identity.content_hash
    digest = sha256(f"{record.trace_id}\0{content}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def verdict_column(slug: str) -> str:
    """Return the name of the column with the verdicts on a mode."""
    return f"mode_{slug}"


def onset_column(slug: str) -> str:
    """Return the name of the column with the onset bins of a mode."""
    return f"onset_{slug}"


def pyarrow(name: str = "pyarrow") -> Any:
    """Import a module of pyarrow.

    Raises:
        ShardsError: pyarrow is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise ShardsError(
            "shards need Parquet; install it with: pip install 'mast-tui[parquet]'"
        ) from None


def write_shard(
    folder: ShardFolder,
    shard: str,
    traces: Sequence[JudgedTrace],
    manifest: Manifest,
    requests: Collection[RequestSize] = (),
) -> None:
    """Write the files of a shard.

    Args:
        folder: The folder of the shard.
        shard: The name of the shard.
        traces: The judged traces.
        manifest: The manifest, with the judge, its modes and the taxonomy.
        requests: The sizes of the requests to a model for these judgements.

    Raises:
        ShardsError: pyarrow is not installed, or a file cannot be written.
    """
    arrow = pyarrow()
    taxonomy = manifest.taxonomy
    looks_at = frozenset(manifest.looks_at)
    event_rows = [
        _event_row(trace, finding, manifest.judge, taxonomy)
        for trace in traces
        if trace.judgement is not None
        for finding in trace.judgement.findings
        if finding.mode in looks_at
    ]
    trace_rows = [_trace_row(trace, taxonomy, looks_at) for trace in traces]
    folder.write(events_file(shard), _parquet_bytes(arrow, event_rows, _events_schema(arrow)))
    schema = traces_schema(arrow, taxonomy)
    if requests:
        schema = schema.with_metadata({_REQUESTS: json.dumps(sorted(requests))})
    folder.write(traces_file(shard), _parquet_bytes(arrow, trace_rows, schema))


def _parquet_bytes(arrow: Any, rows: list[dict[str, Any]], schema: Any) -> bytes:
    """Return rows as the content of a Parquet file."""
    table = arrow.Table.from_pylist(rows, schema=schema)
    out = BytesIO()
    pyarrow("pyarrow.parquet").write_table(table, out, compression="zstd")
    return out.getvalue()


def traces_schema(arrow: Any, taxonomy: Taxonomy) -> Any:
    """Return the schema of the traces of a shard.

    Args:
        arrow: The module pyarrow.
        taxonomy: The taxonomy of the modes.
    """
    fields = [(name, getattr(arrow, kind)()) for name, kind in _TRACE.items()]
    for mode in taxonomy.modes:
        fields.append((verdict_column(mode.slug), arrow.int8()))
        fields.append((onset_column(mode.slug), arrow.int8()))
    return arrow.schema(fields)


def _events_schema(arrow: Any) -> Any:
    evidence = [(name, getattr(arrow, kind)()) for name, kind in _EVIDENCE.items()]
    evidence.append(("named", arrow.list_(arrow.string())))
    fields = [(name, getattr(arrow, kind)()) for name, kind in _EVENT.items()]
    return arrow.schema([*fields, ("evidence", arrow.struct(evidence))])


def _trace_row(trace: JudgedTrace, taxonomy: Taxonomy, looks_at: frozenset[str]) -> dict[str, Any]:
    """Return the row of a trace: its record, and a verdict and onset for each judged mode."""
    record = trace.record
    judgement = trace.judgement
    identity = {} if record.identity is None else record.identity._asdict()
    row: dict[str, Any] = {
        **identity,
        "key": trace_key(record),
        **{name: getattr(record, name) for name in _RECORD_FIELDS},
        "path": str(trace.path),
        "outcome": record.outcome.value,
        "problem": trace.problem,
    }
    if judgement is None:
        return row
    onsets = _onsets(judgement.findings, trace.indices)
    judged_modes = looks_at if judgement.judged_modes is None else judgement.judged_modes
    present_modes = {finding.mode for finding in judgement.findings}
    for mode in taxonomy.modes:
        if mode.slug not in judged_modes:
            continue
        absent_or_unsure = UNSURE if mode.slug in judgement.unsure else ABSENT
        row[verdict_column(mode.slug)] = PRESENT if mode.slug in present_modes else absent_or_unsure
        # The onset is the number of the first of ``BINS`` equal parts of the trace with the mode.
        if mode.slug in onsets and record.spans:
            row[onset_column(mode.slug)] = min(BINS - 1, onsets[mode.slug] * BINS // record.spans)
    return row


def _onsets(findings: Iterable[Finding], indices: Mapping[str, SpanIndex]) -> dict[str, int]:
    """Return by mode the index of the first span of its earliest finding, if known."""
    onsets: dict[str, int] = {}
    for finding in findings:
        span = indices.get(finding.first or "")
        if span is not None and span.index is not None:
            onsets[finding.mode] = min(span.index, onsets.get(finding.mode, span.index))
    return onsets


def _event_row(
    trace: JudgedTrace, finding: Finding, judge: str, taxonomy: Taxonomy
) -> dict[str, Any]:
    """Return the row of a finding, with its evidence and the id of the suggestion."""
    trace_id = trace.record.trace_id
    row = structs.asdict(finding)
    row["evidence"] = None if finding.evidence is None else structs.asdict(finding.evidence)
    row["id"] = suggestion_id(judge, trace_id, taxonomy.ref, finding.mode, finding.target)
    return row | {"key": trace_key(trace.record), "trace_id": trace_id}


def read_requests(folder: ShardFolder, shard: str) -> tuple[RequestSize, ...]:
    """Read the sizes of the requests to a model for the judgements of a shard.

    Args:
        folder: The folder of the shard.
        shard: The shard's name.

    Raises:
        ShardsError: The shard cannot be read.
    """
    arrow = pyarrow()
    name = traces_file(shard)
    try:
        schema = pyarrow("pyarrow.parquet").read_schema(
            folder.path(name), filesystem=folder.filesystem()
        )
    except (arrow.ArrowException, OSError) as error:
        raise ShardsError(f"{folder.address}: {name} cannot be read: {error}") from None
    recorded = json.loads((schema.metadata or {}).get(_REQUESTS, b"[]"))
    return tuple(RequestSize(*size) for size in recorded)


def read_table(folder: ShardFolder, name: str, columns: Sequence[str] | None = None) -> Any:
    """Read the table in a file of a shard.

    Args:
        folder: The folder of the shard.
        name: The name of the file.
        columns: The columns to read; None for all.

    Raises:
        ShardsError: The file is missing or cannot be read.
    """
    arrow = pyarrow()
    content = folder.read(name)
    if content is None:
        raise ShardsError(
            f"{folder.address}: {name} is missing; run the same judge to write it again"
        )
    try:
        return pyarrow("pyarrow.parquet").read_table(BytesIO(content), columns=columns)
    except arrow.ArrowException as error:
        raise ShardsError(f"{folder.address}: {name} cannot be read: {error}") from None


def read_shard(
    folder: ShardFolder, shard: str, taxonomy: Taxonomy, keys: Collection[int]
) -> Iterator[JudgedTrace]:
    """Read some traces of a shard.

    Args:
        folder: The folder of the shard.
        shard: The name of the shard.
        taxonomy: The taxonomy of the manifest.
        keys: The keys of the traces to read.

    Raises:
        ShardsError: The shard cannot be read.
    """
    wanted_keys = pyarrow().array(sorted(keys), "uint64")
    compute = pyarrow("pyarrow.compute")
    slugs = [mode.slug for mode in taxonomy.modes]
    rows: list[list[dict[str, Any]]] = []
    for name in (traces_file(shard), events_file(shard)):
        table = read_table(folder, name)
        rows.append(table.filter(compute.is_in(table["key"], wanted_keys)).to_pylist())
    traces, events = rows
    findings = values_by_key((row["key"], _finding_of_row(row)) for row in events)
    for row in traces:
        verdicts = {slug: row[verdict_column(slug)] for slug in slugs}
        judgement = Judgement(
            tuple(findings.get(row["key"], ())),
            unsure=tuple(slug for slug, value in verdicts.items() if value == UNSURE),
            judged_modes=tuple(slug for slug, value in verdicts.items() if value is not None),
        )
        yield JudgedTrace(_record_of_row(row), judgement, row["problem"])


def _record_of_row(row: Mapping[str, Any]) -> TraceRecord:
    """Return the record of a trace from its row."""
    identity = None
    if row["content_hash"] is not None:
        identity = TraceIdentity(**{name: row[name] for name in _IDENTITY})
    return TraceRecord(
        identity=identity,
        path=None if row["path"] is None else trace_path(row["path"]),
        outcome=Outcome(row["outcome"]),
        **{name: row[name] for name in _RECORD_FIELDS},
    )


def _finding_of_row(row: Mapping[str, Any]) -> Finding:
    """Return the finding, with its evidence, of a row with the columns of ``_EVENT``."""
    evidence = None
    if row["evidence"] is not None:
        values = dict(row["evidence"])
        match = None if values["match"] is None else Match(values["match"])
        named_spans = values.pop("named")  # the spans that the judge wrongly named
        misnamed_spans = None if named_spans is None else tuple(named_spans)
        evidence = Evidence(**values | {"match": match}, misnamed_spans=misnamed_spans)
    fields = {name: row[name] for name in _EVENT if name not in ("id", "key", "trace_id")}
    return Finding(**fields, evidence=evidence)
