"""The datasheet of a gold set: its annotators, methods and figures.

It is made from the gold document. The file ``datasheet.toml`` adds facts that no event records,
such as licence, contact and pay.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.exchange.errors import ExchangeError
from mast_tui.figures.agreement.report import Agreement
from mast_tui.figures.judge.report import JudgeReport
from mast_tui.gold.model import SETTLED, GoldMixJson, gold_words
from mast_tui.grouping import values_by_key
from mast_tui.labels import PassKind
from mast_tui.reports.agreement import agreement_report
from mast_tui.reports.judge import judges_section
from mast_tui.reports.model import Report
from mast_tui.reports.render.markdown import plain, render_markdown, table
from mast_tui.toml_text import parse_toml
from mast_tui.workspace.registers.taxonomies import revision_words

DATASHEET_FILE: Final = "datasheet.toml"
"""The default file name in the folder of the workspace."""

_TEXTS: Final = (
    *("pretty_name", "version", "description", "licence", "contact", "funding", "citation"),
)
_LISTS: Final = ("authors", "languages", "task_categories")
_PEOPLE: Final = ("who", "recruitment", "training", "pay", "consent")

_TITLES: Final = (
    ("authors", "Authors"),
    ("description", "What this is"),
    ("licence", "Licence"),
    ("languages", "Languages"),
    ("contact", "Contact"),
    ("funding", "Funding"),
    ("citation", "To cite"),
)
_TITLES_OF_PEOPLE: Final = (
    ("who", "Who labelled"),
    ("recruitment", "How they were found"),
    ("training", "Training"),
    ("pay", "Pay"),
    ("consent", "Consent"),
)


def read_datasheet(path: Path) -> dict[str, Any]:
    """Read the values of a ``datasheet.toml``.

    Raises:
        ExchangeError: The file cannot be read, or has an unknown key or a value of a wrong type.
    """
    try:
        document = parse_toml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExchangeError(f"{path}: not TOML in UTF-8: {error}") from None
    people = document.get("people", {})
    _check_values(document, str(path), (*_TEXTS, *_LISTS, "people"))
    if not isinstance(people, dict):
        raise ExchangeError(f"{path}: 'people' is not a table; write [people] and its keys below")
    _check_values(people, f"{path}: [people]", _PEOPLE)
    return document


def _check_values(table: Mapping[str, object], location: str, allowed: tuple[str, ...]) -> None:
    """Check the keys of a table and the types of its values."""
    from rapidfuzz import fuzz, process  # loaded only for a datasheet

    for key in table:
        if key in allowed:
            continue
        similar = process.extractOne(key.lower(), allowed, scorer=fuzz.ratio, score_cutoff=60)
        hint = (
            f"expected {', '.join(allowed)}" if similar is None else f"did you mean {similar[0]!r}?"
        )
        raise ExchangeError(f"{location}: unknown key {key!r}; {hint}")
    for name in allowed:
        value = table.get(name)
        if value is None or name == "people":  # this table is checked on its own
            continue
        if name not in _LISTS:
            if not isinstance(value, str):
                raise ExchangeError(f'{location}: {name!r} is not text; write {name} = "…"')
        elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ExchangeError(
                f'{location}: {name!r} is not a list of texts; write {name} = ["…"]'
            )


def card_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for a card of the Hub, under the Hub's names."""
    card = {
        "pretty_name": values.get("pretty_name"),
        "license": values.get("licence"),
        "language": values.get("languages"),
        "task_categories": values.get("task_categories"),
    }
    return {name: value for name, value in card.items() if value}


CITATION_FILE: Final = "CITATION.cff"
CITATION_MARK: Final = "# Written by mast-tui "
"""The beginning of all written citation files."""


