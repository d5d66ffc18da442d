"""The rows of shards: traces with verdicts, and suggestions; as Parquet, by pyarrow."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from typing import Any, Final, NamedTuple

from mast_tui.labels import Evidence, Finding, Match
from mast_tui.scale.folder import Manifest, ShardFolder, ShardsError, events_file, traces_file
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.model import Outcome, TraceIdentity
from mast_tui.workspace.judgements import suggestion_id
from mast_tui.workspace.records import TraceRecord

PRESENT: Final = 1
ABSENT: Final = 0
UNSURE: Final = -1
"""What stands in the column of a mode; null where the judge gave no verdict."""

BINS: Final = 10
"""The onset of a mode is told as the tenth of the run in which it first shows."""

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
_AS_IT_IS: Final = (
    *("trace_id", "record", "spans", "task", "system", "model", "benchmark"),
    *("score", "version", "started"),
)
"""The columns that hold what a record of a trace has under the same name."""

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
    """The tokens of a request to a model, as the server counted and as we estimated them."""

    counted: int
    estimated: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said of one trace, with all that a workspace wants to know of it.

    ``onsets`` are by slug the indices of the spans with which a mode first shows; ``judged`` are
    the modes on which there is a verdict, None for all that the judge looks at; ``problem`` says
    why the trace could not be judged.
    """

    record: TraceRecord
    findings: tuple[Finding, ...] = ()
    onsets: Mapping[str, int] | None = None
    unsure: tuple[str, ...] = ()
    judged: tuple[str, ...] | None = None
    problem: str | None = None

    @property
    def key(self) -> int:
        """The number by which the trace is told from others: of its id and content."""
        return trace_key(self.record)


