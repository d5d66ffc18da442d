"""The format ``gold``: one JSON document with the gold of every trace and its sources."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from mast_tui import __version__
from mast_tui.adjudication import guidelines_document
from mast_tui.figures.time_study import minutes_summary
from mast_tui.gold import Conflict, Decision, GoldLabel, GoldTrace, GoldVerdict, Order, Resolution
from mast_tui.gold.model import GoldMixJson, gold_mix, source_if_counted
from mast_tui.grouping import values_by_key
from mast_tui.labels import (
    Label,
    Pass,
    PassKind,
    Target,
    TraceWork,
    annotator_kind,
    finished_by,
    is_judge,
)
from mast_tui.study import Study, is_expected
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.codec import study_to_values
from mast_tui.workspace.events.types import BlindWorkSet, Revealed
from mast_tui.workspace.records import TraceRecord
from mast_tui.workspace.registers.taxonomies import RevisionJson

FORMAT: Final = "mast-tui-gold"
VERSION: Final = 2
"""Version 1 had no protocol, no guidelines and no list of left-out work."""

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GoldWithSides:
    """The gold of one trace, and the annotators' work from which it was made (its sides).

    Attributes:
        passes: The finished passes of the sides by name.
        order: Returns the index of a span by its key; None if it is unknown.
        minutes: The known working times of the sides by name.
        decisions: The valid decisions of adjudicators.
        unordered: The number of labels with an unknown span index. They may overlap other labels.
    """

    trace: TraceRecord
    gold: GoldTrace
    sides: Sequence[TraceWork]
    passes: Mapping[str, Pass]
    order: Order
    minutes: Mapping[str, float]
    decisions: Sequence[Decision]
    unordered: int = 0


class GoldRules(NamedTuple):
    """The choice of verdicts and labels that count as gold.

    Attributes:
        majority: Settle verdicts by majority.
        settled_only: Leave out verdicts of one person alone.
    """

    majority: bool = False
    settled_only: bool = False


ALL_GOLD: Final = GoldRules()


def gold_document(
    workspace: Workspace,
    taxonomy: Taxonomy,
    agreement: Mapping[str, Any],
    entries: Sequence[GoldWithSides],
    *,
    judges: Mapping[str, Mapping[str, Any]] | None = None,
    rules: GoldRules = ALL_GOLD,
    traces: Container[str] | None = None,
) -> Values:
    """Return the gold document, with traces sorted by id.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the gold.
        agreement: The report of ``agree --json`` on the annotators.
        entries: The gold of the traces.
        judges: The reports on judges against this gold, by name.
        rules: The rules of the entries.
        traces: The ids of the traces that the viewer may see; None for all.
    """
    ref = taxonomy.ref
    # A judge can be one of the gold's annotators.
    gold_annotators = {side.annotator for entry in entries for side in entry.sides}
    all_passes = workspace.passes(taxonomy=ref)
    passes = [
        trace_pass for trace_pass in all_passes if traces is None or trace_pass.trace_id in traces
    ]
    finished_works = _labelled_works(trace_pass for trace_pass in passes if trace_pass.finished)
    outsiders = workspace.outside_study(ref) - gold_annotators
    study = workspace.study(ref)
    return {
        "format": FORMAT,
        "version": VERSION,
        "tool": {"name": "mast-tui", "version": __version__},
        "taxonomy": _taxonomy_values(taxonomy, workspace.revisions_read(ref)),
        "majority": rules.majority,
        "gold": _gold_sources(
            entries,
            settled_only=rules.settled_only,
            finished_by_outsiders=finished_by(outsiders, finished_works),
        ),
        "traces": [
            _trace_values(entry, taxonomy)
            for entry in sorted(entries, key=lambda entry: entry.trace.trace_id)
        ],
        "minutes_per_trace": minutes_summary(
            pair for entry in entries for pair in entry.minutes.items()
        ),
        "agreement": dict(agreement),
        "judges": {name: dict(report) for name, report in (judges or {}).items()},
        "protocol": None if study is None else study_to_values(replace(study, redact_key="")),
        "guidelines": dict(guidelines_document(workspace, taxonomy, traces=traces)),
        # How many traces someone has begun is not hidden.
        "left_out": {"unfinished": _unfinished_counts(all_passes, study)}
        | _left_out_values(passes, gold_annotators),
        "unordered": sum(entry.unordered for entry in entries),
        "set": _decision_facts([entry.decisions for entry in entries]),
    }


_Work = tuple[str, str]
"""An annotator's name and a trace id."""