def citation_file(document: Mapping[str, Any]) -> str | None:
    """Return the citation file of a gold document; None without authors.

    The form is Citation File Format 1.2.0. The values are JSON, which is valid YAML.
    """
    facts = document["datasheet"] or {}
    if not facts.get("authors"):
        return None
    taxonomy = document["taxonomy"]["ref"]
    finished = [side["finished_at"] for trace in document["traces"] for side in trace["annotators"]]
    times = [time for time in (*finished, document["set"]["last_decision_at"]) if time]
    values = {
        "cff-version": "1.2.0",
        "message": "If you use these labels, cite them as below.",
        "type": "dataset",
        "title": facts.get("pretty_name")
        or f"Labels of {counted(len(document['traces']), 'trace')} under {taxonomy}",
        "authors": [_cited_author(author) for author in facts["authors"]],
        "version": facts.get("version"),
        "date-released": max(times)[:10] if times else None,
        "abstract": facts.get("description"),
        "identifiers": [
            {
                "type": "other",
                "value": document["set"]["content_hash"],
                "description": "SHA-256 of the traces in the gold document",
            }
        ],
    }
    lines = [
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
        if value
    ]
    return "\n".join([f"{CITATION_MARK}{document['tool']['version']}", *lines, ""])


def _cited_author(author: str) -> dict[str, str]:
    """Return an author as a person if written as ``Family, Given``, else as an entity."""
    family, comma, given = author.partition(",")
    if not comma:
        return {"name": author.strip()}
    return {"family-names": family.strip(), "given-names": given.strip()}


def about_lines(values: Mapping[str, Any] | None) -> list[str]:
    """Return the section on the values of ``datasheet.toml``; empty without values."""
    if not values:
        return []
    people = values.get("people", {})
    rows = [(title, values.get(key)) for key, title in _TITLES]
    rows += [(title, people.get(key)) for key, title in _TITLES_OF_PEOPLE]
    lines = [f"- {title}: {_plain_text(value)}" for title, value in rows if value]
    return ["## About this set", "", *lines] if lines else []


def _plain_text(value: str | list[str]) -> str:
    return plain(value if isinstance(value, str) else "; ".join(value))


Values = Mapping[str, Any]

MARKS: Final = ("# Datasheet\n", "Written by mast-tui ")
"""Texts near the beginning of all written datasheets."""

_VALUES: Final = ("present", "absent", "unsure", "unresolved", "open")

_AGREEMENT: Final = ("modes", "spans")
"""The ids of the sections on agreement to show, and of their tables."""


def datasheet(
    document: Values, agreement: Agreement, judges: Mapping[str, JudgeReport] | None = None
) -> str:
    """Return the datasheet of a gold document as Markdown.

    Args:
        document: The gold document.
        agreement: The agreement of the document's annotators.
        judges: The figures of judges compared with this gold, by name.
    """
    sections = (
        _head_lines(document),
        about_lines(document.get("datasheet")),
        _annotator_lines(document),
        _verdict_lines(document),
        _protocol_lines(document),
        _agreement_lines(agreement),
        _judge_lines(judges or {}),
        _left_out_lines(document),
        _guideline_lines(document),
    )
    return "\n".join([*(line for section in sections if section for line in [*section, ""])])


def _revision_lines(taxonomy: Values) -> list[str]:
    revisions_text = revision_words(taxonomy.get("revisions", ()))
    return ["", f"{revisions_text[0].upper()}{revisions_text[1:]}."] if revisions_text else []


def _head_lines(document: Values) -> list[str]:
    """Return the title, and lines on traces, taxonomy, systems and outcomes."""
    taxonomy = document["taxonomy"]
    tool = document["tool"]
    traces = document["traces"]
    spans = sum(trace["spans"] or 0 for trace in traces)
    systems = _name_list(trace["system"] for trace in traces)
    return [
        "# Datasheet",
        "",
        f"{counted(len(traces), 'trace')} of agent runs ({counted(spans, 'span')}, where "
        f"counted), labelled for {counted(len(taxonomy['modes']), 'failure mode')} of the taxonomy "
        f"{plain(taxonomy['ref'])} "
        f"(content hash `{taxonomy['content_hash']}`). Written by {plain(tool['name'])} "
        f"{plain(tool['version'])}.",
        *_revision_lines(taxonomy),
        "",
        f"- Systems: {systems}",
        f"- Models: {_name_list(trace['model'] for trace in traces)}",
        f"- Benchmarks: {_name_list(trace['benchmark'] for trace in traces)}",
        f"- Outcomes: {_count_list(trace['outcome'] for trace in traces)}",
        *_identity_lines(document["set"]),
        "",
        "The unit is trace × mode. A mode without a verdict in a trace is open: it does not "
        "count as absent.",
    ]


