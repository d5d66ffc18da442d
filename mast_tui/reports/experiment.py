"""An experiment as a report: its arms, their differences from the baseline, and its power."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from mast_tui.counts import counted
from mast_tui.figures.experiment import AMOUNTS, Experiment
from mast_tui.figures.power import ALPHA, PLANNED_RUNS, TARGET
from mast_tui.figures.record import FigureIndex, FigureTable, insert_figures, scope_paths
from mast_tui.figures.signatures.model import FAILED, UNKNOWN
from mast_tui.figures.signatures.report import are_claims_about, labels_source
from mast_tui.reports import model
from mast_tui.reports.model import (
    Cell,
    Column,
    KeyFact,
    Note,
    ReportSection,
    Row,
    Table,
    columns,
    existing_parts,
    figure_cell,
    figure_cells,
)
from mast_tui.reports.published import published_gains
from mast_tui.reports.sentences import joined_names, withheld_notes
from mast_tui.reports.signature_document import interval_in_points, points
from mast_tui.safe_text import one_line

Document = dict[str, Any]

_ARMS: Final = """
    arm | arm | text | | 101
    tasks | tasks | count | | 90
    runs | runs | count | | 89
    task_share | success | share | mean over tasks of the share of successful runs (pass@1) | 95
    arm_difference | points | points | arm minus baseline, points | 94
    flip_p_adjusted | p adj | p_value | p, adjusted over the arms | 80
"""
_PASS: Final = (
    "pass_k:{k} | pass^{k} | share | probability that {k} runs of a task all succeed | {priority}"
)
_SHARES: Final = """
    code | code | text | | 100
    name | mode | text | | 99
    baseline | {baseline} | share | share of runs of {baseline} with the mode | 95
    arm | {arm} | share | share of runs of {arm} with the mode | 95
    arm_difference | points | points | {arm} minus {baseline}, points | 94
    flip_p | p | p_value | p, randomisation test over tasks | 40
    flip_p_adjusted | p adj | p_value | p, adjusted over the modes and arms | 80
"""
_MEANS: Final = """
    name | mean over runs | text | | 100
    baseline | {baseline} | number | mean of {baseline} | 95
    arm | {arm} | number | mean of {arm} | 95
    arm_difference | difference | number | {arm} minus {baseline} | 94
    flip_p | p | p_value | p, randomisation test over tasks | 40
    flip_p_adjusted | p adj | p_value | p, adjusted over the arms | 80
"""
_PLAN: Final = """
    code | code | text | | 100
    name | rate | text | | 99
    power | power | share | power with the current tasks and runs | 90
    detectable | detectable | count | smallest change in points with a power of 80 % | 90
"""
_PLANNED: Final = (
    "tasks_needed:{runs} | {runs} per task | count | tasks needed with {runs} runs per task | 80"
)

PATHS: Final = scope_paths("""
    experiment               | arms.{group}
    experiment_success       | arms.{group}.success
    experiment_pass          | arms.{group}
    experiment_mode          | arms.{group}.modes.{mode}
    experiment_category      | arms.{group}.categories.{mode}
    experiment_amount        | arms.{group}.{mode}
    experiment_cost          | arms.{group}.cost.{mode}
    experiment_success_power | power.success
    experiment_mode_power    | power.modes.{mode}
