"""The labels and outcomes of a workspace as the input of failure signatures and of experiments."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_tui.errors import WorkspaceError
from mast_tui.figures.bootstrap import Floats
from mast_tui.figures.experiment import Experiment
from mast_tui.figures.signatures.costs import UsageOf
from mast_tui.figures.signatures.model import (
    ALL,
    FAILED,
    NO_VALUE,
    OPEN,
    SUCCEEDED,
    UNKNOWN,
    Integers,
    Places,
    SignatureInput,
)
from mast_tui.figures.source.verdicts import (
    GoldOf,
    LabelledTraces,
    labelled_by,
    labelled_by_gold,
)
from mast_tui.gold.model import GoldKind
from mast_tui.gold.overlaps import Order, no_orders
from mast_tui.labels import GOLD
from mast_tui.traces.model import Outcome, task_key
from mast_tui.workspace.paths import absolute_path

if TYPE_CHECKING:
    from mast_tui.configuration import Prices
    from mast_tui.study import Study
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.traces.model import Named
    from mast_tui.workspace import Workspace

FIELDS: Final = ("model", "system", "benchmark", "task", "reader", "version", "date")
"""The fields of traces that can define groups; the date is the day in UTC."""

_COLUMN_NAMES: Final = {"date": "started"}

BETWEEN: Final = " · "
"""The separator of values in the name of a group by several fields."""

_OUTCOMES: Final = {Outcome.FAILED.value: FAILED, Outcome.SUCCEEDED.value: SUCCEEDED}


def input_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    labels: str = GOLD,
    by: str = "model",
    failed_below: float | None = None,
    gold: GoldOf,
    order_of: Callable[[str], Order] = no_orders,
    traces: Container[str] | None = None,
    which: GoldKind = "all",
    with_unlabelled: bool = False,
) -> SignatureInput:
    """Read the labels, outcomes and groups of traces for a report on failure signatures.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        labels: ``gold``, or the name of an annotator.
        by: The grouping: ``all``, or one or several of ``FIELDS`` with commas between.
        failed_below: The score below which a trace has failed; other traces with a score have
            succeeded. None for the recorded outcomes.
        gold: Returns the gold of traces.
        order_of: Returns the order of a trace's spans.
        traces: The ids of the traces whose labels may be shown; None for all.
        which: The part of the gold that counts.
        with_unlabelled: Whether to add all other traces, with every mode open. Then no trace has a
            weight, because all of them count.

    Raises:
        WorkspaceError: There is no such field, or no such annotator.
    """
    fields = fields_of(by)
    study = _sampled_study(workspace, taxonomy, labels)
    is_weighted = (
        study is not None and not with_unlabelled and study.trace_weights(study.traces) is not None
    )
    if study is not None and is_weighted:
        # Traces outside the study have no weight, so they are left out.
        traces = frozenset(trace for trace in study.traces if traces is None or trace in traces)
    if labels == GOLD:
        labelled = labelled_by_gold(workspace, taxonomy, gold, order_of, traces, which)
    else:
        labelled = labelled_by(workspace, taxonomy, labels, traces)
    if with_unlabelled:
        labelled = _with_unlabelled(workspace, labelled)
    facts = _facts_of_traces(workspace, labelled.traces, fields)
    groups = _group_traces([trace.fields for trace in facts], fields)
    models = _numbered([trace.model for trace in facts])
    tasks = _numbered([trace.task_key for trace in facts])
    known_places = _known_places(labelled, order_of)
    return SignatureInput(
        taxonomy_ref=taxonomy.ref,
        modes=taxonomy.modes,
        categories=taxonomy.at_level(0),
        levels=taxonomy.by_level,
        by=",".join(fields) or ALL,
        label_source=labels,
        label_source_kind=labelled.source_kind,
        traces=labelled.traces,
        group_names=groups.names,
        group=np.array(groups.numbers, dtype=np.int64),
        group_parts=groups.parts,
        outcome=_outcomes(facts, failed_below),
        score=np.array([trace.score for trace in facts], dtype=float),
        verdicts=labelled.verdicts,
        spans=_integers_or_unknown([trace.spans for trace in facts]),
        places=known_places,
        whole_trace_labels=labelled.labels.whole_trace_labels.total(),
        labels_on_unknown_spans=len(labelled.labels.placed) - len(known_places.trace),
        failed_below=failed_below,
        gold=labelled.mix,
        unfinished=labelled.unfinished,
        stratum_numbers=models.numbers,
        stratum_names=models.values,
        task_numbers=tasks.numbers,
        task_keys=tasks.values,
        task_from_text=np.array(
            [not trace.task_id and trace.task_key is not None for trace in facts], dtype=bool
        ),
        trial_numbers=_integers_or_unknown([trace.trial for trace in facts]),
        weights=_trace_weights(study, labelled.traces) if study and is_weighted else None,
        has_unknown_weights=study is not None and not is_weighted,
    )


def _trace_weights(study: Study, traces: Sequence[str]) -> Floats:
    """Return the number of traces of the study that each of these traces represents."""
    weight_by_trace = study.trace_weights(frozenset(traces)) or {}
    return np.array([weight_by_trace[trace] for trace in traces])


def _outcomes(facts: Sequence[_TraceFacts], failed_below: float | None) -> NDArray[np.int8]:
    """Return the outcome of each trace: as recorded, or by its score if there is a limit."""
    if failed_below is None:
        return np.array([_OUTCOMES.get(trace.outcome, UNKNOWN) for trace in facts], dtype=np.int8)
    score = np.array([trace.score for trace in facts], dtype=float)
    conditions = [np.isnan(score), score < failed_below]
    return np.select(conditions, [UNKNOWN, FAILED], SUCCEEDED).astype(np.int8)


def _integers_or_unknown(values: Sequence[int | None]) -> Integers:
    """Return numbers as an array, -1 for None."""
    return np.array([-1 if value is None else value for value in values], dtype=np.int64)


def _with_unlabelled(workspace: Workspace, labelled: LabelledTraces) -> LabelledTraces:
    """Add the traces without visible labels, with every mode open."""
    all_ids = workspace.read_columns(
        "traces", ("id",), lambda rows: [trace_id for (trace_id,) in rows]
    )
    labelled_ids = set(labelled.traces)
    unlabelled = [trace for trace in sorted(all_ids) if trace not in labelled_ids]
    open_verdicts = np.full((len(unlabelled), labelled.verdicts.shape[1]), OPEN, dtype=np.uint8)
    return replace(
        labelled,
        traces=(*labelled.traces, *unlabelled),
        verdicts=np.concatenate([labelled.verdicts, open_verdicts]),
    )


def _sampled_study(workspace: Workspace, taxonomy: Taxonomy, label_source: str) -> Study | None:
    """Return the study of the labels if it draws traces with different chances, else None."""
    study = workspace.study(taxonomy.ref)
    if study is None or study.chances_alike:
        return None
    return study if label_source == GOLD or label_source in study.annotators else None


def fields_of(by: str) -> tuple[str, ...]:
    """Return the fields of a grouping, in the same order; none for ``all``.

    Args:
        by: ``all``, one of ``FIELDS``, or several of them with commas between.

    Raises:
        WorkspaceError: There is no such field, or it is named twice.
    """
    fields = tuple(name.strip() for name in by.split(","))
    if fields == (ALL,):
        return ()
    for index, field in enumerate(fields):
        if field == ALL:
            raise WorkspaceError(f"{by}: all cannot be combined with other fields")
        if field not in FIELDS:
            valid = ", ".join((*FIELDS, ALL))
            raise WorkspaceError(f"traces cannot be grouped by {field!r}; use {valid}")
        if field in fields[:index]:
            raise WorkspaceError(f"{by}: {field} is named twice")
    return fields


def without_outcomes(
    signature_input: SignatureInput, visible: Container[str] | None
) -> tuple[SignatureInput, int]:
    """Return a copy without the outcomes and scores of hidden traces, and the number of these.

    Args:
        signature_input: The input of a report.
        visible: The traces whose outcome may be shown; None for all.
    """
    if visible is None:
        return signature_input, 0
    hidden = np.array([trace not in visible for trace in signature_input.traces], dtype=bool)
    if not hidden.any():
        return signature_input, 0
    outcome = np.where(hidden, UNKNOWN, signature_input.outcome).astype(np.int8)
    score = np.where(hidden, np.nan, signature_input.score)
    return replace(signature_input, outcome=outcome, score=score), int(hidden.sum())


def benchmark_scores(traces: Sequence[str], scores_of: Callable[[str], Named]) -> dict[str, Floats]:
    """Return the scores between 0 and 1 that a benchmark gives besides the main score.

    Args:
        traces: The ids of the traces.
        scores_of: Returns the names and values of a trace's scores, as texts.

    Returns:
        The score of each trace by the name of the metric, NaN without one. A metric with a score
        outside 0 to 1 is left out.
    """
    scores: dict[str, Floats] = {}
    for row, trace_id in enumerate(traces):
        for metric, text in scores_of(trace_id):
            try:
                value = float(text)
            except ValueError:
                continue
            values = scores.setdefault(metric, np.full(len(traces), np.nan))
            values[row] = value
    return {
        metric: values
        for metric, values in sorted(scores.items())
        if ((values >= 0) & (values <= 1) | np.isnan(values)).all()
    }


class _TraceFacts(NamedTuple):
    """The recorded facts of one trace, and the values of its grouping fields."""

    model: str | None = None
    benchmark: str | None = None
    task: str | None = None
    outcome: str = ""
    score: float | None = None
    spans: int | None = None
    task_id: str | None = None
    trial: int | None = None
    fields: tuple[Any, ...] = ()

    @property
    def task_key(self) -> tuple[str, str] | None:
        """The benchmark and the id or text of the task; None without a task."""
        return task_key(self.benchmark, self.task_id, self.task)


_COLUMNS: Final = _TraceFacts._fields[:-1]


def _facts_of_traces(
    workspace: Workspace, traces: Sequence[str], fields: Sequence[str]
) -> list[_TraceFacts]:
    """Return the facts of these traces, with the values of the grouping fields."""
    row_by_trace = {trace: row for row, trace in enumerate(traces)}
    facts = [_TraceFacts(fields=(None,) * len(fields))] * len(traces)

    def collect(records: Iterator[tuple[Any, ...]]) -> None:
        for trace_id, *values in records:
            row = row_by_trace.get(trace_id)
            if row is None:
                continue
            trace = _TraceFacts._make((*values[: len(_COLUMNS)], tuple(values[len(_COLUMNS) :])))
            if trace.task_id and "task" in fields:
                # Tasks with an id are grouped by the id instead of the text.
                column = fields.index("task")
                by_id = (*trace.fields[:column], trace.task_id, *trace.fields[column + 1 :])
                trace = trace._replace(fields=by_id)
            facts[row] = trace

    field_columns = (_COLUMN_NAMES.get(field, field) for field in fields)
    workspace.read_columns("traces", ("id", *_COLUMNS, *field_columns), collect)
    return facts


def _day_of_time(started: float) -> str | None:
    """Return the day of a Unix time, in UTC; None for a time outside the calendar."""
    try:
        return datetime.fromtimestamp(started, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None


class _TraceGroups(NamedTuple):
    """The groups of traces: their names, their values by field, and the group of each trace."""

    names: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]
    numbers: list[int]


def _group_traces(values: Sequence[tuple[Any, ...]], fields: Sequence[str]) -> _TraceGroups:
    """Group traces by the values of fields; groups are sorted by values, unknown values last."""
    parts_by_values = {
        trace_values: tuple(
            _group_part(field, value) for field, value in zip(fields, trace_values, strict=True)
        )
        for trace_values in set(values)
    }
    parts_of_groups = sorted(
        set(parts_by_values.values()),
        key=lambda group_parts: [(value == NO_VALUE, value) for value in group_parts],
    )
    number_by_parts = {group_parts: number for number, group_parts in enumerate(parts_of_groups)}
    names: list[str] = []
    for group_parts in parts_of_groups:
        name = BETWEEN.join(group_parts) or ALL
        # Two groups may get the same name if values contain the separator.
        while name in names:
            name += "*"
        names.append(name)
    numbers = [number_by_parts[parts_by_values[trace_values]] for trace_values in values]
    return _TraceGroups(tuple(names), tuple(parts_of_groups), numbers)


def _group_part(field: str, value: Any) -> str:
    """Return the value of a field as a part of a group's name."""
    text = _day_of_time(value) if field == "date" and value is not None else value
    return text or NO_VALUE


