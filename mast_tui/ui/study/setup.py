"""The form by which a study is set up, or changed: its fields, and what they come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace
from rich.cells import cell_len

from mast_tui.columns import padded
from mast_tui.errors import MastError
from mast_tui.labels import checked_person
from mast_tui.safe_text import one_line
from mast_tui.session import (
    anybody_finished,
    check_changes,
    count_reassigned_traces,
    with_sample,
    with_weights,
)
from mast_tui.session.study_setup import STRATA
from mast_tui.study import (
    OpenModes,
    Study,
    annotators_of,
    assigned,
    overlap_traces,
    retest_traces,
    withheld_traces,
)
from mast_tui.traces.model import Trace
from mast_tui.ui.dialogs.form import Field, Form, Texts
from mast_tui.ui.services.open_workspace import OpenWorkspace, people_in
from mast_tui.ui.wording import counted
from mast_tui.workspace.records import TraceRecord


@dataclass(frozen=True, slots=True)
class Lot:
    """Traces that a study can be about: those of the library, which are made known, or the ids of
    such as are."""

    title: str
    ids: tuple[str, ...]
    traces: Sequence[Trace] = ()


SAMPLE: Final = (
    Field(
        "sample",
        "sample",
        "How many of these traces are drawn, each with the same chance. Empty: all of them.",
    ),
    Field(
        "over",
        "spread over",
        f"What the sample is spread over evenly, of: {', '.join(STRATA)}. May stay empty.",
    ),
)
"""How a part of the traces is drawn."""

FIELDS: Final = (
    Field(
        "annotators",
        "annotators",
        "Who labels: names with commas between them. alice=2 is dealt twice as much as others.",
    ),
    Field(
        "adjudicators",
        "adjudicators",
        "Who decides where annotators differ. May stay empty: then anybody may.",
    ),
    Field("per_trace", "per trace", "How many annotators label each trace of the overlap."),
    Field(
        "overlap",
        "overlap",
        "The share of traces that several label; each other trace has one annotator. Agreement "
        "is counted on the overlap.",
    ),
    Field(
        "sight",
        "sight",
        "Blind: judges' suggestions and outcomes are hidden until one finishes. Else they are on "
        "screen.",
        ("blind", "suggestions shown"),
    ),
    Field(
        "withheld",
        "without suggestions",
        "Where suggestions are shown: the share of everybody's traces without them until finished, "
        "drawn at random, so that their pull on people can be measured.",
    ),
    Field(
        "retests",
        "repeat",
        "The share of everybody's finished traces that repeat: they are labelled again, for "
        "agreement with oneself.",
    ),
    Field(
        "open_modes",
        "open modes",
        "What finishing with unread spans does with modes without a verdict. Left open they count "
        "in no figure.",
        ("ask", "leave", "absent"),
    ),
    Field(
        "names",
        "names",
        "Whether adjudication shows whose side is whose before a key asks for it.",
        ("hidden", "shown"),
    ),
    Field(
        "judge",
        "judge",
        "Whether adjudication shows what a judge says only after the decision, or before it too.",
        ("after", "before"),
    ),
    Field(
        "places",
        "places",
        "Whether overlapping places with different ends are a conflict. Separate ones always are.",
        ("no conflict", "conflict"),
    ),
    Field(
        "reasons",
        "reasons",
        "Whether each decision asks for a reason.",
        ("not asked", "asked"),
    ),
    Field("seed", "seed", "Any whole number; it decides who labels what, and in which order."),
)


def texts_of(study: Study | None, people: Sequence[str]) -> dict[str, str]:
    """What the fields begin with: the study as it is, or what suits most for these people."""
    if study is None:
        # What a study has where nothing is said; it has at least as many people as label a trace.
        usual = texts_of(Study("", ("a", "b")), ())
        return {**usual, "annotators": ", ".join(people)}
    return {
        "annotators": ", ".join(_weighted(study, name) for name in study.annotators),
        "adjudicators": ", ".join(study.adjudicators),
        "per_trace": str(study.per_trace),
        "overlap": share_text(study.overlap),
        "withheld": share_text(study.withheld),
        "retests": share_text(study.retests),
        "sight": "blind" if study.blind else "suggestions shown",
        "open_modes": study.open_modes.value,
        "names": "hidden" if study.names_hidden else "shown",
        "judge": "before" if study.judge_first else "after",
        "places": "conflict" if study.boundaries else "no conflict",
        "reasons": "asked" if study.reasons else "not asked",
        "seed": str(study.seed),
    }


def study_of(
    texts: Texts, *, taxonomy: str, before: Study | None, traces: Sequence[str] = ()
) -> Study:
    """Make the study that the fields describe.

    Args:
        texts: What stands in the fields.
        taxonomy: Under which taxonomy, as ``id@version``.
        before: The study as it is, None where there is none.
        traces: The traces it is about, in place of those that it has.

    Raises:
        MastError: A field says what cannot be; it is named.
    """
    weights = _weights(texts["annotators"])
    if not weights:
        raise MastError("annotators: a study needs at least one")
    start = before or Study(taxonomy, tuple(weights), per_trace=1)
    study = replace(
        start,
        batches=(tuple(traces),) if traces else start.batches,
        draws=() if traces else start.draws,
        assignments=() if traces else start.assignments,
        annotators=tuple(weights),
        adjudicators=_names(texts["adjudicators"], "adjudicators"),
        per_trace=_whole(texts["per_trace"], "per trace"),
        overlap=_share(texts["overlap"], "overlap", start.overlap),
        withheld=_share(texts["withheld"], "without suggestions", start.withheld),
        retests=_share(texts["retests"], "repeat", start.retests),
        blind=texts["sight"] == "blind",
        open_modes=OpenModes(texts["open_modes"]),
        names_hidden=texts["names"] == "hidden",
        judge_first=texts["judge"] == "before",
        boundaries=texts["places"] == "conflict",
        reasons=texts["reasons"] == "asked",
        seed=_whole(texts["seed"], "seed"),
    )
    lot = len(study.batches)
    return with_weights(
        study,
        {
            name: weight
            for name, weight in weights.items()
            if name in study.present and weight != study.weight(name, lot)
        },
    )


def _weighted(study: Study, name: str) -> str:
    """A name, with its weight where that is not 1."""
    weight = study.weight(name, len(study.batches))
    return name if weight == 1 and "=" not in name else f"{name}={weight:.10g}"


def _weights(text: str) -> dict[str, float]:
    """The annotators with their weights: ``alice=2, bob``."""
    found: dict[str, float] = {}
    for part in filter(str.strip, text.split(",")):
        told = re.fullmatch(r"(.*)=\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*", part)
        if told is None and "=" in part:
            raise MastError(
                f"annotators: “{one_line(part.strip(), 30)}” is no weight as in alice=2"
            )
        for name in _names(part if told is None else told[1], "annotators"):
            if name in found:
                raise MastError(f"annotators: {name} stands there twice")
            found[name] = 1.0 if told is None else float(told[2])
    return found


def share_text(share: float) -> str:
    """A share as a percentage: ``25 %``."""
    return f"{share * 100:.10g} %"


def _share(text: str, title: str, before: float) -> float:
    if text.strip() == share_text(before):
        return before
    found = re.fullmatch(r"\s*([0-9]{1,12}(?:[.,][0-9]{1,12})?)\s*(%?)\s*", text)
    if found is None:
        raise MastError(f"{title}: “{one_line(text, 20)}” is no share such as 25 %")
    value = float(found[1].replace(",", "."))
    if not found[2] and 0 < value <= 1:
        raise MastError(f"{title}: write {one_line(text, 12)} as a percentage, such as 25 %")
    if value > 100:
        raise MastError(f"{title}: {one_line(text, 20)} is more than all")
    return value / 100


def _whole(text: str, title: str) -> int:
    if not re.fullmatch(r"\s*-?[0-9]{1,15}\s*", text):
        raise MastError(f"{title}: “{one_line(text, 20)}” is no whole number")
    return int(text)


def _names(text: str, title: str) -> tuple[str, ...]:
    try:
        return tuple(checked_person(name) for name in text.split(",") if name.strip())
    except MastError as error:
        raise MastError(f"{title}: {error}") from error


def lots_here(
    library: Sequence[Trace], listed: Sequence[str], known: Sequence[str], before: Study | None
) -> tuple[Lot, ...]:
    """Offer the traces that a study can be about; nothing where no trace is known.

    Args:
        library: The traces at hand.
        listed: The ids of those that the library lists now.
        known: The ids of those that the workspace knows.
        before: The study as it is, None where there is none.
    """
    ids = tuple(sorted(trace.identity.trace_id for trace in library))
    few = tuple(sorted(set(listed)))
    lots = []
    if before is not None:
        lots.append(Lot(f"as they are ({len(before.traces):,})", before.traces))
    if ids:
        lots.append(Lot(f"the library ({len(ids):,})", ids, library))
    if few and set(few) < set(ids):
        some = [trace for trace in library if trace.identity.trace_id in set(few)]
        lots.append(Lot(f"listed there ({len(few):,})", few, some))
    if known and not set(known) <= set(ids):
        lots.append(Lot(f"all that is known ({len(known):,})", tuple(sorted(known))))
    return tuple(lots)


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """A study as it is to be, and the traces it is to be about: None for those that it has."""

    study: Study
    lot: Lot | None


def drawn_from(study: Study, lot: Lot, known: Iterable[TraceRecord], texts: Texts) -> PlannedStudy:
    """Draw the sample that the fields ask for; where they ask for none the study stays.

    Args:
        study: The study as it is to be, about all traces of the lot.
        lot: What is drawn from.
        known: The traces that the workspace knows.
        texts: What stands in the fields.

    Raises:
        MastError: A field says what cannot be; it is named.
    """
    by = tuple(name.strip() for name in texts["over"].split(",") if name.strip())
    if not texts["sample"].strip():
        if by:
            raise MastError("spread over: say under sample how many traces are drawn")
        return PlannedStudy(study, lot)
    n = _whole(texts["sample"], "sample")
    if n < 1:
        raise MastError("sample: at least one trace is drawn")
    ids = frozenset(lot.ids)
    records = [_record_of(trace) for trace in lot.traces]
    records = records or [one for one in known if one.trace_id in ids]
    try:
        sampled = with_sample(replace(study, batches=(), draws=()), records, n, by=by)
    except MastError as error:
        raise MastError(f"sample: {error}") from error
    chosen = frozenset(sampled.traces)
    some = [trace for trace in lot.traces if trace.identity.trace_id in chosen]
    return PlannedStudy(sampled, Lot(lot.title, sampled.traces, some))


def _record_of(trace: Trace) -> TraceRecord:
    """What a sample can be spread over, without a look at the trace's spans."""
    meta = trace.meta
    return TraceRecord(
        trace.identity.trace_id,
        spans=len(trace) if trace.loaded.complete else None,
        system=meta.system,
        model=meta.model,
        benchmark=meta.benchmark,
        outcome=meta.outcome,
    )