""")
"""The paths of the figures in the JSON document."""

_FATAL: Final = "fatal_failure"
_MODES_PER_RUN: Final = "modes_per_failed_run"
_AMOUNT_NAMES: Final[Mapping[str, str]] = {
    _MODES_PER_RUN: "modes per failed run",
    _FATAL: "runs with a fatal failure",
    "onset": "first failure, position in the run",
}
"""The names of the measures other than success, modes, categories and costs."""


def experiment_report(experiment: Experiment, figures: FigureIndex) -> model.Report:
    """Make the report of an experiment: arms (groups of runs) compared with a baseline.

    Args:
        experiment: The runs.
        figures: The figures of the experiment; those for planning may be missing.
    """
    sections = (
        *experiment_sections(experiment, figures),
        ReportSection(
            "method",
            "Methods",
            existing_parts(
                _method_text(experiment),
                published_gains() if are_claims_about(experiment.inputs.taxonomy_ref) else None,
            ),
        ),
    )
    return model.Report(
        id="experiment",
        title=f"Experiment by {experiment.inputs.by}",
        about=_report_description(experiment),
        sections=sections,
        notes=tuple(experiment_notes(experiment, figures)),
        document=experiment_document(experiment, figures),
    )


def experiment_sections(experiment: Experiment, figures: FigureIndex) -> Iterator[ReportSection]:
    """Yield the sections of an experiment: all arms, each arm, and the power.

    Args:
        experiment: The runs.
        figures: The figures of the experiment; those for planning may be missing.
    """
    yield ReportSection("arms", "Arms", (_arms_table(experiment, figures),))
    for name in experiment.compared:
        arm = _Arm(experiment, figures, name)
        yield ReportSection(
            f"arm-{arm.number}",
            f"{name} against {experiment.baseline}",
            tuple(arm.tables()),
            tuple(arm.facts()),
        )
    plan = _plan_table(experiment, figures)
    if plan.rows:
        yield ReportSection("plan", "Power and sample size", (plan,))


def arm_parts(experiment: Experiment, figures: FigureIndex, arm: str) -> tuple[model.Part, ...]:
    """Return the table of all arms, the tables of one arm, and the table for planning.

    Args:
        experiment: The runs.
        figures: The figures of the experiment; those for planning may be missing.
        arm: The arm.
    """
    plan = _plan_table(experiment, figures)
    return existing_parts(
        _arms_table(experiment, figures),
        *_Arm(experiment, figures, arm).tables(),
        plan if plan.rows else None,
    )


def _report_description(experiment: Experiment) -> str:
    """Return a line that names the taxonomy, the source of labels, the runs and the baseline."""
    inputs = experiment.inputs
    judge = "" if experiment.judged is None else ", combined with a judge on all runs"
    return (
        f"{inputs.taxonomy_ref}, labels: {labels_source(inputs)}{judge}; "
        f"{counted(len(inputs.traces), 'run')}; baseline: {experiment.baseline}."
    )


def _arms_table(experiment: Experiment, figures: FigureIndex) -> Table:
    """Make the table of arms with tasks, runs, success and pass^k (all of k runs succeed)."""
    # The condition of pass^k is k.
    highest_k = max(
        (
            int(figure.condition)
            for arm in experiment.inputs.group_names
            for figure in figures.table("experiment_pass", group=arm).figures
        ),
        default=1,
    )
    # A higher k has a lower priority.
    pass_lines = [_PASS.format(k=k, priority=50 - k) for k in range(2, highest_k + 1)]
    table_columns = (*columns(_ARMS), *columns("\n".join(pass_lines)))
    rows = []
    for arm in experiment.inputs.group_names:
        run_counts = figures.table("experiment", group=arm)
        success = figures.table("experiment_success", group=arm)
        cells: dict[str, Cell] = {
            "arm": arm + (" (baseline)" if arm == experiment.baseline else ""),
            "tasks": run_counts.count("tasks"),
            "runs": run_counts.count("runs"),
        }
        cells |= figure_cells(success, table_columns)
        cells |= figure_cells(figures.table("experiment_pass", group=arm), table_columns)
        rows.append(Row(arm, cells, sources=success.sources))
    return Table(
        "arms",
        "Success of each arm",
        table_columns,
        (tuple(rows),),
        "success: mean over tasks of the share of successful runs (pass@1), labelled or not. "
        "pass^k: probability that k runs of a task all succeed, over the tasks with at least k "
        "runs.",
        withheld_notes(
            *(
                figures.table(scope, group=arm)
                for scope in ("experiment_success", "experiment_pass")
                for arm in experiment.inputs.group_names
            )
        ),
    )


class _Measured(NamedTuple):
    """The scope and key of a measure's figures, and its name and code in a table."""

    scope: str
    key: str
    name: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class _Arm:
    """An arm in comparison with the baseline.

    Attributes:
        experiment: The runs.
        figures: The figures of the experiment.
        name: The name of the arm.
    """

    experiment: Experiment
    figures: FigureIndex
    name: str

    @property
    def number(self) -> int:
        """The number of the arm, from 1, for ids."""
        return self.experiment.compared.index(self.name) + 1

    def tables(self) -> Iterator[Table]:
        """Yield two tables that compare the arm with the baseline: of shares, and of means."""
        inputs = self.experiment.inputs
        arms_text = f"{self.name} and {self.experiment.baseline}"
        modes = [
            _Measured("experiment_mode", mode.code, mode.name, mode.code) for mode in inputs.modes
        ]
        categories = [
            _Measured("experiment_category", category.id, category.title)
            for category in inputs.categories
        ]
        fatal_failure = [_Measured("experiment_amount", _FATAL, _AMOUNT_NAMES[_FATAL])]
        means = [
            *(
                _Measured("experiment_amount", name, title)
                for name, title in _AMOUNT_NAMES.items()
                if name != _FATAL
            ),
            *(_Measured("experiment_cost", name, name) for name in AMOUNTS),
        ]
        yield from existing_parts(
            self._table(
                "modes", f"Modes in runs of {arms_text}", _SHARES, modes, categories, fatal_failure
            ),
            self._table("means", f"Failures and costs of {arms_text}", _MEANS, means),
        )

    def _table(
        self, id: str, title: str, column_lines: str, *measure_groups: Sequence[_Measured]
    ) -> Table | None:
        """Make a table with a group of rows for each group of measures; None without any value."""
        table_columns = columns(column_lines, baseline=self.experiment.baseline, arm=self.name)
        row_groups = [
            tuple(filter(None, (self._row(measured, table_columns) for measured in measures)))
            for measures in measure_groups
        ]
        if not any(row_groups):
            return None
        return Table(
            f"{id}-{self.number}",
            title,
            table_columns,
            tuple(filter(None, row_groups)),
            self._caption_text(),
            withheld_notes(
                *(
                    self._figures_of(measured)
                    for measures in measure_groups
                    for measured in measures
                )
            ),
        )

    def _figures_of(self, measured: _Measured, arm: str | None = None) -> FigureTable:
        """Return the figures of a measure in this or another arm."""
        return self.figures.table(measured.scope, group=arm or self.name, mode=measured.key)

    def _row(self, measured: _Measured, table_columns: Iterable[Column]) -> Row | None:
        """Return the row that compares a measure in the arm and the baseline, or None."""
        arm_figures = self._figures_of(measured)
        if all(figure.value is None for figure in arm_figures.figures):
            return None
        baseline_figures = self._figures_of(measured, self.experiment.baseline)
        cells: dict[str, Cell] = {"code": measured.code, "name": measured.name}
        # The first figure is the share or the mean itself.
        cells["baseline"] = figure_cell(baseline_figures.figures[0])
        cells["arm"] = figure_cell(arm_figures.figures[0])
        cells |= figure_cells(arm_figures, table_columns)
        if measured.scope != "experiment_mode":  # only the cells of a mode open a list of traces
            return Row(measured.key, cells)
        return Row(
            measured.key,
            cells,
            cell_sources={"baseline": baseline_figures.sources, "arm": arm_figures.sources},
        )

    def _caption_text(self) -> str:
        """Return the numbers of shared tasks, and the source of the labels."""
        experiment = self.experiment
        shared_count = self.figures.table("experiment", group=self.name).count("shared_tasks")
        arm_tasks, baseline_tasks = (
            experiment.tasks[experiment.rows(arm) & experiment.has_verdict]
            for arm in (self.name, experiment.baseline)
        )
        judged_count = len(np.intersect1d(arm_tasks, baseline_tasks))
        independent = "" if judged_count else ": for modes, tasks are treated as independent"
        return (
            f"{counted(shared_count, 'shared task')}, {judged_count} with verdicts in both arms"
            f"{independent}. Labels: {labels_source(experiment.inputs)} in all arms."
        )

    def facts(self) -> Iterator[KeyFact]:
        """Yield facts: the change in success, and changed modes."""
        success = self.figures.table("experiment_success", group=self.name)
        yield KeyFact("success", *_change_text(success))
        modes = {
            mode.code: self.figures.table("experiment_mode", group=self.name, mode=mode.code)
            for mode in self.experiment.inputs.modes
        }
        changes = {code: table.value("arm_difference") for code, table in modes.items()}
        significant = {
            code: change for code, change in changes.items() if _is_significant(modes[code])
        }
        for direction, sign in (("less often", -1), ("more often", 1)):
            texts = [
                f"{code} {_change_text(modes[code])[0]}"
                for code, change in significant.items()
                if sign * (change or 0) > 0
            ]
            if texts:
                yield KeyFact(direction, ", ".join(texts))
        if all(change is None for change in changes.values()):
            yield KeyFact("modes", "no mode has verdicts in runs of both arms")
        elif not significant:
            yield KeyFact("modes", "no significant change")


