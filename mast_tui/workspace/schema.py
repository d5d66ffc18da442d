"""The tables of a workspace.

Events are only ever added to ``events``. The tables in ``STATE_TABLES`` have the state that follows
from the events: they are written with them and can be rebuilt from them. The other tables are
registers of the things to which events refer.
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
"""The mark in the header of the SQLite file: 'MAST'; on a server it is stored with the version."""

SCHEMA_VERSION: Final = 12
"""``migration`` brings files of earlier versions to this one."""

metadata: Final = MetaData()

# On a server as in SQLite: texts are ordered by their code points, whole numbers have 64 bits.
_TEXT: Final = Text().with_variant(Text(collation="C"), "postgresql")
_WHOLE: Final = Integer().with_variant(BigInteger(), "postgresql")


def _texts(*names: str, key: bool = False, empty: bool = False) -> list[Column[str]]:
    return [Column(name, _TEXT, primary_key=key, nullable=empty) for name in names]


def _wholes(
    *names: str, key: bool = False, empty: bool = False, default: int | None = None
) -> list[Column[int]]:
    default_text = None if default is None else text(str(default))
    return [
        Column(name, _WHOLE, primary_key=key, nullable=empty, server_default=default_text)
        for name in names
    ]


events: Final = Table(
    "events",
    metadata,
    *_texts("id", key=True),
    *_texts("annotator"),
    *_wholes("seq"),
    *_texts("at", "kind"),
    *_texts("trace_id", "taxonomy", empty=True),
    *_wholes("pass_number", empty=True),
    *_texts("payload", "replaces", "action"),
    *_texts("undoes", "redoes", "chain", empty=True),
    # Not unique: two copies of a workspace count on separately, and can be merged all the same.
    Index("events_in_order", "annotator", "seq", "id"),
    Index("events_of_work", "annotator", "trace_id", "taxonomy", "seq"),
)

# What follows from the events

labels: Final = Table(
    "labels",
    metadata,
    *_texts("annotator", "id", key=True),
    *_texts("trace_id", "taxonomy"),
    *_wholes("pass_number"),
    *_texts("mode"),
    *_texts("first_key", "last_key", "quote", empty=True),
    *_wholes("char_start", "char_end", empty=True),
    *_texts("note"),
    Column("confidence", Float, nullable=True),
    *_texts("severity", empty=True),
    *_texts("origin"),
    *_texts("suggestion", empty=True),
    Column("saw_suggestions", Boolean, nullable=False),
    *_texts("created_at"),
    *_texts("evidence_key", "evidence_quote", empty=True),
    *_wholes("evidence_start", "evidence_end", empty=True),
    *_texts("evidence_match", "evidence_named", empty=True),
    Column("decisive", Boolean, nullable=True),
    *_texts("evidence_wording", "remedy", empty=True),
    Index("labels_of_trace", "trace_id", "taxonomy", "annotator", "pass_number"),
)

verdicts: Final = Table(
    "verdicts",
    metadata,
    *_texts("annotator", "trace_id", "taxonomy", key=True),
    *_wholes("pass_number", key=True),
    *_texts("mode", key=True),
    *_texts("value"),
    sqlite_with_rowid=False,
)
"""The verdicts absent and unsure; a mode with labels is present."""

reviews: Final = Table(
    "reviews",
    metadata,
    *_texts("annotator", "trace_id", "taxonomy", key=True),
    *_wholes("pass_number", key=True),
    *_texts("suggestion", key=True),
    *_texts("answer"),
    *_texts("label", empty=True),
    *_texts("reason"),
    sqlite_with_rowid=False,
)

span_notes: Final = Table(
    "span_notes",
    metadata,
    *_texts("annotator", "trace_id", "taxonomy", key=True),
    *_wholes("pass_number", key=True),
    *_texts("span_key", key=True),
    *_texts("text"),
    sqlite_with_rowid=False,
)

passes: Final = Table(
    "passes",
    metadata,
    *_texts("annotator", "trace_id", "taxonomy", key=True),
    *_wholes("number", key=True),
    *_texts("kind", "started_at"),
    *_texts("finished_at", empty=True),
    Column("judge_seen", Boolean, nullable=False),
    *_wholes("spans_read", "spans", empty=True),
    *_texts("revealed_at", empty=True),
    Column("withdrawn", Boolean, nullable=False),
    Column("withheld", Boolean, nullable=False, server_default=false()),
    sqlite_with_rowid=False,
)
"""``withdrawn``: the change that opened the pass was undone, so the pass before is the last one.
``withheld``: a study kept judges' suggestions from being shown in it."""

decisions: Final = Table(
    "decisions",
    metadata,
    *_texts("annotator", "trace_id", "taxonomy", "item", key=True),
    *_texts("decided_at", "document"),
    sqlite_with_rowid=False,
)

