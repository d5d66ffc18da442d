"""The form that sets up or changes a study, and the preview of the result."""

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
from mast_tui.safe_text import one_line
from mast_tui.session import (
    check_changes,
    count_reassigned_traces,
    earlier_work_text,
    finished_in_study,
    outside_work_text,
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
from mast_tui.ui.dialogs.form import Field, Form, Texts, names_between_commas
from mast_tui.ui.services.open_workspace import OpenWorkspace, people_in
from mast_tui.ui.wording import counted, joined_names
from mast_tui.workspace.records import TraceRecord


@dataclass(frozen=True, slots=True)
class TraceSelection:
    """Traces for a study.

    Attributes:
        title: The title of the selection, with the number of traces.
        ids: The ids of the traces.
        traces: The traces to register; empty if they are registered already.
    """

    title: str
    ids: tuple[str, ...]
    traces: Sequence[Trace] = ()


SAMPLE: Final = (
    Field(
        "sample",
        "sample",
        "How many of the traces to draw, each with the same chance. Empty: all of them.",
        placeholder="all of them",
    ),
    Field(
        "over",
        "spread over",
        f"Draw the same share of each combination of some of: {', '.join(STRATA)}. Empty: draw "
        "from all together (--stratify).",
    ),
)
"""The fields for a sample of the traces."""

FIELDS: Final = (
    Field(
        "annotators",
        "annotators",
        "Who labels: names with commas between them. alice=2 gets twice as many traces.",
    ),
    Field(
        "adjudicators",
        "adjudicators",
        "Who decides conflicts. Empty: anyone.",
    ),
    Field("per_trace", "per trace", "How many annotators label each trace of the overlap."),
    Field(
        "overlap",
        "overlap",
        "The share of traces with several annotators; each other trace has one. Agreement is "
        "counted on the overlap.",
    ),
    Field(
        "sight",
        "visibility",
        "Blind hides suggestions and outcomes of a trace until the annotator finishes it and asks "
        "for them (--blind, --assisted).",
        ("blind", "suggestions shown"),
    ),
    Field(
        "withheld",
        "without suggestions",
        "If suggestions are shown: the random share of each annotator's traces that hides them, "
        "to measure how far suggestions influence people (--withhold).",
    ),
    Field(
        "retests",
        "retest",
        "The share of each annotator's traces that they label again later, to measure how far "
        "they agree with themselves.",
    ),
    Field(
        "open_modes",
        "open modes",
        "With unread spans, finishing asks about open modes (without a verdict), leaves them open "
        "(in no figure), or sets them absent.",
        ("ask", "leave", "absent"),
    ),
    Field(
        "names",
        "annotators' names",
        "In adjudication, hidden names are letters until a key shows them (--names).",
        ("hidden", "shown"),
    ),
    Field(
        "judge",
        "judge shown",
        "Adjudicators see what a judge says only after their decision, or also before it "
        "(--judge-in-adjudication).",
        ("after", "before"),
    ),
    Field(
        "places",
        "overlapping places",
        "Overlapping places with different ends are a conflict or not (--boundaries). Separate "
        "places always are.",
        ("no conflict", "conflict"),
    ),
    Field(
        "reasons",
        "reasons",
        "Each decision of an adjudicator asks for a reason, or not.",
        ("not asked", "asked"),
    ),
    Field(
        "redact",
        "personal data",
        "Personal data and secrets in traces: as recorded, or masks such as ▒email·k3f9q▒ in their "
        "place (--redact).",
        ("as recorded", "masked"),
    ),
    Field("seed", "seed", "A whole number. It determines who labels what, and in which order."),
)


def texts_of(study: Study | None, people: Sequence[str]) -> dict[str, str]:
    """Return the initial texts of the fields, by field name.

    Args:
        study: The study to change; None for the defaults of a new study.
        people: The names of the annotators of a new study.
    """
    if study is None:
        # A study needs at least two annotators, so these stand in for the real names.
        default_texts = texts_of(Study("", annotators=("a", "b")), people=())
        return {**default_texts, "annotators": ", ".join(people)}
    return {
        "annotators": ", ".join(_name_with_weight(study, name) for name in study.annotators),
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
        "redact": "masked" if study.redact else "as recorded",
        "seed": str(study.seed),
    }


def study_of(
    texts: Texts, *, taxonomy: str, previous: Study | None, traces: Sequence[str] = ()
) -> Study:
    """Make the study that the fields describe.

    Args:
        texts: The texts of the fields.
        taxonomy: The taxonomy, as ``id@version``.
        previous: The study before the change; None for a new study.
        traces: The ids of its traces; empty to keep the previous ones.

    Raises:
        MastError: A field is wrong; the message names it.
    """
    weights = _parsed_weights(texts["annotators"])
    if not weights:
        raise MastError("annotators: a study needs at least one")
    base_study = previous or Study(taxonomy, annotators=tuple(weights), per_trace=1)
    study = replace(
        base_study,
        batches=(tuple(traces),) if traces else base_study.batches,
        draws=() if traces else base_study.draws,
        assignments=() if traces else base_study.assignments,
        annotators=tuple(weights),
        adjudicators=names_between_commas(texts["adjudicators"], "adjudicators"),
        per_trace=_parsed_whole_number(texts["per_trace"], "per trace"),
        overlap=_parsed_share(texts["overlap"], "overlap", base_study.overlap),
        withheld=_parsed_share(texts["withheld"], "without suggestions", base_study.withheld),
        retests=_parsed_share(texts["retests"], "retest", base_study.retests),
        blind=texts["sight"] == "blind",
        open_modes=OpenModes(texts["open_modes"]),
        names_hidden=texts["names"] == "hidden",
        judge_first=texts["judge"] == "before",
        boundaries=texts["places"] != "no conflict",
        reasons=texts["reasons"] == "asked",
        redact=texts["redact"] == "masked",
        seed=_parsed_whole_number(texts["seed"], "seed"),
    )
    return _with_changed_weights(study, weights)


def _with_changed_weights(study: Study, weights: Mapping[str, float]) -> Study:
    """Return the study with the changed weights of its annotators."""
    batch_number = len(study.batches)
    changed_weights = {  # Annotators who get no more traces have no weight to change.
        name: weight
        for name, weight in weights.items()
        if name in study.present and weight != study.weight(name, batch_number)
    }
    return with_weights(study, changed_weights)


def _name_with_weight(study: Study, name: str) -> str:
    """Return the name of an annotator, with a weight other than 1: ``alice=2``."""
    weight = study.weight(name, len(study.batches))
    return name if weight == 1 and "=" not in name else f"{name}={weight:.10g}"


def _parsed_weights(text: str) -> dict[str, float]:
    """Return the weights of annotators, such as ``alice=2, bob``.

    A weight is in proportion to the number of traces.
    """
    weights: dict[str, float] = {}
    for part in filter(str.strip, text.split(",")):
        match = re.fullmatch(r"(?P<name>.*)=\s*(?P<weight>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*", part)
        if match is None and "=" in part:
            raise MastError(
                f"annotators: “{one_line(part.strip(), 30)}” is not a weight such as alice=2"
            )
        # A part has one name, or none in “=2”.
        for name in names_between_commas(part if match is None else match["name"], "annotators"):
            if name in weights:
                raise MastError(f"annotators: {name} is listed twice")
            weights[name] = 1.0 if match is None else float(match["weight"])
    return weights


def share_text(share: float) -> str:
    """Return a share as a percentage: ``25 %``."""
    return f"{share * 100:.10g} %"


def _parsed_share(text: str, title: str, previous: float) -> float:
    """Return a share between 0 and 1 from a percentage.

    If the text is unchanged, the previous share is returned exactly.
    """
    if text.strip() == share_text(previous):
        return previous
    number = r"(?P<number>[0-9]{1,12}(?:[.,][0-9]{1,12})?)"
    match = re.fullmatch(rf"\s*{number}\s*(?P<percent>%?)\s*", text)
    if match is None:
        raise MastError(f"{title}: “{one_line(text, 20)}” is not a share such as 25 %")
    value = float(match["number"].replace(",", "."))
    if not match["percent"] and 0 < value <= 1:
        raise MastError(f"{title}: write {one_line(text, 12)} as a percentage, such as 25 %")
    if value > 100:
        raise MastError(f"{title}: {one_line(text, 20)} is more than 100 %")
    return value / 100


def _parsed_whole_number(text: str, title: str) -> int:
    if not re.fullmatch(r"\s*-?[0-9]{1,15}\s*", text):
        raise MastError(f"{title}: “{one_line(text, 20)}” is not a whole number")
    return int(text)


def trace_selections(
    library: Sequence[Trace],
    listed: Sequence[str],
    registered: Sequence[str],
    previous: Study | None,
) -> tuple[TraceSelection, ...]:
    """Return the selections of traces that a study can have; empty if there are no traces.

    The first selection is that of the present study, if there is one.

    Args:
        library: The traces of the library.
        listed: The ids of the traces that the library lists now.
        registered: The ids of the traces in the workspace.
        previous: The study before the change; None for a new study.
    """
    library_ids = tuple(sorted(trace.identity.trace_id for trace in library))
    listed_ids = tuple(sorted(set(listed)))
    selections = []
    if previous is not None:
        selections.append(
            TraceSelection(f"as they are ({len(previous.traces):,})", previous.traces)
        )
    if library_ids:
        title = f"in the library ({len(library_ids):,})"
        selections.append(TraceSelection(title, library_ids, library))
    if listed_ids and set(listed_ids) < set(library_ids):
        traces = [trace for trace in library if trace.identity.trace_id in set(listed_ids)]
        title = f"listed in the library ({len(listed_ids):,})"
        selections.append(TraceSelection(title, listed_ids, traces))
    if registered and not set(registered) <= set(library_ids):
        all_ids = tuple(sorted(registered))
        selections.append(TraceSelection(f"in the workspace ({len(registered):,})", all_ids))
    return tuple(selections)


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """A study to set up, and its traces.

    A ``selection`` of None keeps the present traces.
    """

    study: Study
    selection: TraceSelection | None


def draw_sample(
    study: Study, selection: TraceSelection, records: Iterable[TraceRecord], texts: Texts
) -> PlannedStudy:
    """Return the study of a sample of its traces, or of all if no sample size is given.

    Args:
        study: The study with all traces of the selection.
        selection: The traces to draw from.
        records: The traces in the workspace.
        texts: The texts of the form's fields.

    Raises:
        MastError: A field is wrong; the message names it.
    """
    strata = tuple(name.strip() for name in texts["over"].split(",") if name.strip())
    if not texts["sample"].strip():
        if strata:
            raise MastError("spread over: fill in the field “sample” too")
        return PlannedStudy(study, selection)
    sample_size = _parsed_whole_number(texts["sample"], "sample")
    if sample_size < 1:
        raise MastError("sample: draw at least one trace")
    selected_ids = frozenset(selection.ids)
    population = [_record_of(trace) for trace in selection.traces]
    if not population:
        population = [record for record in records if record.trace_id in selected_ids]
    empty_study = replace(study, batches=(), draws=())  # the sample becomes its first batch
    try:
        new_study = with_sample(empty_study, population, sample_size, by=strata)
    except MastError as error:
        raise MastError(f"sample: {error}") from error
    sampled_ids = frozenset(new_study.traces)
    traces = [trace for trace in selection.traces if trace.identity.trace_id in sampled_ids]
    return PlannedStudy(new_study, TraceSelection(selection.title, new_study.traces, traces))


def _record_of(trace: Trace) -> TraceRecord:
    """Return a record of a trace with the facts for stratified samples.

    The spans of the trace are not read.
    """
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
    "blind": "The visibility changes for annotators from now on, also on open traces.",
    "withheld": "The traces without suggestions are drawn again.",
    "retests": "The traces of the retest are drawn again; finished retests stay finished.",
    "open_modes": "The rule for open modes holds for traces that are finished from now on.",
    "judge_first": "The rule for the judge holds in adjudication from now on.",
    "names_hidden": "The rule for names holds in adjudication from now on.",
    "boundaries": "Open conflicts are counted again; decisions stay.",
    "reasons": "The rule for reasons holds for decisions from now on.",
    "redact": "Masking changes at once. Quotes in labels made before stay as they are.",
}
"""The effect of a change of the protocol on present work, by field."""