def _is_significant(table: FigureTable) -> bool:
    """Return whether a difference is significant after the correction for many tests."""
    p_value = table.value("flip_p_adjusted")
    return p_value is not None and p_value < ALPHA


def _change_text(figures: FigureTable) -> tuple[str, str]:
    """Return a difference in points with its interval, and a text on its significance."""
    difference = figures.get("arm_difference")
    if difference is None or difference.value is None:
        return "unknown", ""
    text = f"{100 * difference.value:+.0f} points"
    if difference.interval is not None:
        low, high = difference.interval
        text += f" ({100 * low:+.0f} to {100 * high:+.0f})"
    return text, "significant" if _is_significant(figures) else "not significant"


def _plan_table(experiment: Experiment, figures: FigureIndex) -> Table:
    """Make the table of power and needed tasks, for success and for each mode."""
    planned_lines = [_PLANNED.format(runs=runs) for runs in PLANNED_RUNS]
    table_columns = (*columns(_PLAN), *columns("\n".join(planned_lines)))
    names = {"": "success", **{mode.code: mode.name for mode in experiment.inputs.modes}}
    rows = []
    for code, name in names.items():
        scope = "experiment_mode_power" if code else "experiment_success_power"
        table = figures.table(scope, group=experiment.baseline, mode=code)
        if not table.figures:
            continue
        cells: dict[str, Cell] = {"code": code, "name": name}
        cells |= figure_cells(table, table_columns)
        least_change = table.value("detectable")
        cells["detectable"] = None if least_change is None else round(100 * least_change)
        rows.append(Row(code or "success", cells))
    change = f"{100 * experiment.change:.0f} points"
    return Table(
        "plan",
        f"Power to detect {change}",
        table_columns,
        (tuple(rows),),
        f"Power to detect a change of {change} (success rises, modes fall), simulated from the "
        "runs so far at the level that a single change needs after Holm's correction over all "
        f"tested modes. N per task: tasks needed for a power of {TARGET:.0%} with N runs per task.",
    )