EFFECTS: Final[Mapping[str, str]] = {
    "blind": "Annotators work so from now on, also on traces that are open.",
    "withheld": "Which traces are without suggestions is drawn anew.",
    "retests": "Which finished traces repeat is drawn anew; what has come back stays done.",
    "open_modes": "Finishes from now on follow it; what is finished stays as it is.",
    "judge_first": "Adjudication shows the judge so from now on.",
    "names_hidden": "Adjudication shows names so from now on.",
    "boundaries": "What is left to decide is counted anew; decisions stay.",
    "reasons": "Decisions from now on follow it; earlier ones stay as they are.",
}
"""What a changed part of the protocol does to work that is under way, by its field."""


def preview_words(
    before: Study | None,
    after: Study,
    *,
    changed: Sequence[tuple[str, str, str]] = (),
    away: Mapping[str, int] | None = None,
    finished: bool = False,
) -> str:
    """Say what a study comes to before it is set up.

    Args:
        before: The study as it is, None where there is none.
        after: The study as it is to be.
        changed: What changes: the title of each field, what stood there, and what is to.
        away: By name how many traces somebody has begun and no longer gets.
        finished: Whether somebody has finished a trace under the study.
    """
    if before == after:
        return "Nothing changes."
    dealt = assignment_words(before, after).split("\n")
    if before is not None and _dealt_alike(before, after):
        dealt = ["Who labels what stays as it is."]
    parts = [[f"{title}: {was or 'nobody'} → {now or 'nobody'}" for title, was, now in changed]]
    parts += [dealt, work_words(before, after, away or {})]
    if finished:
        last = "Traces have been finished, so what figures rest on stays; this may still change."
    else:
        last = (
            "All of this may be changed until somebody finishes a trace. From then on only further "
            "lots, adjudicators, repeats and how adjudication goes."
        )
    parts.append([last])
    return "\n\n".join("\n".join(one_line(line) for line in part) for part in parts if part)