def _identity_lines(facts: Values) -> list[str]:
    version = facts["version"]
    return [
        *([f"- Version: {plain(version)}"] if version else []),
        f"- SHA-256 of the traces in the gold document: `{facts['content_hash']}`",
        f"- SHA-256 of the event log: `{facts['events_hash']}`",
    ]


def _annotator_lines(document: Values) -> list[str]:
    """Return a table of the annotators."""
    # An entry is the work of an annotator on a trace.
    works = [work for trace in document["traces"] for work in trace["annotators"]]
    works_by_name = values_by_key((work["name"], work) for work in works)
    heads = (
        *("annotator", "kind", "traces", "conditions", "traces with suggestions on screen"),
        *("labels", "finished"),
    )
    trace_counts = Counter(len(trace["annotators"]) for trace in document["traces"])
    annotators_per_trace = ", ".join(
        f"{counted(trace_count, 'trace')} by {counted(annotator_count, 'annotator')}"
        for annotator_count, trace_count in sorted(trace_counts.items())
    )
    lines = [
        "## Who labelled, how and when",
        "",
        *table(heads, [_annotator_row(*item) for item in sorted(works_by_name.items())]),
        "",
        annotators_per_trace or "Nobody.",
    ]
    if any(work["pass_kind"] == PassKind.SECOND_LOOK for work in works):
        lines += ["", "`second_look`: the annotator changed the labels after finishing the trace."]
    return [*lines, *_minute_lines(document.get("minutes_per_trace"))]


def _annotator_row(name: str, works: Sequence[Values]) -> list[str]:
    """Return the row of an annotator with these works."""
    times = sorted(work["finished_at"] for work in works if work["finished_at"])
    return [
        plain(name),
        ", ".join(sorted({plain(work["kind"]) for work in works})),
        str(len(works)),
        _count_list(work["pass_kind"] or "unknown" for work in works),
        str(sum(bool(work["judge_seen"]) for work in works)),
        str(sum(len(work["labels"]) for work in works)),
        plain(f"{times[0][:10]} to {times[-1][:10]}" if times else "not noted"),
    ]


def _minute_lines(minutes: Values | None) -> list[str]:
    """Return lines on the working time per trace; empty if it is unknown."""
    if not minutes or not minutes["annotators"]:
        return []
    medians = ", ".join(
        f"{plain(name)} {summary['median']:.1f} ({counted(summary['n'], 'trace')})"
        for name, summary in minutes["annotators"].items()
    )
    return [
        "",
        f"Median minutes per trace: {medians}. Time runs from an annotator's first action on a "
        f"trace to its finish, without pauses of more than {minutes['longest_pause']} minutes. "
        "Imported labels have no times.",
    ]