EARLY_LIMIT: Final = (
    "You can change all of this until someone finishes a trace. After that you can only "
    "add traces, name adjudicators, and change retests and the settings of adjudication."
)
LATE_LIMIT: Final = (
    "Someone has finished a trace, so settings that the figures depend on are fixed. This "
    "change is still allowed."
)


def preview_text(
    previous: Study | None,
    planned: Study,
    *,
    changed: Sequence[tuple[str, str, str]] = (),
    lost_traces: Mapping[str, int] | None = None,
    outside_text: str = "",
    limit: str = EARLY_LIMIT,
) -> str:
    """Describe a study before it is set up.

    Args:
        previous: The study before the change; None for a new study.
        planned: The study to set up.
        changed: The title of each changed field, with its old and new text.
        lost_traces: The number of begun traces that each annotator loses, by name.
        outside_text: Sentences on work that does not count in the study; empty for none.
        limit: A sentence on the settings that can change later.
    """
    if previous == planned:
        return "Nothing changes."
    assignment = assignment_text(previous, planned)
    if previous is not None and _has_same_assignment(previous, planned):
        assignment = "Who labels what stays as it is."
    change_lines = [
        f"{title}: {old_text or 'no one'} → {new_text or 'no one'}"
        for title, old_text, new_text in changed
    ]
    effects = effect_lines(previous, planned, lost_traces or {})
    if outside_text:
        effects.append(outside_text)
    paragraphs = [change_lines, assignment.split("\n"), effects, [limit]]
    return "\n\n".join("\n".join(map(one_line, lines)) for lines in paragraphs if lines)