def assignment_words(before: Study | None, after: Study) -> str:
    """Say on lines who would label how much, and of whom it is less or more than before.

    Args:
        before: The study as it is, None where there is none.
        after: The study as it is to be.
    """
    shared = overlap_traces(after)
    count, several = len(after.traces), frozenset(shared)
    who = "each of them"
    if after.per_trace < len(after.annotators):
        who = f"{after.per_trace} of {len(after.annotators)}"
    by_one = count - len(shared)
    lines = [f"{counted(count, 'trace')}: {len(shared):,} labelled by {who}, {by_one:,} by one."]
    if not by_one:
        lines = [f"{counted(count, 'trace')}, labelled by {who}."]
    elif not shared:
        lines = [f"{counted(count, 'trace')}, each labelled by one."]
    wide = max(cell_len(one_line(name)) for name in after.annotators)
    for name in after.annotators:
        own = assigned(after, name)
        was = len(own) if before is None else len(assigned(before, name))
        so_far = f"{was:,} → " if was != len(own) else ""
        told = [f"{padded(one_line(name), wide)}  {so_far}{counted(len(own), 'trace')}"]
        together = sum(one in several for one in own)
        if together not in (0, len(own)):
            told.append(f"{together:,} with others")
        held, again = len(withheld_traces(after, name)), len(retest_traces(after, name))
        told += [f"{held:,} without suggestions"] if held else []
        told += [f"{again:,} repeat{'s' if again == 1 else ''}"] if again else []
        lines.append(one_line(" · ".join(told)))
    return "\n".join(lines)