def _labelled_works(passes: Iterable[Pass]) -> set[_Work]:
    """Return the annotators and traces of passes that are no adjudications or retests."""
    return {
        (trace_pass.annotator, trace_pass.trace_id)
        for trace_pass in passes
        if trace_pass.kind.is_labelling
    }


def _unfinished_counts(passes: Sequence[Pass], study: Study | None) -> dict[str, int]:
    """Return the number of expected traces that each person has begun and not finished."""
    started = _labelled_works(passes)
    finished = _labelled_works(trace_pass for trace_pass in passes if trace_pass.finished)
    return _counts_by_name(
        name
        for name, trace in started - finished
        if annotator_kind(name).is_person and is_expected(study, name, trace)
    )


def _left_out_values(passes: Sequence[Pass], gold_annotators: Container[str]) -> Values:
    """Return further work outside the gold: retests and other judges."""
    retests = (
        trace_pass.annotator
        for trace_pass in passes
        if trace_pass.kind is PassKind.RETEST and trace_pass.finished
    )
    judges = {name for name, _ in _labelled_works(passes) if is_judge(name)}
    return {
        "retests": _counts_by_name(retests),
        "judges": sorted(name for name in judges if name not in gold_annotators),
    }


def content_hash(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the field ``traces`` of a gold document.

    The field is hashed as UTF-8 JSON with sorted keys and without white space. So a reader can
    check it without this package.
    """
    traces = document["traces"]
    text = json.dumps(traces, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def events_hash(workspace: Workspace, taxonomy: str) -> str:
    """Return the SHA-256 of the events under a taxonomy.

    The hashed text has a line for each event: its id and its ``chain``, a hash over the annotator's
    events up to it. Events about looking at hidden labels are left out, because an export adds
    them.

    Args:
        workspace: The workspace.
        taxonomy: The reference ``id@version`` of the taxonomy.
    """
    digest = hashlib.sha256()
    for event in workspace.events(taxonomy=taxonomy):
        if not isinstance(event.fact, Revealed | BlindWorkSet):
            digest.update(f"{event.id} {event.chain_hash or ''}\n".encode())
    return digest.hexdigest()


def with_set_facts(
    document: Mapping[str, Any], datasheet_values: Mapping[str, Any] | None, events_hash: str
) -> Values:
    """Return a gold document with the facts that identify the set: version, hashes and shares.

    Args:
        document: The gold document, with pseudonyms and masks applied.
        datasheet_values: The values of ``datasheet.toml``; None without one.
        events_hash: The hash of the events.
    """
    verdicts = [
        (trace, code, verdict)
        for trace in document["traces"]
        for code, verdict in trace["verdicts"].items()
    ]
    decided = [
        (trace, verdict) for trace, _, verdict in verdicts if verdict["decided_by"] is not None
    ]
    answered_by_code = values_by_key(
        (code, verdict) for _, code, verdict in verdicts if any(verdict["sides"].values())
    )
    facts = {
        "version": (datasheet_values or {}).get("version"),
        "content_hash": content_hash(document),
        "events_hash": events_hash,
        **document["set"],
        "decisions": len(decided),
        "decisions_by_annotators": sum(
            any(side["name"] == verdict["decided_by"] for side in trace["annotators"])
            for trace, verdict in decided
        ),
        "modes": {
            mode["code"]: _resolution_shares(answered_by_code.get(mode["code"], ()))
            for mode in document["taxonomy"]["modes"]
        },
    }
    return {**document, "datasheet": datasheet_values, "set": facts}


def _resolution_shares(verdicts: Sequence[Values]) -> Values:
    """Return the number of verdicts, and the shares of adjudicated and unresolved ones."""
    sources = Counter(verdict["source"] for verdict in verdicts)
    count = len(verdicts)
    return {
        "verdicts": count,
        "adjudicated": sources["adjudicated"] / count if count else None,
        "unresolved": sources["unresolved"] / count if count else None,
    }


def _counts_by_name(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _taxonomy_values(taxonomy: Taxonomy, revisions: Iterable[RevisionJson]) -> Values:
    """Return the JSON values of a taxonomy, with the revisions that annotators read."""
    modes = [
        {
            "code": mode.code,
            "slug": mode.slug,
            "name": mode.name,
            "category": taxonomy.title(mode.category),
            "definition": mode.definition,
            "applies": list(mode.applies),
            "applies_not": list(mode.applies_not),
        }
        for mode in taxonomy.modes
    ]
    return {
        "ref": taxonomy.ref,
        "content_hash": taxonomy.content_hash,
        "revisions": list(revisions),
        "modes": modes,
    }


def _decision_facts(decisions_of_traces: Sequence[Sequence[Decision]]) -> Values:
    """Return the time of the last decision, and the number of decisions on places by adjudicator.

    All disputed places of a mode in a trace are one conflict.
    """
    times = [decision.decided_at for decisions in decisions_of_traces for decision in decisions]
    return {
        "last_decision_at": max(times, default=None),
        "place_decisions": _counts_by_name(
            name
            for decisions in decisions_of_traces
            for name, _mode in {(d.decided_by, d.mode) for d in decisions if not d.is_verdict}
        ),
    }


def _gold_sources(
    entries: Sequence[GoldWithSides],
    *,
    settled_only: bool,
    finished_by_outsiders: Mapping[str, int],
) -> GoldMixJson:
    """Return the number of gold verdicts from each source.

    ``finished_by_outsiders`` is the number of finished traces by annotators outside the study.
    """
    sources_by_trace: dict[str, list[Resolution]] = {}
    names_with_verdicts: set[str] = set()
    for entry in entries:
        sources = sources_by_trace[entry.trace.trace_id] = []
        for verdict in entry.gold.verdicts:
            source = source_if_counted(verdict)  # None for an open or excluded verdict
            if source is not None:
                sources.append(source)
                names_with_verdicts.update(
                    name for name, value in verdict.sides.items() if value is not None
                )
    return gold_mix(
        sources_by_trace,
        names_with_verdicts,
        settled_only=settled_only,
        not_in_study=finished_by_outsiders,
        merged=sum(label.merged for entry in entries for label in entry.gold.labels),
    )


def _trace_values(entry: GoldWithSides, taxonomy: Taxonomy) -> Values:
    """Return the JSON values of a trace: its facts, its gold and the annotators' work."""
    record = entry.trace
    gold = entry.gold
    identity = record.identity
    codes = {mode.slug: mode.code for mode in taxonomy.modes}
    label_codes = {
        mode.slug: mode.code for mode in taxonomy.all_modes
    }  # includes that of open codes
    return {
        "trace_id": record.trace_id,
        "content_hash": None if identity is None else identity.content_hash,
        "reader": None if identity is None else identity.reader,
        "key_scheme": None if identity is None else identity.key_scheme,
        "system": record.system,
        "model": record.model,
        "benchmark": record.benchmark,
        "outcome": record.outcome.value,
        "score": record.score,
        "spans": record.spans,
        "verdicts": {codes[verdict.mode]: _verdict_values(verdict) for verdict in gold.verdicts},
        "labels": [_gold_label_values(label, codes, entry.order) for label in gold.labels],
        "unresolved": [
            _conflict_values(conflict, codes, entry.order) for conflict in gold.conflicts
        ],
        "annotators": [_side_values(side, entry, codes, label_codes) for side in entry.sides],
    }


def _verdict_values(verdict: GoldVerdict) -> Values:
    return {
        "slug": verdict.mode,
        "value": verdict.value,
        "source": verdict.source.value,
        "sides": {name: value and value.value for name, value in verdict.sides.items()},
        "judge_seen": verdict.judge_seen,
        "decided_by": verdict.decided_by,
        "decided_at": verdict.decided_at,
        "reason": verdict.reason,
        "changed": verdict.changed,
    }


def _gold_label_values(label: GoldLabel, codes: Mapping[str, str], order: Order) -> Values:
    """Return the JSON values of a gold label.

    ``codes`` are the codes of modes by slug.
    """
    return {
        "mode": codes[label.mode],
        "slug": label.mode,
        "target": target_values(label.target, order),
        "source": label.source.value,
        "merged": label.merged,
        "annotators": list(label.annotators),
        "labels": list(label.labels),
        "notes": [{"annotator": name, "note": note} for name, note in label.notes],
        "severity": label.severity and label.severity.value,
        "severity_source": label.severity_source and label.severity_source.value,
        "judge_seen": label.judge_seen,
        "decided_by": label.decided_by,
        "decided_at": label.decided_at,
        "reason": label.reason,
        "changed": label.changed,
    }


def _conflict_values(conflict: Conflict, codes: Mapping[str, str], order: Order) -> Values:
    """Return the JSON values of an unresolved conflict.

    ``codes`` are the codes of modes by slug.
    """
    return {
        "id": conflict.id,
        "kind": conflict.kind.value,
        "mode": codes[conflict.mode],
        "slug": conflict.mode,
        "sides": [
            {
                "annotator": answer.annotator,
                "value": answer.value and answer.value.value,
                "targets": [target_values(target, order) for target in answer.targets],
            }
            for answer in conflict.answers
        ],
    }


def _side_values(
    side: TraceWork, entry: GoldWithSides, codes: Mapping[str, str], label_codes: Mapping[str, str]
) -> Values:
    """Return the JSON values of an annotator's work.

    ``codes`` are the codes of modes by slug. ``label_codes`` has also the mode of open
    codes, which has labels but no verdict.
    """
    finished_pass = entry.passes.get(side.annotator)
    values = {mode: side.verdict(mode) for mode in codes}
    minutes = entry.minutes.get(side.annotator)
    return {
        "name": side.annotator,
        "kind": side.author_kind.value,
        "pass": finished_pass and finished_pass.number,
        "pass_kind": finished_pass and finished_pass.kind.value,
        "finished_at": finished_pass and finished_pass.finished_at,
        "minutes": None if minutes is None else round(minutes, 2),
        "judge_seen": side.judge_seen,
        "read": finished_pass and finished_pass.read,
        "verdicts": {codes[mode]: value and value.value for mode, value in values.items()},
        "labels": [
            _label_values(label, label_codes, entry.order)
            for label in side.labels.values()
            if label.mode in label_codes
        ],
        "span_notes": [
            {"key": key, "index": entry.order(key), "note": text}
            for key, text in sorted(side.notes.items())
        ],
    }


def _label_values(label: Label, codes: Mapping[str, str], order: Order) -> Values:
    """Return the JSON values of an annotator's label.

    ``codes`` are the codes of modes by slug.
    """
    return {
        "id": label.id,
        "mode": codes[label.mode],
        "slug": label.mode,
        "target": target_values(label.target, order),
        "note": label.note,
        "confidence": label.confidence,
        "severity": label.severity and label.severity.value,
        "origin": label.origin.value,
        "saw_suggestions": label.saw_suggestions,
        "created_at": label.created_at,
    }


def target_values(target: Target, order: Order) -> Values:
    """Return the JSON values of a target, with span indices from 0.

    Args:
        target: The target.
        order: Returns the index of a span by its key; None if it is unknown.
    """
    first = target.first
    last = target.last
    return {
        "whole_trace": target.is_whole,
        "first": first,
        "last": last,
        "first_index": None if first is None else order(first),
        "last_index": None if last is None else order(last),
        "quote": target.quote,
        "char_start": target.char_start,
        "char_end": target.char_end,
    }