def assignment_text(previous: Study | None, planned: Study) -> str:
    """Return lines with the number of traces of each annotator, and its change.

    Args:
        previous: The study before the change; None for a new study.
        planned: The study to set up.
    """
    shared_ids = frozenset(overlap_traces(planned))
    labelled_by = "every annotator"
    if planned.per_trace < len(planned.annotators):
        labelled_by = f"{planned.per_trace} of {len(planned.annotators)} annotators"
    count_text = counted(len(planned.traces), "trace")
    single_count = len(planned.traces) - len(shared_ids)
    lines = [
        f"{count_text}: {len(shared_ids):,} labelled by {labelled_by}, {single_count:,} by one."
    ]
    if not single_count:
        lines = [f"{count_text}, each labelled by {labelled_by}."]
    elif not shared_ids:
        lines = [f"{count_text}, each labelled by one annotator."]
    name_cells = max(cell_len(one_line(name)) for name in planned.annotators)
    for name in planned.annotators:
        counts = _assignment_counts(previous, planned, name)
        lines.append(one_line(f"{padded(one_line(name), name_cells)}  {counts}"))
    return "\n".join(lines)


def _assignment_counts(previous: Study | None, planned: Study, name: str) -> str:
    """Return the number of an annotator's traces, its change, and the traces with conditions."""
    assigned_ids = assigned(planned, name)
    previous_count = len(assigned_ids) if previous is None else len(assigned(previous, name))
    change_text = f"{previous_count:,} → " if previous_count != len(assigned_ids) else ""
    parts = [f"{change_text}{counted(len(assigned_ids), 'trace')}"]
    shared_count = len(frozenset(overlap_traces(planned)).intersection(assigned_ids))
    if shared_count not in (0, len(assigned_ids)):
        parts.append(f"{shared_count:,} shared")
    withheld_count = len(withheld_traces(planned, name))
    if withheld_count:
        parts.append(f"{withheld_count:,} without suggestions")
    retest_count = len(retest_traces(planned, name))
    if retest_count:
        parts.append(counted(retest_count, "retest"))
    return " · ".join(parts)