def _verdict_lines(document: Values) -> list[str]:
    """Return lines on the sources of verdicts, and a table of verdicts by mode."""
    # Open modes and unresolved conflicts have no value.
    verdicts = [
        verdict
        for trace in document["traces"]
        for verdict in trace["verdicts"].values()
        if verdict["value"]
    ]
    deciders = _count_list(verdict["decided_by"] for verdict in verdicts if verdict["decided_by"])
    sources = _number_list(document["gold"]["sources"])
    heads = ("mode", "name", *_VALUES, "% adjudicated", "% unresolved")
    judge_seen_count = sum(bool(verdict["judge_seen"]) for verdict in verdicts)
    labels = [label for trace in document["traces"] for label in trace["labels"]]
    merged_count = sum(label["merged"] for label in labels)
    return [
        "## How verdicts were reached",
        "",
        f"- Sources of verdicts: {sources}",
        *_single_verdict_lines(document["gold"]),
        *_outsider_lines(document["gold"]),
        f"- Verdicts decided by: {deciders}",
        f"- Decisions on places alone, by: {_number_list(document['set']['place_decisions'])}",
        "- Verdicts decided by adjudicators who also labelled the trace: "
        f"{document['set']['decisions_by_annotators']} of {document['set']['decisions']}",
        f"- Last decision: {plain(document['set']['last_decision_at'] or 'none')}",
        f"- Verdicts by majority: {_yes_or_no(document['majority'])}",
        f"- Places joined from several annotators' different places (`merged`): {merged_count} "
        f"of {len(labels)}",
        f"- Verdicts for which an annotator or the adjudicator saw a judge: {judge_seen_count} "
        f"of {len(verdicts)}; leave these out (`judge_seen`) to measure a judge",
        "",
        *table(heads, [_mode_row(mode, document) for mode in document["taxonomy"]["modes"]]),
    ]


def _mode_row(mode: Values, document: Values) -> list[str]:
    verdicts = [trace["verdicts"].get(mode["code"]) for trace in document["traces"]]
    values = Counter(_verdict_value(verdict) for verdict in verdicts if verdict is not None)
    shares = document["set"]["modes"][mode["code"]]
    return [
        plain(mode["code"]),
        plain(mode["name"]),
        *(str(values[name]) for name in _VALUES),
        _percent(shares["adjudicated"]),
        _percent(shares["unresolved"]),
    ]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}"


def _verdict_value(verdict: Values) -> str:
    """Return the value of a verdict; without one, ``unresolved`` or ``open``."""
    if verdict["value"]:
        return str(verdict["value"])
    is_conflict = verdict["source"] == "unresolved" and any(verdict["sides"].values())
    return "unresolved" if is_conflict else "open"


def _single_verdict_lines(mix: GoldMixJson) -> list[str]:
    """Return a line on verdicts of one annotator alone, if there are any.

    ``mix`` has the number of verdicts by source.
    """
    if mix["settled_only"]:
        return ["- Verdicts of one annotator alone are left out (`--gold settled`)"]
    single_count = mix["sources"]["single"]
    if not single_count:
        return []
    # Settled verdicts were agreed on by annotators, or decided by an adjudicator.
    settled_count = sum(mix["sources"][source.value] for source in SETTLED)
    if not settled_count:
        return [f"- Every verdict comes from one person alone. Labels: {plain(gold_words(mix))}"]
    return [
        f"- {counted(single_count, 'verdict is', 'verdicts are')} one annotator's alone "
        f"(`single`), {settled_count} agreed on or decided; `--gold settled` exports only the "
        "latter"
    ]


def _outsider_lines(mix: GoldMixJson) -> list[str]:
    counts = ", ".join(
        f"{plain(name)} ({counted(n, 'trace')})" for name, n in mix["not_in_study"].items()
    )
    return [f"- Excluded, not in the study: {counts}"] if counts else []


def _protocol_lines(document: Values) -> list[str]:
    """Return lines on the rules of the study."""
    study = document["protocol"]
    lines = ["## Protocol", ""]
    if study is None:
        return [*lines, "No study was set up: assignments were not fixed beforehand."]
    trace_count = sum(len(batch["traces"]) for batch in study["batches"])
    condition = "without judges' suggestions" if study["blind"] else "with judges' suggestions"
    open_modes = {
        "ask": "the annotator was asked",
        "leave": "stayed open",
        "absent": "counted as absent",
    }[study["open_modes"]]
    return [
        *lines,
        f"- Annotators: {_name_list(study['annotators'])}; adjudicators: "
        f"{_name_list(study['adjudicators'])}",
        f"- {counted(trace_count, 'trace')} in "
        f"{counted(len(study['batches']), 'batch', 'batches')}; "
        f"{counted(study['per_trace'], 'annotator')} per trace for a share of "
        f"{study['overlap']:g}, one for the others; seed {study['seed']}",
        f"- Labelled {condition}; hidden at random: suggestions on a share of "
        f"{study['withheld']:g} of the traces that would show them",
        f"- Share of traces labelled again, first labels hidden: {study['retests']:g}",
        f"- Open modes, when a trace is finished with unread spans: {open_modes}",
        f"- In adjudication: names hidden {_yes_or_no(study['names_hidden'])}, judge shown "
        f"before the decision {_yes_or_no(study['judge_first'])}, overlapping places with "
        f"different ends are conflicts {_yes_or_no(study['boundaries'])}, reasons requested "
        f"{_yes_or_no(study['reasons'])}",
        "- Personal data and secrets masked for the annotators: "
        f"{_yes_or_no(study.get('redact', False))}",
    ]


