"""Findings of the judges ``adamast``, ``agentdash``, ``pisama`` and ``agentdebugx``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from mast_tui.counts import counted
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import (
    UNKNOWN_TIME,
    AnnotatorBuilder,
    ImportedWork,
    Incoming,
    IncomingBuilder,
    imported_kind,
    shipped_taxonomy,
)
from mast_tui.exchange.mast_data import mast_binding
from mast_tui.exchange.trace_files import read_each, read_json, read_records
from mast_tui.labels import (
    JUDGE_PREFIX,
    WHOLE_TRACE,
    Evidence,
    Label,
    Severity,
    Target,
    VerdictValue,
)
from mast_tui.taxonomy.loader import from_dict, load_mast
from mast_tui.taxonomy.model import Taxonomy

# ``adamast``: diagnoses of AdaMAST's judges under a learned taxonomy.
#
# A file is an object with ``diagnoses`` as ``adamast judge --output`` writes it, a list of
# diagnoses, or one diagnosis per line. The default judge names all codes that apply. The judge
# ``single`` names exactly one, so other codes are not absent.


_ADAMAST_ID: Final = "adamast"
_ADAMAST_LAYERS: Final = ("full_layer", "annotation_layer")
_ADAMAST_CATEGORIES: Final = (("category_a", "A"), ("category_b", "B"), ("category_c", "C"))
Record = Mapping[str, Any]


def _is_adamast_taxonomy(document: object) -> bool:
    """Check for a document with ``codes`` or layers of codes.

    ``diagnoses`` mark the answers of a judge instead.
    """
    if not isinstance(document, Mapping) or "diagnoses" in document:
        return False
    return isinstance(document.get("codes"), list) or any(
        isinstance(document.get(layer), Mapping) for layer in _ADAMAST_LAYERS
    )


def _adamast_taxonomy(document: object, source: str) -> Taxonomy:
    """Return the taxonomy ``adamast@HASH`` of a document.

    HASH is a hash of the modes.

    Args:
        document: The JSON document.
        source: The name of the source, for messages.

    Raises:
        ValueError: The document has no usable codes.
    """
    if not isinstance(document, Mapping):
        raise ValueError("not an AdaMAST taxonomy; expected an object with 'codes'")
    name = document.get("display_name") or document.get("domain") or "AdaMAST taxonomy"
    return _adamast_taxonomy_of_codes(
        list(_adamast_codes_in_document(document)),
        name if isinstance(name, str) else _ADAMAST_ID,
        source,
    )


def _adamast_codes_in_document(document: Record) -> Iterator[Record]:
    """Yield the codes of a document: the flat ones, or those of the first layer."""
    if isinstance(document.get("codes"), list):
        yield from (code for code in document["codes"] if isinstance(code, Mapping))
        return
    layers = [document[name] for name in _ADAMAST_LAYERS if isinstance(document.get(name), Mapping)]
    if not layers:
        return
    for key, category in _ADAMAST_CATEGORIES:
        values = layers[0].get(key, ())
        codes = values.items() if isinstance(values, Mapping) else (("", code) for code in values)
        for name, code in codes:
            if isinstance(code, Mapping):
                yield {"id": name, "category": category, **code}


def _adamast_taxonomy_of_codes(codes: Sequence[Record], name: str, source: str) -> Taxonomy:
    """Return a taxonomy with a mode for each code.

    The version is a hash of the modes.
    """
    modes: list[dict[str, object]] = []
    used_codes: set[str] = set()
    used_names: set[str] = set()
    for record in codes:
        code = _typable_code(str(record.get("id") or record.get("code") or ""))
        if not code or code.casefold() in used_codes:
            continue  # the first record of a code counts
        mode_name = str(record.get("name") or record.get("label") or code).strip()
        if mode_name.casefold() in used_names | used_codes:
            mode_name = f"{mode_name} ({code})"
        category = str(record.get("category") or code.partition(".")[0] or "all")
        used_codes.add(code.casefold())
        used_names.add(mode_name.casefold())
        modes.append(
            {
                "slug": f"code-{_slug_text(code)}",
                "code": code,
                "name": mode_name,
                "category": f"group-{_slug_text(category)}",
                "definition": str(record.get("description") or record.get("definition") or ""),
                "applies": _sentence_list(record.get("when_to_use")),
                "applies_not": _sentence_list(record.get("when_not_to_use")),
            }
        )
    groups = dict.fromkeys(str(mode["category"]) for mode in modes)
    digest = hashlib.sha256(json.dumps(modes, sort_keys=True).encode()).hexdigest()
    return from_dict(
        {
            "id": _ADAMAST_ID,
            "version": digest[:8],
            "name": name,
            "categories": [{"id": group, "name": group.removeprefix("group-")} for group in groups],
            "modes": modes,
        },
        source,
    )


def _sentence_list(value: object) -> list[str]:
    return [value] if isinstance(value, str) and value.strip() else []


def _typable_code(text: str) -> str:
    """Return a code without blanks, separators of names and unprintable characters."""
    return "".join(char for char in text.strip() if char.isprintable() and char not in ",|@ ")[:64]


def _slug_text(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:40].strip("-")
    return plain or hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


ADAMAST_JUDGE: Final = "judge:adamast"


@dataclass(slots=True)
class _AdamastBuilder(IncomingBuilder):
    """The contents of the files so far.

    Attributes:
        headers: The document around the diagnoses, by file; empty around a list.
        diagnoses: The diagnoses with their locations, by file.
        taxonomies_by_path: The taxonomies of the imported files.
    """

    headers: dict[Path, Record] = field(default_factory=dict)
    diagnoses: dict[Path, list[tuple[str, Record]]] = field(default_factory=dict)
    taxonomies_by_path: dict[Path, Taxonomy] = field(default_factory=dict)


def read_adamast(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read the diagnoses of AdaMAST's judges.

    The taxonomy of a file is the one that it names, if it is imported too or is beside it. If the
    file names none, it is the only imported one. Otherwise it is AdaMAST's list of MAST's modes if
    that has all used codes, else a taxonomy of the used codes. In the last case no mode counts as
    absent.

    Args:
        files: The files and folders.
        annotator: The annotator's name; None for the judge in the diagnosis.
    """
    builder = _AdamastBuilder()
    for file, document in read_each(files, builder.problems, read_json):
        with builder.errors_as_problem(file, "file"):
            _add_adamast_document(file, document, builder)
    for file, diagnoses in builder.diagnoses.items():
        with builder.errors_as_problem(file, "codes"):
            _add_diagnoses(file, diagnoses, builder, annotator)
    without_code = sum(not (draft.labels or draft.verdicts) for draft in builder.drafts.values())
    if without_code:
        subject = counted(without_code, "diagnosis names", "diagnoses name")
        builder.notes.append(f"{subject} no code, and 'none_apply' is not set")
    return builder.to_incoming()