def work_words(before: Study | None, after: Study, away: Mapping[str, int]) -> list[str]:
    """Say what changes for work that is under way, a line each.

    Args:
        before: The study as it is, None where there is none.
        after: The study as it is to be.
        away: By name how many traces somebody has begun and no longer gets.
    """
    if before is None:
        return ["Everybody's queue holds what is theirs from now on, in an order of their own."]
    lines = []
    if not _dealt_alike(before, after):
        lines.append("Queues are dealt anew from now on; no label is lost.")
    lines += [
        f"{name} has begun {counted(count, 'trace')} that would no longer be theirs."
        for name, count in sorted(away.items())
    ]
    lines += [
        words for field, words in EFFECTS.items() if getattr(before, field) != getattr(after, field)
    ]
    if set(before.adjudicators) != set(after.adjudicators):
        lines.append("Who decides changes from now on; decisions stay.")
    return lines


def _dealt_alike(before: Study, after: Study) -> bool:
    return before.traces == after.traces and all(
        annotators_of(before, one) == annotators_of(after, one) for one in after.traces
    )


class StudySetup(Form):
    """Asks for a study, shows what it comes to, and gives it to ``answered`` once that is agreed.

    ``answered`` writes it. What cannot be is said at its field, and the form stays.
    """

    def __init__(
        self,
        opened: OpenWorkspace,
        before: Study | None,
        lots: Sequence[Lot],
        answered: Callable[[PlannedStudy], None],
    ) -> None:
        """Ask for a study, or a change of it.

        Args:
            opened: The workspace, and who works in it.
            before: The study as it is, None where there is none.
            lots: The traces it can be about, those that it has first.
            answered: Is given the study, once it is agreed to.
        """
        self._lots = {lot.title: lot for lot in lots}
        traces = Field(
            "traces",
            "traces",
            "Which traces it is about. In a study that is under way it is better to take in "
            "further ones, which changes nothing for the earlier ones."
            if before
            else "Which traces it is about: those at hand, of these what the library lists after "
            "a filter, or all that the workspace knows.",
            tuple(self._lots),
        )
        texts = {**texts_of(before, people_in(opened.workspace)), "traces": lots[0].title}
        texts |= dict.fromkeys((field.name for field in SAMPLE), "")
        title = "Set a study up" if before is None else "Change the study"
        super().__init__(title, (*FIELDS[:2], traces, *FIELDS[2:], *SAMPLE), texts)
        self._opened = opened
        self._before = before
        self._answered = answered

    def wanted(self, texts: Texts) -> PlannedStudy:
        """Make the study of the fields; what cannot be is raised."""
        before, lot = self._before, self._lots[texts["traces"]]
        stays = before is not None and lot.ids == before.traces
        study = study_of(
            texts,
            taxonomy=self._opened.taxonomy.ref,
            before=before,
            traces=() if stays else lot.ids,
        )
        workspace = self._opened.workspace
        found = PlannedStudy(study, None)
        if not stays:
            found = drawn_from(study, lot, workspace.traces(), texts)
        elif texts["sample"].strip() or texts["over"].strip():
            raise MastError("sample: choose under traces what it is drawn from")
        check_changes(workspace, found.study)
        return found

    async def take(self, texts: Texts) -> None:
        """Show what the study comes to; Enter there sets it up."""
        words = await self.mast.writes.run(partial(self._preview, texts))
        if not words:
            self.refuse("Nothing is changed yet; Esc leaves the study as it is")
            return
        does = "sets it up" if self._before is None else "changes it"
        self.show_words(
            words,
            f"Enter {does} · ↑ ↓ scroll · Esc back to the fields",
            then=partial(self.mast.writes.do, self._answer),
        )

    def _preview(self, texts: Texts) -> str:
        """Return what the study of the fields comes to, empty where nothing is changed."""
        wanted, before, workspace = self.wanted(texts), self._before, self._opened.workspace
        if wanted.study == before:
            return ""
        was = {} if before is None else {**self._texts}
        changed = [
            (field.title, was[field.name], texts[field.name].strip())
            for field in self._fields
            if before is not None and was[field.name].strip() != texts[field.name].strip()
        ]
        return preview_words(
            before,
            wanted.study,
            changed=changed,
            away=count_reassigned_traces(workspace, wanted.study),
            finished=before is not None and anybody_finished(workspace, before),
        )

    async def _answer(self) -> None:
        try:
            wanted = await self.mast.writes.run(partial(self.wanted, self.texts))
        except MastError as error:
            self.refuse(str(error))
            return
        self.dismiss(None)
        self._answered(wanted)