def _agreement_lines(agreement: Agreement) -> list[str]:
    """Return the tables of agreement on modes and spans."""
    if len(agreement.annotators) < 2:
        return [
            "## Agreement",
            "",
            "No agreement: fewer than two annotators have finished traces.",
        ]
    report = agreement_report(agreement)
    sections = []
    for section in report.sections:
        if section.id in _AGREEMENT:
            # A section and its table have the same id.
            tables = tuple(part for part in section.parts if part.id in _AGREEMENT)
            sections.append(replace(section, facts=(), parts=tables))
    warnings = tuple(note for note in report.notes if note.warning)
    shown_report = replace(report, sections=tuple(sections), notes=warnings)
    return render_markdown(shown_report, level=2).splitlines()


def _judge_lines(judges: Mapping[str, JudgeReport]) -> list[str]:
    title = "Judges against this gold"
    if not judges:
        return [
            f"## {title}",
            "",
            "No judge has judged these traces, except as a source of the gold.",
        ]
    report = Report("judges", title, "", (judges_section(judges),))
    return render_markdown(report, level=2).splitlines()


def _left_out_lines(document: Values) -> list[str]:
    """Return lines on the work that is not a part of the gold."""
    left_out = document["left_out"]
    unresolved = [trace for trace in document["traces"] if trace["unresolved"]]
    without_content = sum(trace["content_hash"] is None for trace in document["traces"])
    return [
        "## What was left out",
        "",
        f"- Traces begun but not finished, by annotator: {_number_list(left_out['unfinished'])}",
        "- Traces labelled again to measure self-agreement, not part of the gold: "
        f"{_number_list(left_out['retests'])}",
        f"- Judges that labelled, not part of the gold: {_name_list(left_out['judges'])}",
        f"- Traces with undecided conflicts: {len(unresolved)}",
        f"- Traces with labels but unknown content: {without_content}",
        "- Labels on spans of unknown order, whose overlaps may be missed: "
        f"{document.get('unordered', 0)}",
        *_hidden_lines(document.get("sight")),
    ]


def _hidden_lines(visibility: Values | None) -> Iterator[str]:
    if visibility is not None and visibility["left_out"]:
        yield (
            f"- Traces still hidden from {plain(visibility['annotator'])}, who exported this: "
            f"{visibility['left_out']}"
        )


def _guideline_lines(document: Values) -> list[str]:
    lines = ["## Guidelines of the modes", ""]
    for code, page in document["guidelines"].items():
        for guideline in page["guidelines"]:
            lines.append(
                f"- **{plain(code)} {plain(page['name'])}**: {plain(guideline['text'])} "
                f"({plain(guideline['by'])}, {plain(guideline['at'][:10])})"
            )
    return lines if len(lines) > 2 else [*lines, "Nobody added to the guidelines of the taxonomy."]


def _name_list(names: Iterable[str | None]) -> str:
    sorted_names = sorted({name for name in names if name})
    return ", ".join(map(plain, sorted_names)) or "none named"


def _count_list(names: Iterable[str]) -> str:
    return _number_list(Counter(names))


def _number_list(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{plain(name)} {n}" for name, n in sorted(counts.items()) if n) or "none"


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"
