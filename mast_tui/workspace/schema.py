"""The tables of a workspace.

``events`` holds all events; rows are only added. ``STATE_TABLES`` hold the state that follows from
the events and can be rebuilt from them. The other tables are registers of the objects that events
refer to.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    false,
    text,
)

APPLICATION_ID: Final = 0x4D415354
"""The id in the header of the SQLite file: 'MAST'."""

SCHEMA_VERSION: Final = 12
"""The version of the tables; ``migration`` updates files of earlier versions."""

metadata: Final = MetaData()

# As in SQLite, texts are sorted by code points and whole numbers have 64 bits on a server.
_TEXT: Final = Text().with_variant(Text(collation="C"), "postgresql")
_WHOLE: Final = Integer().with_variant(BigInteger(), "postgresql")


def _text_columns(*names: str, key: bool = False, empty: bool = False) -> list[Column[str]]:
    return [Column(name, _TEXT, primary_key=key, nullable=empty) for name in names]


def _whole_number_columns(
    *names: str, key: bool = False, empty: bool = False, default: int | None = None
) -> list[Column[int]]:
    """Make columns of whole numbers; with ``empty`` they may be NULL."""
    default_text = None if default is None else text(str(default))
    return [
        Column(name, _WHOLE, primary_key=key, nullable=empty, server_default=default_text)
        for name in names
    ]


events: Final = Table(
    "events",
    metadata,
    *_text_columns("id", key=True),
    *_text_columns("annotator"),
    *_whole_number_columns("seq"),
    *_text_columns("at", "kind"),
    *_text_columns("trace_id", "taxonomy", empty=True),
    *_whole_number_columns("pass_number", empty=True),
    *_text_columns("payload", "replaces", "action"),
    *_text_columns("undoes", "redoes", "chain", empty=True),
    # Not unique: two copies of a workspace use the same numbers, and can still be merged.
    Index("events_in_order", "annotator", "seq", "id"),
    Index("events_of_work", "annotator", "trace_id", "taxonomy", "seq"),
)


labels: Final = Table(
    "labels",
    metadata,
    *_text_columns("annotator", "id", key=True),
    *_text_columns("trace_id", "taxonomy"),
    *_whole_number_columns("pass_number"),
    *_text_columns("mode"),
    *_text_columns("first_key", "last_key", "quote", empty=True),
    *_whole_number_columns("char_start", "char_end", empty=True),
    *_text_columns("note"),
    Column("confidence", Float, nullable=True),
    *_text_columns("severity", empty=True),
    *_text_columns("origin"),
    *_text_columns("suggestion", empty=True),
    Column("saw_suggestions", Boolean, nullable=False),
    *_text_columns("created_at"),
    *_text_columns("evidence_key", "evidence_quote", empty=True),
    *_whole_number_columns("evidence_start", "evidence_end", empty=True),
    *_text_columns("evidence_match", "evidence_named", empty=True),
    Column("decisive", Boolean, nullable=True),
    *_text_columns("evidence_wording", "remedy", empty=True),
    Index("labels_of_trace", "trace_id", "taxonomy", "annotator", "pass_number"),
)

verdicts: Final = Table(
    "verdicts",
    metadata,
    *_text_columns("annotator", "trace_id", "taxonomy", key=True),
    *_whole_number_columns("pass_number", key=True),
    *_text_columns("mode", key=True),
    *_text_columns("value"),
    sqlite_with_rowid=False,
)
"""The verdicts absent and unsure; a mode with labels is present."""

reviews: Final = Table(
    "reviews",
    metadata,
    *_text_columns("annotator", "trace_id", "taxonomy", key=True),
    *_whole_number_columns("pass_number", key=True),
    *_text_columns("suggestion", key=True),
    *_text_columns("answer"),
    *_text_columns("label", empty=True),
    *_text_columns("reason"),
    sqlite_with_rowid=False,
)

span_notes: Final = Table(
    "span_notes",
    metadata,
    *_text_columns("annotator", "trace_id", "taxonomy", key=True),
    *_whole_number_columns("pass_number", key=True),
    *_text_columns("span_key", key=True),
    *_text_columns("text"),
    sqlite_with_rowid=False,
)

passes: Final = Table(
    "passes",
    metadata,
    *_text_columns("annotator", "trace_id", "taxonomy", key=True),
    *_whole_number_columns("number", key=True),
    *_text_columns("kind", "started_at"),
    *_text_columns("finished_at", empty=True),
    Column("judge_seen", Boolean, nullable=False),
    *_whole_number_columns("spans_read", "spans", empty=True),
    *_text_columns("revealed_at", empty=True),
    Column("withdrawn", Boolean, nullable=False),
    Column("withheld", Boolean, nullable=False, server_default=false()),
    sqlite_with_rowid=False,
)
"""The passes.