_Value = TypeVar("_Value", str, tuple[str, str])


class _Numbered(NamedTuple, Generic[_Value]):
    """The different values in order, and the number of each trace's value: -1 without one."""

    values: tuple[_Value, ...]
    numbers: Integers


def _numbered(values: Sequence[_Value | None]) -> _Numbered[_Value]:
    """Number the different values; an empty value has the number -1."""
    different_values = sorted({value for value in values if value})
    number_by_value = {value: number for number, value in enumerate(different_values)}
    numbers = [number_by_value[value] if value else -1 for value in values]
    return _Numbered(tuple(different_values), np.array(numbers, dtype=np.int64))


def _known_places(labelled: LabelledTraces, order_of: Callable[[str], Order]) -> Places:
    """Return the labels whose spans have a known index."""
    row_by_trace = {trace: row for row, trace in enumerate(labelled.traces)}
    order = cache(order_of)
    place_rows = []
    for label in labelled.labels.placed:
        index_of = order(label.trace)
        first = index_of(label.first)
        last = first if label.last == label.first else index_of(label.last)
        if first is not None and last is not None:
            # Imported labels may have their last span before the first.
            ends = (min(first, last), max(first, last))
            place_rows.append((row_by_trace[label.trace], label.mode, *ends, label.fatal))
    trace, mode, first_index, last_index, fatal = np.array(place_rows, np.int64).reshape(-1, 5).T
    return Places(trace, mode, first_index, last_index, fatal.astype(bool))