def experiment_notes(experiment: Experiment, figures: FigureIndex) -> Iterator[Note]:
    """Yield notes on runs without a task id, repeated trials, chosen runs, and runs left out.

    Args:
        experiment: The runs.
        figures: The figures of the experiment.
    """
    inputs = experiment.inputs
    yield from _warnings(
        (
            experiment.runs_without_task_id,
            f"{counted(experiment.runs_without_task_id, 'run')} without a task id: runs with the "
            "same task text count as one task.",
            "by_words",
        ),
        (
            experiment.similar_tasks,
            f"{joined_names([repr(one_line(name, 40)) for name in experiment.similar_tasks])} are "
            "different tasks here, but differ only by case or spaces.",
            "similar_tasks",
        ),
        (
            experiment.without_arm,
            f"Excluded: {counted(experiment.without_arm, 'run')} without a {inputs.by}.",
            "no_arm",
        ),
        (
            experiment.repeated_trials,
            f"{counted(experiment.repeated_trials, 'run')} with the same arm, task and trial "
            "number as another run, possibly imported twice.",
            "repeated_trials",
        ),
        (
            inputs.weights is not None or inputs.has_unknown_weights,
            "Runs to label were drawn with unequal probabilities: shares of modes are unweighted "
            "and describe the labelled runs only, even with --judge.",
            "unweighted",
        ),
    )
    for arm in inputs.group_names:
        yield from _arm_notes(experiment, figures, arm)


