"""The report on one judge: its figures, and the part ``judge`` of ``agree --json``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from mast_tui.figures.bootstrap import RESAMPLING, Resampling
from mast_tui.figures.judge.confusion import (
    ComparedUnits,
    compared_units,
    judge_figures,
    trace_sums,
)
from mast_tui.figures.judge.input import JudgeInput, Reference
from mast_tui.figures.judge.suggestions import (
    BINS,
    acceptance,
    annotators_in_both_conditions,
    bin_name,
    calibration,
    effect_figures,
    localisation,
)
from mast_tui.figures.judge.thresholds import Thresholds
from mast_tui.figures.prevalence import PREVALENCE_PATHS, prevalence_figures
from mast_tui.figures.record import (
    Figure,
    FigureIndex,
    FigureTable,
    insert_figures,
    renamed_figures,
    scope_paths,
)
from mast_tui.gold import Resolution
from mast_tui.gold.model import GoldMixJson, gold_mix
from mast_tui.grouping import values_by_key
from mast_tui.labels import GOLD
from mast_tui.taxonomy.model import Mode

_PATHS: Final = PREVALENCE_PATHS | scope_paths("""
    judge_traces          | traces                            | no n | no subject
    judge_left_out        | left_out                          | no n | no subject
    judge_mode            | modes.{mode}                      | no n | no subject
    judge_mode_left_out   | modes.{mode}.left_out             | no n | no subject
    judge_macro           | macro                             | no n | no subject
    judge_pooled          | pooled                            | no n | no subject
    judge_pooled_left_out | pooled.left_out                   | no n | no subject
    calibration           | calibration                       | no n | no subject
    calibration_bin       | calibration.bins.{group}          | no n | no subject
    calibration_mode      | calibration.modes.{mode}          | no n | no subject
    answers               | answers                           | no n | no subject
    answers_bin           | answers.bins.{group}              | no n | no subject
    answers_mode          | answers.modes.{mode}              | no n | no subject
    answers_annotator     | answers.annotators.{subject}      | no n
    localisation          | localisation                      | no n | no subject
    localisation_mode     | localisation.modes.{mode}         | no n | no subject
    effect                | withheld                          | no n | no subject
    effect_mode           | withheld.modes.{mode}             | no n | no subject
""")
"""The paths of the figures in the part ``judge`` of the document of ``agree --json``."""


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The figures of a judge, and the facts about them.

    Attributes:
        taxonomy: The taxonomy, as ``id@version``.
        judge: The name of the judge.
        against: The reference: ``gold``, or the name of an annotator.
        judge_seen_counted: Whether reference verdicts made with a judge on screen count.
        gold: The sources of the compared gold; None for an annotator.
        resampling: The resamples of the intervals.
        modes: The modes.
        annotators_in_both_conditions: The annotators who have passes with suggestions and passes
            without; None if no study hides suggestions.
        index: The figures.
        thresholds: The confidences above which findings count; None without thresholds.
    """

    taxonomy: str
    judge: str
    against: str
    judge_seen_counted: bool
    gold: GoldMixJson | None
    resampling: Resampling
    modes: tuple[Mode, ...]
    annotators_in_both_conditions: tuple[str, ...] | None
    index: FigureIndex
    thresholds: Thresholds | None = None

    def table(self, scope: str, *, mode: str = "", group: str = "") -> FigureTable:
        """Return the figures of a scope.

        Args:
            scope: The name of the scope.
            mode: The code of a mode; empty for figures over all modes.
            group: The name of a range of confidence; empty for all.
        """
        return self.index.table(scope, mode=mode, group=group, subject=(self.judge,))

    def figures_by_mode(self, scope: str) -> dict[str, FigureTable]:
        """Return the figures of a scope by the code of a mode."""
        return self.index.figures_by_key(scope, subject=(self.judge,))

    def count(self, statistic: str) -> int:
        """Return a count of the judge's traces: ``judged``, ``compared`` or ``unlabelled``."""
        return self.table("judge_traces").count(statistic)

    def without_prevalence(self) -> JudgeReport:
        """Return the report without the judge's figures on unlabelled traces."""
        hidden = ("prevalence", "prevalence_overall")
        figures = (figure for figure in self.index.figures if figure.scope not in hidden)
        return replace(self, index=FigureIndex(figures))

    def renamed(self, names: Mapping[str, str], in_document: Callable[[Any], Any]) -> JudgeReport:
        """Return the report with other names for annotators.

        Args:
            names: The new names by the old ones.
            in_document: Replaces the names in a JSON document.
        """
        renamed_annotators = self.annotators_in_both_conditions
        if renamed_annotators is not None:
            renamed_annotators = tuple(sorted(names.get(name, name) for name in renamed_annotators))
        return replace(
            self,
            against=names.get(self.against, self.against),
            gold=in_document(self.gold),
            annotators_in_both_conditions=renamed_annotators,
            index=FigureIndex(renamed_figures(self.index.figures, names)),
        )


