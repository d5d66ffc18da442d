"""``agentdash``: what the ``agentdash`` package's judge says of whole traces, mode by mode.

Its answer does not name the trace: that is the record's ``trace_id``, the name under which a
file keeps the answer, or the file's own name. The package takes a mode that it did not find in the
model's words for a 0; where these words are kept, such a 0 is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.exchange.import_batch import Gathered, ImportedWork, Incoming, imported_kind
from mast_tui.exchange.mast_data import mast_binding
from mast_tui.exchange.trace_files import read_each, read_json
from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Taxonomy

JUDGE: Final = "judge:agentdash"

_PRINTED: Final = (
    "2.6 Action-Reasoning Mismatch",
    "3.2 No or Incorrect Verification",
    "3.3 Weak Verification",
)
"""The names of the package's prompt for the numbers that other sources bind otherwise."""

_IDS: Final = ("trace_id", "id", "problem_id")
_MODES: Final = "failure_modes"
Record = Mapping[str, Any]


def read_agentdash(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read answers of the agentdash package.

    A file has one answer, a list of answers, one answer per line, or an object with the answers by
    trace id.

    The labels are on whole traces, with the summary as their note. The model's opinion on the
    success of the task is not imported.

    Args:
        files: The files and folders.
        annotator: The annotator's name, None for the usual one.
    """
    mast = load_mast()
    binding = mast_binding(mast, [_PRINTED])
    name = annotator or JUDGE
    batch = Gathered({mast.ref: mast}, notes=[binding.in_words])
    unmentioned_count = 0
    for file, records in read_each(files, batch.problems, _located_answers):
        for location, trace_id, record in records:
            try:
                draft, unmentioned = _answer_work(name, file, trace_id, record, binding.slugs, mast)
                if draft.key in batch.drafts:
                    raise ValueError(f"trace {trace_id!r} comes twice; keep one answer to it")
            except ValueError as error:
                batch.wrong(file, location, error)
                continue
            unmentioned_count += unmentioned
            batch.keep(draft)
    if unmentioned_count:
        subject = counted(unmentioned_count, "zero stands for a mode", "zeros stand for modes")
        batch.notes.append(f"{subject} that the model did not speak of; left open")
    return batch.done()


def _located_answers(file: Path) -> list[tuple[str, str, Record]]:
    """Return the location, trace id and content of each answer in a file."""
    return list(_answers_in_document(read_json(file), file))


def _answers_in_document(document: object, file: Path) -> Iterator[tuple[str, str, Record]]:
    """Yield the location, trace id and content of each answer in a document.

    Raises:
        ValueError: The document holds no answer, or an answer in a list names no trace.
    """
    if isinstance(document, list):
        for number, value in enumerate(document, start=1):
            record = _checked_answer(value, f"record {number}")
            trace_id = _trace_id_in(value)
            if trace_id is None:
                raise ValueError(f"record {number}: has no 'trace_id'; add which trace it judges")
            yield f"record {number}", trace_id, record
        return
    if not isinstance(document, Mapping):
        raise ValueError("holds no answer of agentdash, which has 'failure_modes'")
    if _MODES in document or _MODES in _annotation_or_value(document):
        yield "file", _trace_id_in(document) or file.stem, _checked_answer(document, "file")
        return
    for trace_id, value in document.items():
        yield f"{trace_id!r}", trace_id, _checked_answer(value, f"{trace_id!r}")


def _annotation_or_value(value: Record) -> Record:
    """Return the field ``annotation``, in which some scripts put the answer, or the value."""
    annotation = value.get("annotation")
    return annotation if isinstance(annotation, Mapping) else value


def _checked_answer(value: object, location: str) -> Record:
    """Return the answer in a JSON value.

    Raises:
        ValueError: The value holds no answer.
    """
    if isinstance(value, Mapping):
        answer = value if _MODES in value else _annotation_or_value(value)
        if isinstance(answer.get(_MODES), Mapping):
            return answer
    raise ValueError(f"{location}: has no 'failure_modes' with a 1 or 0 per mode")


def _trace_id_in(value: object) -> str | None:
    assert isinstance(value, Mapping)
    ids = (value.get(name) for name in _IDS)
    return next((str(x) for x in ids if isinstance(x, str | int) and str(x).strip()), None)


def _answer_work(
    name: str,
    file: Path,
    trace_id: str,
    record: Record,
    slugs: Mapping[str, str],
    mast: Taxonomy,
) -> tuple[ImportedWork, int]:
    """Return the work of one answer, and the number of zeros for modes that it does not mention.

    ``slugs`` holds the slug of each mode of MAST by its code.
    """
    draft = ImportedWork(name, trace_id, mast.ref, imported_kind(name), finished_at="", file=file)
    unmentioned_count = 0
    for code, value in record[_MODES].items():
        if code not in slugs:
            raise ValueError(f"mode {code!r} is none of MAST's ({', '.join(slugs)})")
        if value not in (0, 1):
            raise ValueError(f"mode {code} is {value!r}, not 1 or 0")
        if value:
            draft.add_label(draft.label(slugs[code], note=str(record.get("summary") or "")))
        elif _mentions_mode(record.get("raw_response"), code):
            draft.add_verdict(slugs[code], VerdictValue.ABSENT)
        else:
            unmentioned_count += 1
    return draft, unmentioned_count


def _mentions_mode(answer_text: object, code: str) -> bool:
    """Check whether the model's text names the mode; True if the text was not kept."""
    if not isinstance(answer_text, str):
        return True
    return re.search(rf"(?<![0-9.]){re.escape(code)}(?![0-9])", answer_text) is not None