def trace_key(record: TraceRecord) -> int:
    """64 bits of the hash of a trace's id and content: of ten million traces two share theirs by
    chance in one of 370,000 sets."""
    content = "" if record.identity is None else record.identity.content_hash
    digest = sha256(f"{record.trace_id}\0{content}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def verdict_column(slug: str) -> str:
    """The column with the verdicts on a mode."""
    return f"mode_{slug}"


def onset_column(slug: str) -> str:
    """The column with the tenths in which a mode first shows."""
    return f"onset_{slug}"


def pyarrow(name: str = "pyarrow") -> Any:
    """A module of pyarrow.

    Raises:
        ShardsError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise ShardsError(
            "shards are Parquet, which needs an extra: pip install 'mast-tui[parquet]'"
        ) from None


def write_shard(
    folder: ShardFolder,
    shard: str,
    judged: Sequence[Judged],
    manifest: Manifest,
    requests: Collection[RequestSize] = (),
) -> None:
    """Write what a judge said of some traces.

    Args:
        folder: Where.
        shard: The shard's name.
        judged: What it said.
        manifest: Which judge, on which modes, of which taxonomy.
        requests: The requests to a model on whose answers the judgements rest.
    """
    arrow, taxonomy = pyarrow(), manifest.taxonomy
    events = [
        _event(one, finding, manifest.judge, taxonomy)
        for one in judged
        for finding in one.findings
        if finding.mode in manifest.looks_at
    ]
    traces = [_trace(one, taxonomy, frozenset(manifest.looks_at)) for one in judged]
    folder.write(events_file(shard), _parquet(arrow, events, _events_schema(arrow)))
    schema = traces_schema(arrow, taxonomy)
    if requests:
        schema = schema.with_metadata({_REQUESTS: json.dumps(sorted(requests))})
    folder.write(traces_file(shard), _parquet(arrow, traces, schema))


def _parquet(arrow: Any, rows: list[dict[str, Any]], schema: Any) -> bytes:
    table = arrow.Table.from_pylist(rows, schema=schema)
    out = BytesIO()
    pyarrow("pyarrow.parquet").write_table(table, out, compression="zstd")
    return out.getvalue()


def traces_schema(arrow: Any, taxonomy: Taxonomy) -> Any:
    """The columns of a shard's traces.

    Args:
        arrow: The module pyarrow.
        taxonomy: The taxonomy of the modes.
    """
    fields = [(name, getattr(arrow, kind)()) for name, kind in _TRACE.items()]
    for mode in taxonomy.modes:
        fields += [(name(mode.slug), arrow.int8()) for name in (verdict_column, onset_column)]
    return arrow.schema(fields)


def _events_schema(arrow: Any) -> Any:
    evidence = [(name, getattr(arrow, kind)()) for name, kind in _EVIDENCE.items()]
    evidence.append(("named", arrow.list_(arrow.string())))
    fields = [(name, getattr(arrow, kind)()) for name, kind in _EVENT.items()]
    return arrow.schema([*fields, ("evidence", arrow.struct(evidence))])


def _trace(judged: Judged, taxonomy: Taxonomy, looks_at: frozenset[str]) -> dict[str, Any]:
    record, onsets = judged.record, judged.onsets or {}
    identity = {} if record.identity is None else record.identity._asdict()
    row: dict[str, Any] = {
        **identity,
        "key": judged.key,
        **{name: getattr(record, name) for name in _AS_IT_IS},
        "path": None if record.path is None else str(record.path),
        "outcome": record.outcome.value,
        "problem": judged.problem,
    }
    if judged.problem is not None:
        return row
    present = {finding.mode for finding in judged.findings}
    for mode in taxonomy.modes:
        if mode.slug not in (looks_at if judged.judged is None else judged.judged):
            continue
        unsure = UNSURE if mode.slug in judged.unsure else ABSENT
        row[verdict_column(mode.slug)] = PRESENT if mode.slug in present else unsure
        if mode.slug in onsets and record.spans:
            row[onset_column(mode.slug)] = min(BINS - 1, onsets[mode.slug] * BINS // record.spans)
    return row


def _event(judged: Judged, finding: Finding, judge: str, taxonomy: Taxonomy) -> dict[str, Any]:
    trace_id = judged.record.trace_id
    row = asdict(finding)
    row["id"] = suggestion_id(judge, trace_id, taxonomy.ref, finding.mode, finding.target)
    return row | {"key": judged.key, "trace_id": trace_id}


def read_requests(folder: ShardFolder, shard: str) -> tuple[RequestSize, ...]:
    """Read which requests to a model a shard rests on.

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
        raise ShardsError(f"{folder.place}: {name} cannot be read: {error}") from None
    recorded = json.loads((schema.metadata or {}).get(_REQUESTS, b"[]"))
    return tuple(RequestSize(*size) for size in recorded)


def read_shard(
    folder: ShardFolder, shard: str, taxonomy: Taxonomy, keys: frozenset[int]
) -> Iterator[Judged]:
    """Read what was said of some of a shard's traces.

    Args:
        folder: Where the shard is.
        shard: Its name.
        taxonomy: That of the manifest.
        keys: Those of the traces that are wanted.

    Raises:
        ShardsError: The shard cannot be read.
    """
    arrow, parquet = pyarrow(), pyarrow("pyarrow.parquet")
    compute = pyarrow("pyarrow.compute")
    slugs = [mode.slug for mode in taxonomy.modes]
    rows: list[list[dict[str, Any]]] = []
    for name in (traces_file(shard), events_file(shard)):
        data = folder.read(name)
        if data is None:
            raise ShardsError(f"{folder.place}: {name} is missing; the same judge writes it anew")
        try:
            table = parquet.read_table(BytesIO(data))
        except arrow.ArrowException as error:
            raise ShardsError(f"{folder.place}: {name} cannot be read: {error}") from None
        wanted = compute.is_in(table["key"], arrow.array(sorted(keys), arrow.uint64()))
        rows.append(table.filter(wanted).to_pylist())
    traces, events = rows
    findings: dict[int, list[Finding]] = {}
    for row in events:
        findings.setdefault(row["key"], []).append(_finding(row))
    for row in traces:
        said = {slug: row[verdict_column(slug)] for slug in slugs}
        yield Judged(
            _record(row),
            tuple(findings.get(row["key"], ())),
            unsure=tuple(slug for slug, value in said.items() if value == UNSURE),
            judged=tuple(slug for slug, value in said.items() if value is not None),
            problem=row["problem"],
        )


def _record(row: Mapping[str, Any]) -> TraceRecord:
    identity = None
    if row["content_hash"] is not None:
        identity = TraceIdentity(**{name: row[name] for name in _IDENTITY})
    return TraceRecord(
        identity=identity,
        path=None if row["path"] is None else trace_path(row["path"]),
        outcome=Outcome(row["outcome"]),
        **{name: row[name] for name in _AS_IT_IS},
    )


def _finding(row: Mapping[str, Any]) -> Finding:
    told, evidence = row["evidence"], None
    if told is not None:
        match, named = told["match"], told["named"]
        told["match"] = None if match is None else Match(match)
        told["named"] = None if named is None else tuple(named)
        evidence = Evidence(**told)
    own = {name: row[name] for name in _EVENT if name not in ("id", "key", "trace_id")}
    return Finding(**own, evidence=evidence)