def effect_lines(
    previous: Study | None, planned: Study, lost_traces: Mapping[str, int]
) -> list[str]:
    """Return a line for each effect of a change on present work.

    Args:
        previous: The study before the change; None for a new study.
        planned: The study to set up.
        lost_traces: The number of begun traces that each annotator loses, by name.
    """
    if previous is None:
        return ["From now on each annotator has a queue of their own traces, in their own order."]
    lines = []
    if not _has_same_assignment(previous, planned):
        lines.append("The traces are assigned again; no label is lost.")
    lines += [
        f"{name} has begun {counted(count, 'trace')} that would no longer be theirs."
        for name, count in sorted(lost_traces.items())
    ]
    lines += [
        effect
        for field, effect in EFFECTS.items()
        if getattr(previous, field) != getattr(planned, field)
    ]
    if set(previous.adjudicators) != set(planned.adjudicators):
        lines.append("The adjudicators change from now on; decisions stay.")
    return lines


def _has_same_assignment(previous: Study, planned: Study) -> bool:
    return previous.traces == planned.traces and all(
        annotators_of(previous, trace_id) == annotators_of(planned, trace_id)
        for trace_id in planned.traces
    )


_TRACES_TO_SET_UP: Final = (
    "The traces of the study: all in the library, those that match its filter, or all in the "
    "workspace."
)
_TRACES_TO_CHANGE: Final = (
    "The traces of the study. Add later ones on the study screen: then earlier traces stay as "
    "assigned."
)