ARM: Final = "arm"
"""The grouping by arms that the user named by paths."""


def runs_under(
    workspace: Workspace, inputs: SignatureInput, paths: Mapping[str, Sequence[Path]]
) -> SignatureInput:
    """Return the runs of the arms of an experiment, by the paths of their files.

    Args:
        workspace: The workspace.
        inputs: All runs.
        paths: The files and folders of each arm, by its name.

    Raises:
        WorkspaceError: An arm has no run in its paths, or two arms have files in common.
    """
    for first, second in combinations(paths, 2):
        if _have_files_in_common(paths[first], paths[second]):
            raise WorkspaceError(
                f"{first} and {second} have files in common; a run belongs to one arm only"
            )
    arm_by_trace = _arm_by_trace(workspace, list(paths.values()))
    group = np.array([arm_by_trace.get(trace, -1) for trace in inputs.traces], dtype=np.int64)
    for number, (name, arm_paths) in enumerate(paths.items()):
        if not (group == number).any():
            paths_text = ", ".join(map(str, arm_paths))
            exists = any(path.exists() for path in arm_paths)
            remedy = "label or judge these runs first" if exists else "no such file or folder"
            raise WorkspaceError(f"{name}: no run of this workspace is in {paths_text}; {remedy}")
    names = tuple(paths)
    return replace(
        inputs,
        by=ARM,
        group=np.maximum(group, 0),  # runs of no arm (-1) are removed by ``only``
        group_names=names,
        group_parts=tuple((name,) for name in names),
    ).only(group >= 0)