def _add_diagnoses(
    file: Path,
    diagnoses: Sequence[tuple[str, Record]],
    builder: _AdamastBuilder,
    annotator: str | None,
) -> None:
    codes = _adamast_taxonomy_of_file(file, builder)
    builder.taxonomies[codes.taxonomy.ref] = codes.taxonomy
    builder.notes.append(f"{file.name}: codes from {codes.taxonomy.ref} ({codes.explanation})")
    for location, record in diagnoses:
        with builder.errors_as_problem(file, location):
            name = annotator or _adamast_judge_name(builder.headers[file], record)
            draft = _diagnosis_work(name, file, record, codes)
            if draft.key in builder.drafts:
                raise ValueError(f"trace {draft.trace_id!r} appears twice; keep one diagnosis")
            builder.add_work(draft)


def _add_adamast_document(file: Path, document: object, builder: _AdamastBuilder) -> None:
    """Add the taxonomy or the diagnoses of a file to the builder.

    Other records become problems.
    """
    if _is_adamast_taxonomy(document):
        builder.taxonomies_by_path[file.resolve()] = _adamast_taxonomy(document, str(file))
        return
    header: Record = document if isinstance(document, Mapping) else {}
    records = header.get("diagnoses") if "diagnoses" in header else document
    records = records if isinstance(records, list) else [records]
    builder.headers[file] = header
    for number, record in enumerate(records, start=1):
        location = f"diagnosis {number}"
        if isinstance(record, Mapping) and ("failure_modes" in record or "code" in record):
            builder.diagnoses.setdefault(file, []).append((location, record))
        else:
            reason = "has neither 'failure_modes' nor 'code'; this is not an AdaMAST diagnosis"
            builder.add_problem(file, location, reason)


