"""The table of all formats of labels.

The commands ``export`` and ``import``, the dialog of the app and the table in ``docs/exchange.md``
use it. A new format needs a module and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.exchange.csv_labels import read_csv_long, read_csv_wide
from mast_tui.exchange.exporters.files import (
    add_codebook,
    add_dataset,
    add_gold,
    csv_long_text,
    csv_wide_text,
    doccano_text,
    label_studio_text,
    labels_writer,
    mast_data_text,
    tool_scores_text,
)
from mast_tui.exchange.formats import Format, FormatContent, ImportRequest
from mast_tui.exchange.import_batch import Incoming, complete_judge_tables
from mast_tui.exchange.importers.labelled_sets import read_agentrx, read_trail, read_who_and_when
from mast_tui.exchange.importers.mast_human import read_mast_human
from mast_tui.exchange.importers.tool_judges import (
    read_adamast,
    read_agentdash,
    read_agentdebugx,
    read_pisama,
)
from mast_tui.exchange.label_studio import read_label_studio
from mast_tui.exchange.mast_data import read_mast_data
from mast_tui.exchange.page.content import read_pages
from mast_tui.labels import GOLD

if TYPE_CHECKING:
    from mast_tui.labels import WorkKey


def _with_taxonomies(read: Callable[..., Incoming]) -> Callable[[ImportRequest], Incoming]:
    """Return the importer of a format with taxonomies in its rows."""
    return lambda request: read(
        request.files,
        taxonomy=request.taxonomy,
        find_taxonomy=request.known_taxonomies.get,
        annotator=request.annotator,
    )


def _with_judges(
    read: Callable[[ImportRequest], Incoming],
) -> Callable[[ImportRequest], Incoming]:
    """Return the importer ``read``, completed by the implied verdicts of judges."""
    return lambda request: complete_judge_tables(
        read(request), declared_finished=request.judges_finished
    )


def _read_label_studio(request: ImportRequest) -> Incoming:
    """Read files of Label Studio, without unchanged work of this workspace."""
    known_work: set[WorkKey] = set()
    for own_pass in request.workspace.passes():
        known_work.add((own_pass.annotator, own_pass.trace_id, own_pass.taxonomy))
        # Gold has no passes. Unchanged gold must not become the work of an annotator.
        known_work.add((GOLD, own_pass.trace_id, own_pass.taxonomy))
    return read_label_studio(
        request.files,
        taxonomy=request.taxonomy,
        find_taxonomy=request.known_taxonomies.get,
        has_work=lambda *work: work in known_work,
        annotator=request.annotator,
    )


def _with_annotator(
    read: Callable[[Sequence[Path], str | None], Incoming],
) -> Callable[[ImportRequest], Incoming]:
    """Return the importer of a format that needs only files and an author."""
    return lambda request: read(request.files, request.annotator)


_TABLE: Final = (
    Format(
        "gold",
        "final labels, all verdicts, agreement, a datasheet",
        FormatContent.GOLD,
        "gold.json",
        "datasheet.md",
        writes=add_gold,
        first_passes=True,
    ),
    Format(
        "csv-long",
        "a row for each label or verdict",
        FormatContent.LABELS,
        "labels.csv",
        reads=_with_judges(_with_taxonomies(read_csv_long)),
        writes=labels_writer(csv_long_text),
    ),
    Format(
        "csv-wide",
        "a row per annotator and trace, a column per mode",
        FormatContent.VERDICTS,
        "verdicts.csv",
        reads=_with_judges(
            lambda request: read_csv_wide(
                request.files, taxonomy=request.taxonomy, annotator=request.annotator
            )
        ),
        writes=labels_writer(csv_wide_text),
        first_passes=True,
    ),
    Format(
        "jsonl",
        "the whole workspace without loss, to keep or merge",
        FormatContent.WORKSPACE,
        "workspace.jsonl",
    ),
    Format(
        "huggingface",
        "a folder for load_dataset, with a dataset card",
        FormatContent.GOLD,
        "dataset",
        writes=add_dataset,
        first_passes=True,
    ),
    Format(
        "mast-data",
        "records with mast_annotation, as in MAST-Data",
        FormatContent.VERDICTS,
        "mast-data.json",
        reads=_with_taxonomies(read_mast_data),
        writes=labels_writer(mast_data_text),
    ),
    Format(
        "label-studio",
        "tasks for Label Studio, and its configuration",
        FormatContent.LABELS,
        "label-studio.json",
        "config.xml",
        reads=_read_label_studio,
        writes=labels_writer(label_studio_text),
        holds_texts=True,
    ),
    Format(
        "doccano",
        "texts with marked spans, for doccano",
        FormatContent.LABELS,
        "doccano.jsonl",
        writes=labels_writer(doccano_text),
        holds_texts=True,
    ),
    Format(
        "codebook",
        "definitions, guidelines and cases, for a paper",
        FormatContent.CODEBOOK,
        "codebook.md",
        writes=add_codebook,
    ),
    Format(
        "langfuse",
        "scores for traces that Langfuse recorded",
        FormatContent.LABELS,
        "langfuse.jsonl",
        writes=labels_writer(tool_scores_text),
    ),
    Format(
        "phoenix",
        "annotations for traces that Phoenix recorded",
        FormatContent.LABELS,
        "phoenix.json",
        writes=labels_writer(tool_scores_text),
    ),
    Format(
        "langsmith",
        "feedback for traces that LangSmith recorded",
        FormatContent.LABELS,
        "langsmith.jsonl",
        writes=labels_writer(tool_scores_text),
    ),
    Format(
        "inspect-scores",
        "scores for logs of Inspect",
        FormatContent.LABELS,
        "inspect-scores.jsonl",
        writes=labels_writer(tool_scores_text),
    ),
    Format(
        "page",
        "pages of runs that mast-tui page wrote",
        FormatContent.LABELS,
        reads=_with_taxonomies(read_pages),
    ),
    Format(
        "mast-human",
        "the human labels of the MAST study",
        FormatContent.VERDICTS,
        reads=_with_annotator(read_mast_human),
    ),
    Format(
        "who-and-when",
        "the decisive errors of Who&When",
        FormatContent.LABELS,
        reads=lambda request: read_who_and_when(request.files, request.annotator, request.workers),
        uses_workers=True,
    ),
    Format(
        "agentrx",
        "the failed steps of AgentRx",
        FormatContent.LABELS,
        reads=_with_annotator(read_agentrx),
    ),
    Format(
        "trail",
        "the errors that TRAIL marks in spans",
        FormatContent.LABELS,
        reads=_with_annotator(read_trail),
    ),
    Format(
        "agentdash",
        "answers of the judge in the agentdash package",
        FormatContent.VERDICTS,
        reads=_with_annotator(read_agentdash),
    ),
    Format(
        "adamast",
        "diagnoses of AdaMAST's judges, under its own taxonomy",
        FormatContent.LABELS,
        reads=_with_annotator(read_adamast),
    ),
    Format(
        "pisama",
        "findings of Pisama in traces that mast-tui convert wrote for it",
        FormatContent.LABELS,
        reads=_with_annotator(read_pisama),
    ),
    Format(
        "agentdebugx",
        "findings of AgentDebugX in traces that mast-tui convert wrote for it",
        FormatContent.LABELS,
        reads=_with_annotator(read_agentdebugx),
    ),
)
"""The exported formats come first, in the order of the dialog: the most requested first."""

FORMATS: Final[Mapping[str, Format]] = {row.name: row for row in _TABLE}
IMPORT_FORMATS: Final[Mapping[str, Format]] = {
    name: row for name, row in FORMATS.items() if row.can_be_imported
}
EXPORT_FORMATS: Final[Mapping[str, Format]] = {
    name: row for name, row in FORMATS.items() if row.can_be_exported
}