def traces_in(workspace: Workspace, paths: Sequence[Path]) -> frozenset[str]:
    """Return the ids of the traces whose files are in these files and folders.

    Args:
        workspace: The workspace.
        paths: The files and folders.
    """
    return frozenset(_arm_by_trace(workspace, [paths]))


def _arm_by_trace(workspace: Workspace, paths_by_arm: Sequence[Sequence[Path]]) -> dict[str, int]:
    """Return the number of each trace's arm: one of its paths is or contains the trace's file."""
    arm_by_path = {
        absolute_path(path): number for number, paths in enumerate(paths_by_arm) for path in paths
    }

    def collect(rows: Iterator[tuple[Any, ...]]) -> dict[str, int]:
        arm_by_trace = {}
        for trace_id, stored_path in rows:
            file = workspace.resolve_trace_path(stored_path).absolute()
            for path in (file, *file.parents):
                if path in arm_by_path:
                    arm_by_trace[trace_id] = arm_by_path[path]
        return arm_by_trace

    return workspace.read_columns("traces", ("id", "path"), collect, not_null="path")


def _have_files_in_common(first: Sequence[Path], second: Sequence[Path]) -> bool:
    """Return whether a path of one arm is, or contains, a path of the other arm."""
    pairs = product(map(absolute_path, first), map(absolute_path, second))
    return any(path.is_relative_to(other) or other.is_relative_to(path) for path, other in pairs)