class _FileTaxonomy(NamedTuple):
    """The taxonomy of a file's diagnoses.

    Attributes:
        is_complete: True if it has all codes of the judge.
        explanation: The source of the taxonomy, in words.
    """

    taxonomy: Taxonomy
    is_complete: bool
    explanation: str


def _adamast_taxonomy_of_file(file: Path, builder: _AdamastBuilder) -> _FileTaxonomy:
    """Find the taxonomy of a file's diagnoses, in the order of ``read_adamast``."""
    taxonomy_path = builder.headers[file].get("taxonomy")
    if isinstance(taxonomy_path, str) and taxonomy_path:
        file_name = Path(taxonomy_path.replace("\\", "/")).name
        for path in (Path(taxonomy_path), file.parent / file_name):
            if path.resolve() in builder.taxonomies_by_path:
                taxonomy = builder.taxonomies_by_path[path.resolve()]
                return _FileTaxonomy(taxonomy, True, f"the taxonomy in {path.name}")
            try:
                taxonomy = _adamast_taxonomy(read_json(path), str(path))
                return _FileTaxonomy(taxonomy, True, f"from {path.name}")
            except (ValueError, OSError):
                continue
    elif len(builder.taxonomies_by_path) == 1:
        ((path, taxonomy),) = builder.taxonomies_by_path.items()
        return _FileTaxonomy(taxonomy, True, f"the taxonomy in {path.name}")
    return _taxonomy_of_used_codes([record for _, record in builder.diagnoses[file]])


def _taxonomy_of_used_codes(diagnoses: Iterable[Record]) -> _FileTaxonomy:
    """Return AdaMAST's list of MAST's modes if it has all codes, else a taxonomy of the codes."""
    names_by_code = dict(pair for record in diagnoses for pair in _codes_with_names(record))
    mast = shipped_taxonomy("adamast_mast")
    if names_by_code and all(mast.find(code) is not None for code in names_by_code):
        return _FileTaxonomy(mast, True, "AdaMAST's list of MAST's modes")
    codes: list[Record] = [
        {"id": code, "name": name} for code, name in sorted(names_by_code.items())
    ]
    taxonomy = _adamast_taxonomy_of_codes(
        codes or [{"id": "none"}], "AdaMAST, codes in use", _ADAMAST_ID
    )
    explanation = "only the codes in use, as their taxonomy file was not found"
    return _FileTaxonomy(taxonomy, False, explanation)


def _codes_with_names(record: Record) -> list[tuple[str, str]]:
    # Without a list of failure modes, the record has a single code and name.
    modes = record.get("failure_modes", [record])
    return [
        (str(mode["code"]), str(mode.get("name") or mode.get("label") or mode["code"]))
        for mode in (modes if isinstance(modes, list) else ())
        if isinstance(mode, Mapping) and mode.get("code")
    ]


def _adamast_judge_name(header: Record, record: Record) -> str:
    """Return the judge's name: ``judge:MODEL@adamast``, or ``judge:adamast`` without a model."""
    judge = header.get("judge")
    metadata = record.get("judge_metadata")
    model = judge.get("model") if isinstance(judge, Mapping) else None
    if not model and isinstance(metadata, Mapping):
        model = metadata.get("judge_model")
    if not isinstance(model, str):
        return ADAMAST_JUDGE
    plain = "".join(char for char in model if char.isprintable() and char not in ",|").strip()
    return f"{JUDGE_PREFIX}{plain[:100]}@adamast" if plain else ADAMAST_JUDGE


def _diagnosis_work(name: str, file: Path, record: Record, codes: _FileTaxonomy) -> ImportedWork:
    """Return the work of a judge in a diagnosis.

    Other modes become absent only if the taxonomy is complete and the diagnosis lists all failures.

    Raises:
        ValueError: The diagnosis is not valid.
    """
    trace_id = record.get("trace_id")
    if not isinstance(trace_id, str | int) or not str(trace_id).strip():
        raise ValueError("has no 'trace_id'")
    taxonomy = codes.taxonomy
    draft = ImportedWork(
        name,
        str(trace_id),
        taxonomy.ref,
        imported_kind(name),
        finished_at=UNKNOWN_TIME,
        file=file,
    )
    for value in _failures_of(record):
        mode = taxonomy.find(value["code"])
        if mode is None:
            raise ValueError(f"code {value['code']!r} is not in {taxonomy.ref}")
        draft.add_label(_adamast_label_of_mode(draft, mode.slug, value))
    lists_all = "failure_modes" in record
    if codes.is_complete and lists_all and (draft.labels or record.get("none_apply") is True):
        labelled_modes = {label.mode for label in draft.labels.values()}
        for mode in taxonomy.modes:
            if mode.slug not in labelled_modes:
                draft.add_verdict(mode.slug, VerdictValue.ABSENT)
    return draft