def _warnings(*items: tuple[object, str, str]) -> Iterator[Note]:
    """Yield warnings, each from a condition, a text and a reason."""
    for condition, text, reason in items:
        if condition:
            yield Note(text, reason, warning=True)


def _arm_notes(experiment: Experiment, figures: FigureIndex, arm: str) -> Iterator[Note]:
    """Yield notes on the runs and tasks of an arm that figures leave out."""
    run_counts = figures.table("experiment", group=arm)
    left_out_count = run_counts.count("no_task")
    in_arm = experiment.rows(arm)
    unknown_count = int((in_arm & (experiment.inputs.outcome == UNKNOWN)).sum())
    unjudged_count = int((in_arm & ~experiment.has_verdict).sum())
    failed_count = int((in_arm & (experiment.inputs.outcome == FAILED)).sum())
    amount = figures.table("experiment_amount", group=arm, mode=_MODES_PER_RUN).get("task_mean")
    open_count = failed_count - (0 if amount is None else amount.n or 0)
    yield from _warnings(
        (
            unknown_count,
            f"Excluded from success of {arm}: {counted(unknown_count, 'run')} without an outcome.",
            "no_outcome",
        ),
        (
            unjudged_count,
            f"Excluded from modes of {arm}: {counted(unjudged_count, 'run')} without a verdict.",
            "unjudged",
        ),
        (
            open_count,
            f"Excluded from {_AMOUNT_NAMES[_MODES_PER_RUN]} of {arm}: "
            f"{counted(open_count, 'failed run')} without a verdict on every mode.",
            "open_modes",
        ),
        (
            left_out_count,
            f"Excluded from {arm}: {counted(left_out_count, 'run')} without a task.",
            "no_task",
        ),
    )
    baseline = experiment.baseline
    shared_count = run_counts.count("shared_tasks")
    baseline_count = figures.table("experiment", group=baseline).count("tasks")
    unpaired = "; ".join(
        f"{counted(task_count - shared_count, 'task')} of {name} that {other} has not run"
        for name, other, task_count in (
            (arm, baseline, run_counts.count("tasks")),
            (baseline, arm, baseline_count),
        )
        if task_count > shared_count
    )
    if arm != baseline and not shared_count:
        text = f"{arm} and {baseline} have no common task (benchmark and task_id)"
        yield Note(f"{text}: their tasks are treated as independent.", "unpaired", warning=True)
    elif arm != baseline and unpaired:
        yield Note(f"Excluded from differences: {unpaired}.", "unpaired")
    least_p = _least_p_text(experiment, figures, arm)
    yield from _warnings(
        (
            least_p,
            f"Too few tasks of {arm} for a significant change: p adj is {least_p}.",
            "least_p",
        )
    )


def _least_p_text(experiment: Experiment, figures: FigureIndex, arm: str) -> str:
    """Return the least adjusted p-values of an arm that are above the level; empty for none."""
    codes = experiment.tested or tuple(mode.code for mode in experiment.inputs.modes)
    families = (("experiment_success", ("",), "success"), ("experiment_mode", codes, "a mode"))
    texts = []
    for scope, keys, name in families:
        tables = {
            (compared, key): figures.table(scope, group=compared, mode=key)
            for compared in experiment.compared
            for key in keys
        }
        least_p_values = {
            subject: least_p
            for subject, table in tables.items()
            if (least_p := table.value("flip_p_least")) is not None
        }
        own_p_values = [p for (compared, _), p in least_p_values.items() if compared == arm]
        # Holm's correction multiplies the least p-value by the number of tests.
        if own_p_values and (least := min(own_p_values) * len(least_p_values)) > ALPHA:
            texts.append(f"at least {min(1.0, least):.3g} for {name}")
    return " and ".join(texts)