judgements: Final = Table(
    "judgements",
    metadata,
    *_texts("annotator", "trace_id", "taxonomy", key=True),
    *_texts("looks_at"),
    *_texts("run", empty=True),
    *_texts("at"),
    sqlite_with_rowid=False,
)

sights: Final = Table(
    "sights",
    metadata,
    *_texts("annotator", key=True),
    Column("blind", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

studies: Final = Table(
    "studies",
    metadata,
    *_texts("annotator", "taxonomy", key=True),
    *_texts("set_at", "document"),
    sqlite_with_rowid=False,
)

guidelines: Final = Table(
    "guidelines",
    metadata,
    *_texts("annotator", "id", key=True),
    *_texts("taxonomy", "written_at", "document"),
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

# Registers

taxonomies: Final = Table(
    "taxonomies",
    metadata,
    *_texts("ref", key=True),
    *_texts("content_hash", "document"),
)

taxonomy_revisions: Final = Table(
    "taxonomy_revisions",
    metadata,
    *_texts("ref", "since", "content_hash", key=True),
    *_texts("document"),
)
"""All texts that a taxonomy has had in this workspace, each with its start. The last one is in
force, and is also in ``taxonomies``. ``since`` is empty if the start was not recorded."""

traces: Final = Table(
    "traces",
    metadata,
    *_texts("id", key=True),
    *_texts("base_id"),
    *_texts("content_hash", empty=True),
    *_wholes("content_bytes", empty=True),
    *_texts("reader", empty=True),
    *_wholes("key_scheme", empty=True),
    Column("native", Boolean, nullable=False),
    *_texts("path", empty=True),
    *_wholes("record", empty=True),
    *_texts("task", "system", "model", "benchmark", empty=True),
    *_texts("outcome"),
    Column("score", Float, nullable=True),
    *_wholes("spans", empty=True),
    *_texts("version", empty=True),
    Column("started", Float, nullable=True),
    *_texts("task_id", empty=True),
    *_wholes("trial", empty=True),
    Index("traces_by_base", "base_id"),
)

span_indices: Final = Table(
    "span_indices",
    metadata,
    *_texts("trace_id", "span_key", key=True),
    *_wholes("span_index", "text_chars", empty=True),
    sqlite_with_rowid=False,
)
"""The index of each span that an event refers to, from when its trace was last read.

A cache, so that overlaps can be found without the file of the trace: the key is what names a span.
``span_index`` is null where the whole trace was read and has no such span. ``text_chars`` is the
length of the span's text, counted where a quote lies in it."""

annotators: Final = Table(
    "annotators",
    metadata,
    *_texts("name", key=True),
    *_texts("kind"),
)

settings: Final = Table("settings", metadata, *_texts("key", key=True), *_texts("value"))

runs: Final = Table(
    "runs",
    metadata,
    *_texts("id", key=True),
    *_texts("judge", "taxonomy", "started_at"),
    *_texts("finished_at", empty=True),
    *_texts("note"),
    *_texts("settings", "form", "ending", empty=True),
    *_wholes("told_requests", "told_in", "told_out", "told_cached", empty=True),
)
"""``told``: the usage of a run of another workspace, without its answers; else null."""

run_traces: Final = Table(
    "run_traces",
    metadata,
    *_texts("run", "trace_id", key=True),
    *_wholes("findings"),
    *_texts("problem", empty=True),
    *_wholes("quotes", "verified", "windows", default=0),
    Column("remarks", _TEXT, nullable=False, server_default=text("'[]'")),
    *_texts("quote_kinds", empty=True),
    sqlite_with_rowid=False,
)

asked: Final = Table(
    "asked",
    metadata,
    *_wholes("id", key=True),
    *_texts("run", "trace_id", "key", "finish", "form"),
    *_wholes("tokens_in", "tokens_out"),
    Column("usable", Boolean, nullable=False),
    Column("counted", Boolean, nullable=False),
    *_texts("at", "answer"),
    *_wholes("tokens_cached", default=0),
    # What is meant for servers alone would have SQLAlchemy import all that it knows of them.
    Index("asked_usable", "key", sqlite_where=text("usable = 1")),
    # It holds all that is summed up, so that no answer is read for it.
    Index("asked_of_run", "run", "tokens_in", "tokens_out", "tokens_cached"),
)
"""The answers of models as they arrive, which stay in this file and are not exported."""

imports: Final = Table(
    "imports",
    metadata,
    *_texts("id", key=True),
    *_texts("at"),
    *_texts("who", empty=True),
    *_texts("format", "files", "asked"),
    *_texts("finished_at", "undo_begun_at", "undone_at", "undone_by", empty=True),
)
"""The imports with events. ``asked`` is the command; the same command continues an interrupted
import."""

imported_events: Final = Table(
    "imported_events",
    metadata,
    *_texts("import", "event", key=True),
    sqlite_with_rowid=False,
)
"""The events of imports that keep their actions of another workspace; the events of any other
import have the import as their action."""