def judge_json(report: JudgeReport) -> dict[str, Any]:
    """Return a report as the part ``judge`` of the document of ``agree --json``."""
    document: dict[str, Any] = {
        "taxonomy": report.taxonomy,
        "judge": report.judge,
        "against": report.against,
        "judge_seen_counted": report.judge_seen_counted,
        "gold": report.gold,
        "bootstrap": report.resampling.to_json(),
        "traces": {},
        "left_out": {},
        "modes": {mode.code: {"slug": mode.slug, "name": mode.name} for mode in report.modes},
        "macro": {},
        "pooled": {},
        "calibration": {},
        "answers": {},
        "localisation": {},
        "prevalence": {},
        "withheld": None,
    }
    if report.annotators_in_both_conditions is not None:
        document["withheld"] = {"annotators": list(report.annotators_in_both_conditions)}
    insert_figures(report.index.figures, _PATHS, document)
    for part in ("calibration", "answers"):
        # The figures were inserted by the names of the bins; the document has a list.
        bins = document[part]["bins"]
        document[part]["bins"] = [
            {"low": number / BINS, "high": (number + 1) / BINS, **bins[bin_name(number)]}
            for number in range(BINS)
        ]
    # The document has these keys even if there are no figures for them.
    for part in ("calibration", "answers", "localisation"):
        document[part].setdefault("modes", {})
    document["answers"].setdefault("annotators", {})
    if document["withheld"] is not None:
        document["withheld"].setdefault("modes", {})
    if report.thresholds is not None:
        document["thresholds"] = asdict(report.thresholds)
    return document


def judge_report(
    judge_input: JudgeInput, resampling: Resampling = RESAMPLING, *, with_seen: bool = False
) -> JudgeReport:
    """Compute the figures of a judge.

    The units are the traces × modes that both the judge and the reference call present or absent.

    Args:
        judge_input: The verdicts of the judge and of its reference.
        resampling: The resamples; none for no intervals by resampling.
        with_seen: Whether to count reference verdicts that were made with a judge on screen.
    """
    units = compared_units(judge_input, with_seen=with_seen)
    return JudgeReport(
        taxonomy=judge_input.taxonomy_ref,
        judge=judge_input.judge,
        against=judge_input.reference.name,
        judge_seen_counted=with_seen,
        gold=_gold_mix(judge_input.reference, units),
        resampling=resampling,
        modes=judge_input.modes,
        annotators_in_both_conditions=annotators_in_both_conditions(judge_input),
        index=FigureIndex(_report_figures(judge_input, units, resampling)),
    )


def _gold_mix(reference: Reference, units: ComparedUnits) -> GoldMixJson | None:
    """Count the compared gold by its resolution; None if the reference is an annotator."""
    if reference.name != GOLD:
        return None
    resolved_units = [unit for unit in units.reference if unit in reference.sources]
    resolutions = [(trace, reference.sources[trace, mode]) for trace, mode in resolved_units]
    # The judge's verdicts on unresolved units.
    resolutions += [(trace, Resolution.UNRESOLVED) for trace, _ in units.doubtful]
    return gold_mix(
        values_by_key(resolutions),
        {name for unit in resolved_units for name in reference.sides[unit]},
        settled_only=reference.settled_only,
        not_in_study=reference.not_in_study,
        merged=sum(len(reference.merged.get(unit, ())) for unit in units.reference),
    )


def _report_figures(
    judge_input: JudgeInput, units: ComparedUnits, resampling: Resampling
) -> Iterator[Figure]:
    """Yield all figures of a judge."""
    trace_scope = judge_input.scope("judge_traces", judge_input.slugs)
    outside_count = judge_input.outside_workspace.traces
    unlabelled = judge_input.unlabelled - judge_input.examples
    yield from trace_scope.counts(
        {
            "judged": len({trace for trace, _ in judge_input.verdicts}) + outside_count,
            "compared": len(units.traces),
            "unlabelled": len(unlabelled) + outside_count,
        }
    )
    left_out_scope = judge_input.scope("judge_left_out", judge_input.slugs)
    yield from left_out_scope.counts(
        {
            **{reason: by_mode.total() for reason, by_mode in units.left_out.items()},
            "examples": units.examples,
            "unfinished": judge_input.unfinished,
        }
    )
    yield from judge_figures(judge_input, units, trace_sums(units, judge_input.slugs, resampling))
    yield from calibration(judge_input, units)
    yield from acceptance(judge_input)
    yield from localisation(judge_input, units)
    yield from prevalence_figures(judge_input, units)
    yield from effect_figures(judge_input, resampling)
