"""The tables of a workspace.

``events`` holds what happened and is only ever added to. The tables in ``STATE_TABLES`` hold
what follows from it: they are written with the events and can be made anew from them. The
others are registers of what events speak of.
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
"""In the header of the SQLite file: 'MAST'; on a server it stands beside the version."""

SCHEMA_VERSION: Final = 8
"""``migration`` brings files of earlier versions to this one."""

metadata: Final = MetaData()

# On a server as in SQLite: texts are ordered by their code points, whole numbers have 64 bits.
_TEXT: Final = Text().with_variant(Text(collation="C"), "postgresql")
_WHOLE: Final = Integer().with_variant(BigInteger(), "postgresql")


def _text(name: str, *, key: bool = False, empty: bool = False) -> Column[str]:
    return Column(name, _TEXT, primary_key=key, nullable=empty)


def _whole(
    name: str, *, key: bool = False, empty: bool = False, default: int | None = None
) -> Column[int]:
    server_default = None if default is None else text(str(default))
    return Column(name, _WHOLE, primary_key=key, nullable=empty, server_default=server_default)


events: Final = Table(
    "events",
    metadata,
    _text("id", key=True),
    _text("annotator"),
    _whole("seq"),
    _text("at"),
    _text("kind"),
    _text("trace_id", empty=True),
    _text("taxonomy", empty=True),
    _whole("pass_number", empty=True),
    _text("payload"),
    _text("replaces"),
    _text("action"),
    _text("undoes", empty=True),
    _text("redoes", empty=True),
    _text("chain", empty=True),
    # Not unique: two copies of a workspace count on separately, and can be merged all the same.
    Index("events_in_order", "annotator", "seq", "id"),
    Index("events_of_work", "annotator", "trace_id", "taxonomy", "seq"),
)

# What follows from the events

labels: Final = Table(
    "labels",
    metadata,
    _text("annotator", key=True),
    _text("id", key=True),
    _text("trace_id"),
    _text("taxonomy"),
    _whole("pass_number"),
    _text("mode"),
    _text("first_key", empty=True),
    _text("last_key", empty=True),
    _text("quote", empty=True),
    _whole("char_start", empty=True),
    _whole("char_end", empty=True),
    _text("note"),
    Column("confidence", Float, nullable=True),
    _text("severity", empty=True),
    _text("origin"),
    _text("suggestion", empty=True),
    Column("saw_suggestions", Boolean, nullable=False),
    _text("created_at"),
    _text("evidence_key", empty=True),
    _text("evidence_quote", empty=True),
    _whole("evidence_start", empty=True),
    _whole("evidence_end", empty=True),
    _text("evidence_match", empty=True),
    _text("evidence_named", empty=True),
    Column("decisive", Boolean, nullable=True),
    _text("evidence_wording", empty=True),
    _text("remedy", empty=True),
    Index("labels_of_trace", "trace_id", "taxonomy", "annotator", "pass_number"),
)

verdicts: Final = Table(
    "verdicts",
    metadata,
    _text("annotator", key=True),
    _text("trace_id", key=True),
    _text("taxonomy", key=True),
    _whole("pass_number", key=True),
    _text("mode", key=True),
    _text("value"),
    sqlite_with_rowid=False,
)
"""Absent and unsure only: a mode with labels is present by itself."""

reviews: Final = Table(
    "reviews",
    metadata,
    _text("annotator", key=True),
    _text("trace_id", key=True),
    _text("taxonomy", key=True),
    _whole("pass_number", key=True),
    _text("suggestion", key=True),
    _text("answer"),
    _text("label", empty=True),
    _text("reason"),
    sqlite_with_rowid=False,
)

span_notes: Final = Table(
    "span_notes",
    metadata,
    _text("annotator", key=True),
    _text("trace_id", key=True),
    _text("taxonomy", key=True),
    _whole("pass_number", key=True),
    _text("span_key", key=True),
    _text("text"),
    sqlite_with_rowid=False,
)

passes: Final = Table(
    "passes",
    metadata,
    _text("annotator", key=True),
    _text("trace_id", key=True),
    _text("taxonomy", key=True),
    _whole("number", key=True),
    _text("kind"),
    _text("started_at"),
    _text("finished_at", empty=True),
    Column("judge_seen", Boolean, nullable=False),
    _whole("spans_read", empty=True),
    _whole("spans", empty=True),
    _text("revealed_at", empty=True),
    Column("withdrawn", Boolean, nullable=False),
    Column("withheld", Boolean, nullable=False, server_default=false()),
    sqlite_with_rowid=False,
)
"""``withdrawn``: opened by a change that was undone; the pass before it is the last one again.
``withheld``: a study kept judges' suggestions from being shown in it."""

decisions: Final = Table(
    "decisions",
    metadata,
    _text("annotator", key=True),
    _text("trace_id", key=True),
    _text("taxonomy", key=True),
    _text("item", key=True),
    _text("decided_at"),
    _text("document"),
    sqlite_with_rowid=False,
)