def _method_text(experiment: Experiment) -> model.Text:
    """Return the text on the rules of counting and on the intervals."""
    judge_sentences = (
        "Shares of modes are prediction-powered if people have labelled some of the runs: the "
        "shares of the judge are corrected by its errors on the labelled runs. This is valid only "
        "if the labelled runs are a random sample. Categories and means use people's labels alone.",
    )
    return model.Text(
        "counted",
        "Rules and intervals",
        (
            "Rates are means over tasks, so each task counts once, whatever its number of runs. "
            "Differences are over the tasks that both arms have run (per failed run: the tasks "
            "with a failed run in both). Success and costs are over all runs. A figure of modes "
            "leaves out runs without the verdicts or places that it needs.",
            "All intervals are 95 %. For shares: Wilson's interval, with an effective sample size "
            "from the variance between tasks. For means and differences: Student's t over tasks.",
            "p: Fisher's randomisation test, which flips the signs of the differences of whole "
            "tasks. p adj: Holm's correction over the tested modes and arms, which keeps the "
            "chance of any false finding at or below 5 %.",
            *(judge_sentences if experiment.judged is not None else ()),
        ),
    )


def experiment_document(experiment: Experiment, figures: FigureIndex) -> Document:
    """Return the JSON document that ``experiment --json`` prints.

    Args:
        experiment: The runs.
        figures: The figures of the experiment.
    """
    inputs = experiment.inputs
    has_power = any(figure.scope.endswith("_power") for figure in figures.figures)
    # Figures replace some of the values None.
    document = {
        "by": inputs.by,
        "baseline": experiment.baseline,
        "labels": inputs.label_source,
        "taxonomy": inputs.taxonomy_ref,
        "tasks_by_words": experiment.runs_without_task_id,
        "repeated_trials": experiment.repeated_trials,
        "tested": list(experiment.tested or (mode.code for mode in inputs.modes)),
        "arms": {
            arm: {
                "success": None,
                "pass_k": {},
                "modes": {mode.code: {"name": mode.name} for mode in inputs.modes},
                "categories": {
                    category.id: {"name": category.title} for category in inputs.categories
                },
                **dict.fromkeys(_AMOUNT_NAMES),
                "cost": dict.fromkeys(AMOUNTS),
            }
            for arm in inputs.group_names
        },
        "power": {"target": TARGET, "alpha": ALPHA, "change": experiment.change}
        if has_power
        else None,
    }
    return insert_figures(figures.figures, PATHS, document)


def pair_document(experiment: Experiment, figures: FigureIndex) -> Document:
    """Return the parts of the document of ``report --json`` on an experiment with two arms.

    ``comparison`` and ``paired`` repeat figures of ``experiment`` in the form of earlier releases.
    The next release removes them.

    Args:
        experiment: The runs of two arms.
        figures: The figures of the experiment.
    """
    document = experiment_document(experiment, figures)
    names = (experiment.compared[0], experiment.baseline)
    arms = [document["arms"][name] for name in names]
    arm, baseline = arms
    modes = {
        code: {"name": mode["name"], **_pair_measure(mode, baseline["modes"][code])}
        for code, mode in arm["modes"].items()
    }
    paired = {
        "by": document["by"],
        "pair": list(names),
        "tasks": arm["shared_tasks"],
        "runs": [side["runs"] for side in arms],
        "left_out": {
            "no_task": [side["left_out"]["no_task"] for side in arms],
            "unpaired": [side["tasks"] - arm["shared_tasks"] for side in arms],
        },
        "success": _pair_measure(arm["success"], baseline["success"]),
        "modes": modes,
    }
    return {
        "comparison": {"groups": list(names), "over": "tasks", "modes": modes},
        "paired": paired if arm["shared_tasks"] else None,
        "experiment": document,
    }


def _pair_measure(first: Document, second: Document) -> Document:
    """Return a measure of two arms in the form of earlier releases."""
    difference = first.get("difference", {})
    return {
        "first": first.get("rate"),
        "second": second.get("rate"),
        "difference_pp": points(difference.get("value")),
        "difference_ci_pp": interval_in_points(difference.get("ci")),
        "p_value": difference.get("p"),
        "p_adjusted": difference.get("p_adjusted"),
    }