def experiment_of(
    inputs: SignatureInput,
    *,
    baseline: str | None = None,
    tested: tuple[str, ...] = (),
    judge: LabelledTraces | None = None,
    usage_of: UsageOf | None = None,
    prices: Mapping[str, Prices] | None = None,
    change: float = 0.2,
) -> Experiment:
    """Make an experiment from runs with its arms as groups; runs of no arm are left out.

    Args:
        inputs: The runs and their groups.
        baseline: The arm with which the others are compared; by default the first arm.
        tested: The codes of the modes named beforehand.
        judge: A judge's verdicts on all runs, if ``inputs`` has those of people on a part.
        usage_of: Returns the tokens and minutes of a run; None for no amounts.
        prices: The prices of models by name.
        change: The planned change of a rate.

    Raises:
        WorkspaceError: There are fewer than two arms, none is the baseline, or a mode is unknown.
    """
    run_count = len(inputs.traces)
    inputs = _with_baseline_first(_only_runs_in_arms(inputs), baseline)
    codes = [mode.code for mode in inputs.modes]
    for code in tested:
        if code not in codes:
            raise WorkspaceError(f"there is no mode {code!r}; there are: {', '.join(codes)}")
    return Experiment(
        inputs=inputs,
        baseline=inputs.group_names[0],
        tested=tuple(dict.fromkeys(tested)),
        judged=None if judge is None else _verdicts_in_order_of(judge, inputs.traces),
        amounts={} if usage_of is None else _amounts_of_runs(inputs, usage_of, prices or {}),
        change=change,
        without_arm=run_count - len(inputs.traces),
    )


def _only_runs_in_arms(inputs: SignatureInput) -> SignatureInput:
    """Return the runs that belong to an arm.

    Raises:
        WorkspaceError: There are fewer than two arms.
    """
    # An arm that the user named by paths may have the name ``NO_VALUE``.
    if inputs.traces and inputs.by != ARM:
        has_value = np.array([name != NO_VALUE for name in inputs.group_names], dtype=bool)
        inputs = inputs.only(has_value[inputs.group])
    if not inputs.traces or len(inputs.group_names) < 2:
        names = ", ".join(inputs.group_names) or "none"
        raise WorkspaceError(
            f"an experiment needs two arms or more; by {inputs.by} there is {names}. Name the "
            "field that differs with --arms, or the runs of each arm with --arm NAME=PATH"
        )
    return inputs


def _with_baseline_first(inputs: SignatureInput, baseline: str | None) -> SignatureInput:
    """Return the runs with the baseline as their first arm; None keeps the order.

    Raises:
        WorkspaceError: No arm is the baseline.
    """
    if baseline is None:
        return inputs
    names = inputs.group_names
    if baseline not in names:
        raise WorkspaceError(
            f"no arm is named {baseline!r}; by {inputs.by} there are: {', '.join(names)}"
        )
    first = names.index(baseline)
    old_numbers = [first, *(number for number in range(len(names)) if number != first)]
    return replace(
        inputs,
        group=np.argsort(old_numbers)[inputs.group],
        group_names=tuple(names[number] for number in old_numbers),
        # Groups by a single field may have no parts.
        group_parts=tuple(inputs.group_parts[number] for number in old_numbers)
        if inputs.group_parts
        else (),
    )


def _verdicts_in_order_of(
    judge: LabelledTraces, traces: Sequence[str]
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a judge's verdicts as ``traces`` × modes; other traces are open."""
    row_by_trace = {trace: row for row, trace in enumerate(judge.traces)}
    verdicts = np.full((len(traces), judge.verdicts.shape[1]), OPEN, dtype=np.uint8)
    for row, trace in enumerate(traces):
        if trace in row_by_trace:
            verdicts[row] = judge.verdicts[row_by_trace[trace]]
    return verdicts


def _amounts_of_runs(
    inputs: SignatureInput, usage_of: UsageOf, prices: Mapping[str, Prices]
) -> dict[str, Floats]:
    """Return the tokens, minutes and money of each run, NaN if unknown.

    Amounts unknown for all runs are left out. The strata of ``inputs`` are the models of the runs.
    """
    amounts = {name: np.full(len(inputs.traces), np.nan) for name in ("tokens", "minutes", "money")}
    for row, trace in enumerate(inputs.traces):
        usage = usage_of(trace)
        if usage is None:
            continue
        if usage.minutes is not None:
            amounts["minutes"][row] = usage.minutes.sum()
        if usage.tokens is None:
            continue
        input_tokens, output_tokens = usage.tokens.sum(axis=0).tolist()
        amounts["tokens"][row] = input_tokens + output_tokens
        model = -1 if inputs.stratum_numbers is None else int(inputs.stratum_numbers[row])
        price = prices.get(inputs.stratum_names[model]) if model >= 0 else None
        if price is not None:
            amounts["money"][row] = price.cost(input_tokens, output_tokens)
    return {name: values for name, values in amounts.items() if not np.isnan(values).all()}