def _failures_of(record: Record) -> list[Record]:
    """Return the failures in a diagnosis; without a list, the diagnosis is the only one.

    Raises:
        ValueError: The list is not valid, or a failure has no code.
    """
    failures = record.get("failure_modes", [record])
    if not isinstance(failures, list):
        raise ValueError("'failure_modes' is not a list")
    for failure in failures:
        if not isinstance(failure, Mapping) or not isinstance(failure.get("code"), str):
            raise ValueError("a failure mode has no 'code'")
    return failures


def _adamast_label_of_mode(draft: ImportedWork, slug: str, value: Record) -> Label:
    """Return the label of a failure mode, with severity and recovery hint in the note.

    Raises:
        ValueError: The confidence is a truth value or a number outside 0 to 1.
    """
    evidence = value.get("evidence")
    confidence = value.get("confidence")
    number = confidence if isinstance(confidence, int | float) else None
    if isinstance(confidence, bool) or (number is not None and not 0 <= number <= 1):
        raise ValueError(f"confidence is {confidence!r}; expected 0 to 1")
    details = {name: value.get(name) for name in ("severity", "recovery_hint")}
    if number is None:
        # The confidence is a word such as "high".
        details = {"confidence": confidence, **details}
    remarks = [f"{name.replace('_', ' ')}: {detail}" for name, detail in details.items() if detail]
    quote = evidence if isinstance(evidence, str) and evidence.strip() else None
    return draft.label(
        slug,
        note="\n".join(remarks),
        confidence=None if number is None else float(number),
        evidence=None if quote is None else Evidence(key=None, quote=quote),
    )


# ``agentdash``: answers of the ``agentdash`` package's judge on whole traces, mode by mode.
#
# The trace is named by ``trace_id`` in the record, by the key of the answer, or by the file name.
# The package writes 0 for a mode that is missing in the model's words. If these words are kept,
# such a 0 is no verdict.


AGENTDASH_JUDGE: Final = "judge:agentdash"

_AGENTDASH_PRINTED: Final = (
    "2.6 Action-Reasoning Mismatch",
    "3.2 No or Incorrect Verification",
    "3.3 Weak Verification",
)
"""The names in the package's prompt for the numbers that other sources use differently."""

_AGENTDASH_IDS: Final = ("trace_id", "id", "problem_id")
_AGENTDASH_MODES: Final = "failure_modes"