``withdrawn``: the change that opened the pass was undone. ``withheld``: a study hid judges'
suggestions in the pass.
"""

decisions: Final = Table(
    "decisions",
    metadata,
    *_text_columns("annotator", "trace_id", "taxonomy", "item", key=True),
    *_text_columns("decided_at", "document"),
    sqlite_with_rowid=False,
)

judgements: Final = Table(
    "judgements",
    metadata,
    *_text_columns("annotator", "trace_id", "taxonomy", key=True),
    *_text_columns("looks_at"),
    *_text_columns("run", empty=True),
    *_text_columns("at"),
    sqlite_with_rowid=False,
)

sights: Final = Table(
    "sights",
    metadata,
    *_text_columns("annotator", key=True),
    Column("blind", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

studies: Final = Table(
    "studies",
    metadata,
    *_text_columns("annotator", "taxonomy", key=True),
    *_text_columns("set_at", "document"),
    sqlite_with_rowid=False,
)

guidelines: Final = Table(
    "guidelines",
    metadata,
    *_text_columns("annotator", "id", key=True),
    *_text_columns("taxonomy", "written_at", "document"),
    sqlite_with_rowid=False,
)

STATE_TABLES: Final = (
    labels,
    verdicts,
    reviews,
    span_notes,
    passes,
    decisions,
    judgements,
    sights,
    studies,
    guidelines,
)


taxonomies: Final = Table(
    "taxonomies",
    metadata,
    *_text_columns("ref", key=True),
    *_text_columns("content_hash", "document"),
)

taxonomy_revisions: Final = Table(
    "taxonomy_revisions",
    metadata,
    *_text_columns("ref", "since", "content_hash", key=True),
    *_text_columns("document"),
)
"""Each text of a taxonomy with the time from which it is in force.

The last one is also in ``taxonomies``. ``since`` is empty if the time is unknown.
"""

traces: Final = Table(
    "traces",
    metadata,
    *_text_columns("id", key=True),
    *_text_columns("base_id"),
    *_text_columns("content_hash", empty=True),
    *_whole_number_columns("content_bytes", empty=True),
    *_text_columns("reader", empty=True),
    *_whole_number_columns("key_scheme", empty=True),
    Column("native", Boolean, nullable=False),
    *_text_columns("path", empty=True),
    *_whole_number_columns("record", empty=True),
    *_text_columns("task", "system", "model", "benchmark", empty=True),
    *_text_columns("outcome"),
    Column("score", Float, nullable=True),
    *_whole_number_columns("spans", empty=True),
    *_text_columns("version", empty=True),
    Column("started", Float, nullable=True),
    *_text_columns("task_id", empty=True),
    *_whole_number_columns("trial", empty=True),
    Index("traces_by_base", "base_id"),
)

span_indices: Final = Table(
    "span_indices",
    metadata,
    *_text_columns("trace_id", "span_key", key=True),
    *_whole_number_columns("span_index", "text_chars", empty=True),
    sqlite_with_rowid=False,
)
"""The index of each span in an event, as of the last reading of its trace.

It is a cache, so that overlaps can be found without the file of the trace. ``span_index`` is null
if the whole trace was read and has no such span. ``text_chars`` is the length of the span's text,
counted if a quote is in the span.
"""

annotators: Final = Table(
    "annotators",
    metadata,
    *_text_columns("name", key=True),
    *_text_columns("kind"),
)

settings: Final = Table(
    "settings", metadata, *_text_columns("key", key=True), *_text_columns("value")
)

runs: Final = Table(
    "runs",
    metadata,
    *_text_columns("id", key=True),
    *_text_columns("judge", "taxonomy", "started_at"),
    *_text_columns("finished_at", empty=True),
    *_text_columns("note"),
    *_text_columns("settings", "form", "ending", empty=True),
    *_whole_number_columns("told_requests", "told_in", "told_out", "told_cached", empty=True),
)
"""``told``: the reported usage of a run in another workspace; null for a run in this one."""

run_traces: Final = Table(
    "run_traces",
    metadata,
    *_text_columns("run", "trace_id", key=True),
    *_whole_number_columns("findings"),
    *_text_columns("problem", empty=True),
    *_whole_number_columns("quotes", "verified", "windows", default=0),
    Column("remarks", _TEXT, nullable=False, server_default=text("'[]'")),
    *_text_columns("quote_kinds", empty=True),
    sqlite_with_rowid=False,
)

asked: Final = Table(
    "asked",
    metadata,
    *_whole_number_columns("id", key=True),
    *_text_columns("run", "trace_id", "key", "finish", "form"),
    *_whole_number_columns("tokens_in", "tokens_out"),
    Column("usable", Boolean, nullable=False),
    Column("counted", Boolean, nullable=False),
    *_text_columns("at", "answer"),
    *_whole_number_columns("tokens_cached", default=0),
    # Options for servers only would make SQLAlchemy import its modules for servers.
    Index("asked_usable", "key", sqlite_where=text("usable = 1")),
    # The index has all summed columns, so that no answer need be read.
    Index("asked_of_run", "run", "tokens_in", "tokens_out", "tokens_cached"),
)
"""The answers of models, which are not exported."""

imports: Final = Table(
    "imports",
    metadata,
    *_text_columns("id", key=True),
    *_text_columns("at"),
    *_text_columns("who", empty=True),
    *_text_columns("format", "files", "asked"),
    *_text_columns("finished_at", "undo_begun_at", "undone_at", "undone_by", empty=True),
)
"""Each import that has added events.

``asked`` is the command as a text; the same text continues an unfinished import.
"""

imported_events: Final = Table(
    "imported_events",
    metadata,
    *_text_columns("import", "event", key=True),
    sqlite_with_rowid=False,
)
"""The events of imports that keep the actions of the original events.

The events of other imports have the import as their action.
"""