judgements: Final = Table(
    "judgements",
    metadata,
    _text("annotator", key=True),
    _text("trace_id", key=True),
    _text("taxonomy", key=True),
    _text("looks_at"),
    _text("run", empty=True),
    _text("at"),
    sqlite_with_rowid=False,
)

sights: Final = Table(
    "sights",
    metadata,
    _text("annotator", key=True),
    Column("blind", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

studies: Final = Table(
    "studies",
    metadata,
    _text("annotator", key=True),
    _text("taxonomy", key=True),
    _text("set_at"),
    _text("document"),
    sqlite_with_rowid=False,
)

guidelines: Final = Table(
    "guidelines",
    metadata,
    _text("annotator", key=True),
    _text("id", key=True),
    _text("taxonomy"),
    _text("written_at"),
    _text("document"),
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
    _text("ref", key=True),
    _text("content_hash"),
    _text("document"),
)

taxonomy_revisions: Final = Table(
    "taxonomy_revisions",
    metadata,
    _text("ref", key=True),
    _text("since", key=True),
    _text("content_hash", key=True),
    _text("document"),
)
"""Every text that a taxonomy has had here, with the time from which on: the last one holds, and
stands in ``taxonomies``. ``since`` is empty where nobody noted it."""

traces: Final = Table(
    "traces",
    metadata,
    _text("id", key=True),
    _text("base_id"),
    _text("content_hash", empty=True),
    _whole("content_bytes", empty=True),
    _text("reader", empty=True),
    _whole("key_scheme", empty=True),
    Column("native", Boolean, nullable=False),
    _text("path", empty=True),
    _whole("record", empty=True),
    _text("task", empty=True),
    _text("system", empty=True),
    _text("model", empty=True),
    _text("benchmark", empty=True),
    _text("outcome"),
    Column("score", Float, nullable=True),
    _whole("spans", empty=True),
    _text("version", empty=True),
    Column("started", Float, nullable=True),
    Index("traces_by_base", "base_id"),
)

annotators: Final = Table(
    "annotators",
    metadata,
    _text("name", key=True),
    _text("kind"),
)

settings: Final = Table("settings", metadata, _text("key", key=True), _text("value"))

runs: Final = Table(
    "runs",
    metadata,
    _text("id", key=True),
    _text("judge"),
    _text("taxonomy"),
    _text("started_at"),
    _text("finished_at", empty=True),
    _text("note"),
    _text("settings", empty=True),
    _text("form", empty=True),
    _text("ending", empty=True),
    _whole("told_requests", empty=True),
    _whole("told_in", empty=True),
    _whole("told_out", empty=True),
    _whole("told_cached", empty=True),
)
"""``told``: what a run elsewhere has used, of which no answers are here; null for a run of here."""

run_traces: Final = Table(
    "run_traces",
    metadata,
    _text("run", key=True),
    _text("trace_id", key=True),
    _whole("findings"),
    _text("problem", empty=True),
    _whole("quotes", default=0),
    _whole("verified", default=0),
    _whole("windows", default=0),
    Column("remarks", _TEXT, nullable=False, server_default=text("'[]'")),
    _text("quote_kinds", empty=True),
    sqlite_with_rowid=False,
)

asked: Final = Table(
    "asked",
    metadata,
    _whole("id", key=True),
    _text("run"),
    _text("trace_id"),
    _text("key"),
    _text("finish"),
    _text("form"),
    _whole("tokens_in"),
    _whole("tokens_out"),
    Column("usable", Boolean, nullable=False),
    Column("counted", Boolean, nullable=False),
    _text("at"),
    _text("answer"),
    _whole("tokens_cached", default=0),
    # What is meant for servers alone would have SQLAlchemy import all that it knows of them.
    Index("asked_usable", "key", sqlite_where=text("usable = 1")),
    # It holds all that is summed up, so that no answer is read for it.
    Index("asked_of_run", "run", "tokens_in", "tokens_out", "tokens_cached"),
)
"""The answers of models, each once it has come: they stay in this file and are not exported."""

imports: Final = Table(
    "imports",
    metadata,
    _text("id", key=True),
    _text("at"),
    _text("who", empty=True),
    _text("format"),
    _text("files"),
    _text("asked"),
    _text("finished_at", empty=True),
    _text("undo_begun_at", empty=True),
    _text("undone_at", empty=True),
    _text("undone_by", empty=True),
)
"""Every import that brought something. ``asked`` is how it was asked for: the same words again go
on with one that was broken off."""

imported_events: Final = Table(
    "imported_events",
    metadata,
    _text("import", key=True),
    _text("event", key=True),
    sqlite_with_rowid=False,
)
"""What came of an import whose events keep the actions that they were recorded under elsewhere; any
other import is the action of its events."""