def read_agentdash(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read the answers of the agentdash package's judge, as labels on whole traces.

    A file has one answer, a list of answers, one answer per line, or an object of answers by trace
    id. A 0 for a mode that the model's text does not mention stays open. The model's opinion on
    success is ignored.

    Args:
        files: The files and folders.
        annotator: The annotator's name; None for ``judge:agentdash``.
    """
    mast = load_mast()
    binding = mast_binding(mast, [_AGENTDASH_PRINTED])
    name = annotator or AGENTDASH_JUDGE
    builder = IncomingBuilder({mast.ref: mast}, notes=[binding.in_words])
    unmentioned_count = 0
    for file, answers in read_each(files, builder.problems, _agentdash_answers):
        for location, trace_id, record in answers:
            with builder.errors_as_problem(file, location):
                draft, unmentioned = _agentdash_answer_work(
                    name, file, trace_id, record, binding.slugs, mast
                )
                if draft.key in builder.drafts:
                    raise ValueError(f"trace {trace_id!r} appears twice; keep one answer")
                unmentioned_count += unmentioned
                builder.add_work(draft)
    if unmentioned_count:
        subject = counted(unmentioned_count, "zero is for a mode", "zeros are for modes")
        builder.notes.append(f"{subject} that the model did not mention; left open")
    return builder.to_incoming()


def _agentdash_answers(file: Path) -> list[tuple[str, str, Record]]:
    """Return the answers in a file with their locations and trace ids.

    Raises:
        ValueError: The file holds no answer, or an answer in a list names no trace.
    """
    document = read_json(file)
    if isinstance(document, list):
        answers = []
        for number, value in enumerate(document, start=1):
            record = _checked_agentdash_answer(value, f"record {number}")
            trace_id = _agentdash_trace_id_in(value)
            if trace_id is None:
                raise ValueError(
                    f"record {number}: has no 'trace_id'; add the id of the trace that it judges"
                )
            answers.append((f"record {number}", trace_id, record))
        return answers
    if not isinstance(document, Mapping):
        raise ValueError("contains no agentdash answer with 'failure_modes'")
    if _AGENTDASH_MODES in document or _AGENTDASH_MODES in _annotation_or_value(document):
        trace_id = _agentdash_trace_id_in(document) or file.stem
        return [("file", trace_id, _checked_agentdash_answer(document, "file"))]
    return [
        (f"{trace_id!r}", trace_id, _checked_agentdash_answer(value, f"{trace_id!r}"))
        for trace_id, value in document.items()
    ]


def _annotation_or_value(value: Record) -> Record:
    """Return the field ``annotation`` if it has the answer, else the value."""
    annotation = value.get("annotation")
    return annotation if isinstance(annotation, Mapping) else value


def _checked_agentdash_answer(value: object, location: str) -> Record:
    """Return the answer in a JSON value.

    Raises:
        ValueError: The value has no answer.
    """
    if isinstance(value, Mapping):
        answer = value if _AGENTDASH_MODES in value else _annotation_or_value(value)
        if isinstance(answer.get(_AGENTDASH_MODES), Mapping):
            return answer
    raise ValueError(f"{location}: has no 'failure_modes' with a 1 or 0 per mode")


def _agentdash_trace_id_in(value: object) -> str | None:
    assert isinstance(value, Mapping)
    ids = (value.get(name) for name in _AGENTDASH_IDS)
    return next((str(x) for x in ids if isinstance(x, str | int) and str(x).strip()), None)


def _agentdash_answer_work(
    name: str,
    file: Path,
    trace_id: str,
    record: Record,
    slugs: Mapping[str, str],
    mast: Taxonomy,
) -> tuple[ImportedWork, int]:
    """Return the work of an answer, and its number of zeros for unmentioned modes.

    ``slugs`` are the slugs of MAST's modes by code.
    """
    draft = ImportedWork(
        name, trace_id, mast.ref, imported_kind(name), finished_at=UNKNOWN_TIME, file=file
    )
    unmentioned_count = 0
    for code, value in record[_AGENTDASH_MODES].items():
        if code not in slugs:
            raise ValueError(f"mode {code!r} is not in MAST ({', '.join(slugs)})")
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
    """Check that the model's text names a mode; True without a text."""
    if not isinstance(answer_text, str):
        return True
    return re.search(rf"(?<![0-9.]){re.escape(code)}(?![0-9])", answer_text) is not None


# ``pisama`` and ``agentdebugx``: findings of these tools in traces written by ``convert``.
#
# Pisama (0.7) reads ATIF and names spans by hashes. They are computed again from the ATIF file.
# AgentDebugX (0.5) names events. In files of ``convert`` their ids are keys of spans. Findings in
# other files cannot be read.


_OTHER: Final = "other"
_GENERATED_EVENT_ID: Final = re.compile(r"evt_[0-9a-f]{32}\Z")


def read_pisama(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read the output of ``pisama analyze --json`` with the analyzed ATIF files.

    Each piece of evidence becomes a label from its first to its last span. Without spans the label
    is on the whole trace.

    Args:
        files: The files and folders with the output and the ATIF files.
        annotator: The annotator's name; None for ``judge:pisama``.

    Raises:
        ExchangeError: No answer of Pisama is among the files.
    """
    builder = _ToolBuilder("pisama", annotator)
    answers: list[tuple[Path, Record]] = []
    trajectories: dict[str, _Trajectory] = {}
    for file, record in builder.records_in(files, ".json", ".jsonl", ".pisama"):
        if isinstance(record.get("issues"), list) and "trace_id" in record:
            answers.append((file, record))
        elif str(record.get("schema_version", "")).startswith("ATIF-"):
            trajectory = _Trajectory.of(record)
            if trajectory is not None:
                trajectories[trajectory.id] = trajectory
    if not answers and not builder.problems:
        raise ExchangeError(f"{files[0]}: no Pisama answer; expected 'issues' and 'trace_id'")
    for file, record in answers:
        trajectory = trajectories.get(str(record["trace_id"]))
        if trajectory is None:
            builder.add_problem(
                file,
                f"trace {record['trace_id']}",
                "the analyzed file is not named; give the one that 'mast-tui convert --to "
                "atif' wrote",
            )
        else:
            _add_pisama_answer(builder, file, record["issues"], trajectory)
    return builder.to_incoming()


def _add_pisama_answer(
    builder: _ToolBuilder, file: Path, issues: Sequence[Any], trajectory: _Trajectory
) -> None:
    """Add the issues in a trajectory; invalid ones become problems."""
    draft = builder.finished_work(file, trajectory.trace_id)
    for number, issue in enumerate(issues):
        with builder.wrong_finding_as_problem(file, f"issue {number}", "a Pisama issue"):
            for target in _targets_of_issue(issue, trajectory):
                builder.add_finding(
                    draft,
                    str(issue["type"]),
                    target,
                    [issue.get("summary"), f"Severity {issue.get('severity')} of 100"],
                    issue.get("confidence"),
                )


def read_agentdebugx(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read the output of ``agentdebug diagnose`` on files of ``convert --to agentdebugx``.

    A finding becomes a label on the span of its event. The label on the decisive event is fatal. A
    decisive event without a finding gets the label ``other``.

    Args:
        files: The files and folders.
        annotator: The annotator's name; None for ``judge:agentdebugx``.

    Raises:
        ExchangeError: No report of AgentDebugX is among the files.
    """
    builder = _ToolBuilder("agentdebugx", annotator)
    reports = [
        (file, record)
        for file, record in builder.records_in(files, ".json", ".jsonl")
        if isinstance(record.get("findings"), list) and "trace_id" in record
    ]
    if not reports and not builder.problems:
        raise ExchangeError(
            f"{files[0]}: no AgentDebugX report; expected 'findings' and 'trace_id'"
        )
    for file, report in reports:
        _add_agentdebugx_report(builder, file, report)
    return builder.to_incoming()


def _add_agentdebugx_report(builder: _ToolBuilder, file: Path, report: Record) -> None:
    """Add the findings of a report; invalid ones become problems."""
    draft = builder.finished_work(file, str(report["trace_id"]))
    decisive_event = _decisive_event(report)
    has_decisive_finding = False
    for number, finding in enumerate(report["findings"]):
        location = f"finding {number}"
        with builder.wrong_finding_as_problem(file, location, "an AgentDebugX finding"):
            mode = finding["failure_mode"]
            event = finding.get("event_id")
            is_decisive = event is not None and event == decisive_event
            has_decisive_finding = has_decisive_finding or is_decisive
            builder.add_finding(
                draft,
                str(mode["mode_id"]),
                _target_of_event(event),
                [mode.get("name"), *finding.get("evidence", ()), finding.get("suggestion")],
                finding.get("confidence"),
                fatal=is_decisive,
            )
    if decisive_event is not None and not has_decisive_finding:
        with builder.errors_as_problem(file, "root cause"):
            target = _target_of_event(decisive_event)
            builder.add_finding(draft, _OTHER, target, [report.get("summary")], None, fatal=True)


def _decisive_event(report: Record) -> str | None:
    """Return the event id of the first hypothesis, else of the root cause; None without any."""
    attribution = report.get("attribution")
    hypotheses = attribution.get("hypotheses") if isinstance(attribution, Mapping) else None
    first = hypotheses[0] if isinstance(hypotheses, list) and hypotheses else None
    event = first.get("span_id") if isinstance(first, Mapping) else None
    event = event or report.get("root_cause_event_id")
    return None if event is None else str(event)


def _target_of_event(event: object) -> Target:
    """Return the span of an event; the whole trace for None.

    Raises:
        ValueError: The id is not a key but generated by AgentDebugX.
    """
    if event is None:
        return WHOLE_TRACE
    key = str(event)
    if _GENERATED_EVENT_ID.match(key):
        raise ValueError(
            f"event {key} is not the key of a span; run AgentDebugX on what 'mast-tui convert "
            "--to agentdebugx' wrote"
        )
    return Target(key, key)


@dataclass(frozen=True, slots=True)
class _Trajectory:
    """An ATIF trajectory written by ``convert``.

    Attributes:
        id: Pisama's id of the trajectory.
        trace_id: The id of the original trace.
        keys: The keys of the original spans by Pisama's ids, in order.
    """

    id: str
    trace_id: str
    keys: Mapping[str, str]

    @classmethod
    def of(cls, record: Record) -> _Trajectory | None:
        """Return the trajectory of an ATIF document; None if ``convert`` has not written it."""
        extra = record.get("extra")
        agent = record.get("agent")
        if not isinstance(extra, Mapping) or not isinstance(agent, Mapping):
            return None
        trace_id = extra.get("trace")
        if not isinstance(trace_id, str):
            return None
        # Pisama's ids are hashes (pisama/_atif.py). The id of a trace is a hash of its session. The
        # id of a span is a hash of trace, document, agent, step and the number of the call (0 for
        # the message). Document and agent are lists.
        pisama_id = hashlib.sha256(str(record["session_id"]).encode()).hexdigest()[:32]
        document = [record["trajectory_id"]]
        keys: dict[str, str] = {}
        for step in record.get("steps", ()):
            step_keys = step.get("extra", {}).get("spans") or [""]
            calls = step.get("tool_calls") or []
            # The first key is that of the message, and the last ones are those of the calls.
            call_keys = step_keys[len(step_keys) - len(calls) :] if calls else []
            for number, key in enumerate([step_keys[0], *call_keys]):
                parts = [pisama_id, document, [agent["name"]], step["step_id"], number]
                hashed_text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
                keys[hashlib.sha256(hashed_text.encode()).hexdigest()[:16]] = key
        return cls(pisama_id, trace_id, keys)


def _targets_of_issue(issue: Record, trajectory: _Trajectory) -> list[Target]:
    """Return the ranges of spans in an issue's evidence; the whole trace without any."""
    index_by_id = {span: index for index, span in enumerate(trajectory.keys)}
    targets: dict[Target, None] = {}
    for evidence in issue["evidence"]:
        span_ids = list(evidence.get("span_ids") or ())
        unknown_ids = [span for span in span_ids if span not in index_by_id]
        if unknown_ids:
            raise ValueError(f"span {unknown_ids[0]!r} is not in the analyzed file")
        if span_ids:
            first = min(span_ids, key=index_by_id.__getitem__)
            last = max(span_ids, key=index_by_id.__getitem__)
            targets[Target(trajectory.keys[first], trajectory.keys[last])] = None
    return list(targets) or [WHOLE_TRACE]


class _ToolBuilder(AnnotatorBuilder):
    """The findings of one tool so far."""

    def __init__(self, tool: str, annotator: str | None) -> None:
        super().__init__(shipped_taxonomy(tool), annotator or f"judge:{tool}")
        self._modes = {
            name: mode.slug
            for mode in self._taxonomy.modes
            for name in (mode.slug, *(alias.name for alias in mode.aliases))
        }

    def records_in(self, files: Sequence[Path], *suffixes: str) -> Iterator[tuple[Path, Record]]:
        """Yield the JSON objects in files with their files; unreadable files become problems.

        A file has one object, a list of objects, or one object per line.
        """
        for file, records in read_records(files, self.problems, suffixes):
            yield from ((file, record) for record in records if isinstance(record, Mapping))

    @contextmanager
    def wrong_finding_as_problem(self, file: Path, location: str, name: str) -> Iterator[None]:
        """Turn an error in the ``with`` block into a problem with a finding.

        Args:
            file: The file.
            location: The location in the file.
            name: The name of such a finding, with its article.
        """
        try:
            yield
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.add_problem(file, location, f"not {name}: {error}")

    def add_finding(
        self,
        draft: ImportedWork,
        mode: str,
        target: Target,
        notes: Sequence[object],
        confidence: object,
        *,
        fatal: bool = False,
    ) -> None:
        """Add a finding as a label, or merge it into the label of the same mode and target.

        An unknown mode becomes ``other``, with its name in the note.

        Args:
            draft: The work.
            mode: The tool's name of the mode.
            target: The target.
            notes: The lines of the note. Empty ones are left out.
            confidence: The confidence. Other values than numbers are ignored.
            fatal: True if the failure decided the outcome.
        """
        slug = self._modes.get(mode, _OTHER)
        note_lines = [str(note) for note in notes if note]
        if mode not in self._modes:
            note_lines = [mode, *note_lines]
        label = draft.label(
            slug,
            target,
            "\n".join(note_lines),
            confidence=float(confidence) if isinstance(confidence, int | float) else None,
            severity=Severity.FATAL if fatal else None,
        )
        draft.join_label(label)