class StudySetup(Form):
    """The form for a study, with a preview. It stays open until the study is written."""

    enter_effect = "shows the result"

    def __init__(
        self,
        opened: OpenWorkspace,
        previous: Study | None,
        selections: Sequence[TraceSelection],
        write: Callable[[PlannedStudy], str],
        written: Callable[[str], None],
    ) -> None:
        """Make the form for a new study, or for a change.

        Args:
            opened: The open workspace.
            previous: The study before the change; None for a new study.
            selections: The selections of traces. The first one is the initial choice.
            write: Writes the study that the user has accepted, and returns a message. It is
                called in a thread.
            written: Receives the message of ``write`` once the form is closed.
        """
        self._selection_by_title = {selection.title: selection for selection in selections}
        title = "Change the study" if previous else "Set a study up"
        traces_help = _TRACES_TO_CHANGE if previous else _TRACES_TO_SET_UP
        traces_field = Field("traces", "traces", traces_help, tuple(self._selection_by_title))
        texts = {**texts_of(previous, people_in(opened.workspace)), "traces": selections[0].title}
        texts |= dict.fromkeys((field.name for field in SAMPLE), "")
        annotators_field, adjudicators_field, *rule_fields = FIELDS
        fields = (annotators_field, adjudicators_field, traces_field, *rule_fields, *SAMPLE)
        super().__init__(title, fields, texts)
        self._opened = opened
        self._previous = previous
        self._write = write
        self._written = written

    def planned_study(self, texts: Texts) -> PlannedStudy:
        """Return the study that the fields describe.

        Raises:
            MastError: A field is wrong; the message names it.
        """
        selection = self._selection_by_title[texts["traces"]]
        keeps_traces = self._previous is not None and selection.ids == self._previous.traces
        study = study_of(
            texts,
            taxonomy=self._opened.taxonomy.ref,
            previous=self._previous,
            traces=() if keeps_traces else selection.ids,
        )
        workspace = self._opened.workspace
        planned = PlannedStudy(study, selection=None)
        if not keeps_traces:
            planned = draw_sample(study, selection, workspace.traces(), texts)
        # Without new traces there is nothing to draw from.
        elif texts["sample"].strip() or texts["over"].strip():
            raise MastError("sample: choose other traces in the field “traces” to draw from")
        check_changes(workspace, planned.study)
        return planned

    async def take(self, texts: Texts) -> None:
        """Show the preview of the study, where Enter sets it up; refuse an unchanged study."""
        preview = await self.mast.writes.run(partial(self._preview_text, texts))
        if not preview:
            self.refuse("Nothing is changed yet; Esc leaves the study as it is")
            return
        action = "sets it up" if self._previous is None else "changes it"
        self.show_text(
            preview,
            f"Enter {action} · ↑ ↓ scroll · Esc back to the fields",
            on_enter=self._accept_study,
        )

    def _preview_text(self, texts: Texts) -> str:
        """Return the preview of the study; an empty text if nothing is changed."""
        study = self.planned_study(texts).study
        previous = self._previous
        workspace = self._opened.workspace
        if study == previous:
            return ""
        changed_fields = [
            (field.title, self._texts[field.name], texts[field.name].strip())
            for field in self._fields
            if previous is not None and self._texts[field.name].strip() != texts[field.name].strip()
        ]
        known_names = {*people_in(workspace), *(() if previous is None else previous.participants)}
        new_names = [one_line(name) for name in study.participants if name not in known_names]
        new_text = (
            f"New names in this workspace: {joined_names(new_names)}.\n\n" if new_names else ""
        )
        return new_text + preview_text(
            previous,
            study,
            changed=changed_fields,
            lost_traces=count_reassigned_traces(workspace, study),
            outside_text=outside_work_text(workspace, study),
            limit=LATE_LIMIT
            if previous is not None and finished_in_study(workspace, previous)
            else earlier_work_text(workspace, study) or EARLY_LIMIT,
        )

    def _accept_study(self) -> None:
        """Write the study in a worker, then close the form. An error returns to the fields."""
        texts = self.texts
        self.show_text("Setting the study up …", "", on_escape=lambda: None)
        self.work.run(
            "write", lambda: self._write(self.planned_study(texts)), self._close, self.refuse
        )

    def _close(self, message: str) -> None:
        self.dismiss(None)
        self._written(message)
