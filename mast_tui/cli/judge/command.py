"""``mast-tui judge``: the options, and the runs of judges without a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.judge.output import LineProgress, print_run, report_failures, run_document
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer
from mast_tui.cli.shared.common import open_workspace, say, working_taxonomy
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.configuration import ANSWER_TOKENS, TIMEOUT, WINDOW_TOKENS
from mast_tui.judges.llm.request import MOST_STEPS, Way
from mast_tui.judges.rules import RulesJudge, chosen_rules
from mast_tui.judges.runner import JudgedTrace, TraceJudging, judged_traces, run_judge
from mast_tui.judges.twins import TwinsJudge
from mast_tui.traces.library import scan
from mast_tui.traces.scan.each_trace import each_trace

if TYPE_CHECKING:
    from mast_tui.judges.runner import Judge
    from mast_tui.traces.model import FileReport, Trace


def traces_under(paths: tuple[Path, ...], reports: list[FileReport]) -> Iterator[Trace]:
    """Yield the traces under the paths, and append reports on other files to ``reports``.

    Args:
        paths: Files and folders.
        reports: A list that receives the reports on files without traces.
    """
    for report in scan(paths):
        if report.format is None:
            reports.append(report)
        yield from report.traces


def judge_under(
    paths: tuple[Path, ...], reports: list[FileReport], judging: TraceJudging, pool: WorkerPool
) -> Iterator[JudgedTrace]:
    """Yield a judge's results on the traces under the paths.

    Args:
        paths: Files and folders.
        reports: A list that receives the reports on files without traces.
        judging: The judge as a function of a trace.
        pool: The worker processes, and the progress display.
    """
    for report, results in each_trace(
        pool.reachable(paths), judging, pool.workers, tell=pool.show_progress
    ):
        if report.format is None:
            reports.append(report)
        for result in results:
            pool.on_trace(failed=result.problem is not None)
            yield result


MOST_EXAMPLES: Final = 50


class NumberOrFile(click.ParamType[int | Path]):
    """A number of examples, or the path of an existing file."""

    name = "number or file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Path:
        """Return the number or the path.

        Args:
            value: The text of the option, or its converted value.
            param: The option, for the error message.
            ctx: The context of the command, for the error message.

        Raises:
            click.BadParameter: The text is neither a number in the range nor a file.
        """
        if isinstance(value, int | Path):
            return value
        text = str(value)
        if text.isdecimal():
            count = int(text)
            if not 1 <= count <= MOST_EXAMPLES:
                self.fail(f"{count} is not in the range 1<=x<={MOST_EXAMPLES}", param, ctx)
            return count
        path = Path(text)
        if not path.is_file():
            self.fail(f"{text!r} is not a number or a file", param, ctx)
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """The options of ``mast-tui judge`` for a model."""

    model: str | None = options.option(
        "--model", metavar="M", help="The model's name on its server."
    )
    base_url: str | None = options.option(
        "--base-url",
        metavar="URL",
        help="The model's server. Default: OPENAI_BASE_URL, else the configuration, else OpenAI.",
    )
    allow_http: bool = options.option(
        "--allow-http",
        is_flag=True,
        help="Allow unencrypted requests to another machine, such as one in the same room.",
    )
    concurrency: int | None = options.option(
        "--concurrency",
        type=click.IntRange(1, 256),
        metavar="N",
        help="The number of simultaneous requests. Default: 8.",
    )
    samples: int | None = options.option(
        "--samples",
        type=click.IntRange(1, 50),
        metavar="K",
        help="Ask K times about each trace; the confidence of a finding is the share of answers "
        "with it. Default: 1.",
    )
    temperature: float | None = options.option(
        "--temperature",
        type=click.FloatRange(0.0, 2.0),
        metavar="T",
        help="The sampling temperature. Default: that of the server.",
    )
    window_tokens: int | None = options.option(
        "--window-tokens",
        type=click.IntRange(1_000, 2_000_000),
        metavar="N",
        help="The maximum tokens of a trace per request; longer traces need several requests. "
        f"Default: {WINDOW_TOKENS}.",
    )
    answer_tokens: int | None = options.option(
        "--answer-tokens",
        type=click.IntRange(200, 200_000),
        metavar="N",
        help="The maximum tokens of an answer; a retry after a cut answer gets more. Default: "
        f"{ANSWER_TOKENS}.",
    )
    max_tokens_total: int | None = options.option(
        "--max-tokens-total",
        type=click.IntRange(1),
        metavar="N",
        help="The maximum tokens of the run, in and out together.",
    )
    max_cost: float | None = options.option(
        "--max-cost",
        type=click.FloatRange(0.0, min_open=True),
        metavar="X",
        help="The maximum cost of the run, by the prices in config.toml.",
    )
    timeout: float | None = options.option(
        "--timeout",
        type=click.FloatRange(1.0),
        metavar="SECONDS",
        help=f"The maximum seconds for one answer. Default: {TIMEOUT:g}.",
    )
    few_shot: str | None = options.option(
        "--few-shot",
        type=click.Choice(["gold", "built-in"]),
        help="Show the model examples: from resolved gold, or one hit and one near miss per mode "
        "from the sample traces. Figures leave out the traces of examples.",
    )
    examples: int | Path | None = options.option(
        "--examples",
        type=NumberOrFile(),
        metavar="N|FILE",
        help="The number of examples from gold (default: 4); or a table with examples of your own: "
        "trace_id, mode, value, span_first, span_last, quote, note, as in csv-long.",
    )
    guidelines: bool = options.option(
        "--guidelines",
        is_flag=True,
        help="Show the model the team's guidelines on each mode.",
    )
    hold_out: float | None = options.option(
        "--hold-out",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        metavar="SHARE",
        help="Permanently set aside a share of all traces; they are never examples in a prompt.",
    )
    redact: Path | None = options.input_file(
        "--redact",
        help="A file with your own patterns, one per line; matches are removed before sending.",
    )
    no_redact: bool = options.option(
        "--no-redact", is_flag=True, help="Send texts unchanged, including secrets."
    )
    no_hints: bool = options.option(
        "--no-hints", is_flag=True, help="Do not show the model the findings of the rules."
    )
    verify: bool = options.option(
        "--verify",
        is_flag=True,
        help="Ask the model again about each finding, with the mode's definition only, and drop "
        "those that it rejects. One more request per finding.",
    )
    artefacts: bool = options.option(
        "--artefacts",
        is_flag=True,
        help="Show the model the final patch, or the changes of files, and the test results.",
    )
    decisive: bool = options.option(
        "--decisive",
        is_flag=True,
        help="Ask for the decisive step in place of modes: the earliest step whose correction "
        "would have saved the run, the correction, and its consequence.",
    )
    step_by_step: bool = options.option(
        "--step-by-step",
        is_flag=True,
        help="Ask for the decisive step one step at a time, in runs of at most "
        f"{MOST_STEPS} spans. One request per step.",
    )
    mode_order: int = options.option(
        "--mode-order",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Ask about the modes in a random order with the seed N; 'exam' then measures the "
        "effect of the order.",
    )
    first_number: int = options.option(
        "--first-number",
        type=click.IntRange(1, 1_000_000),
        default=1,
        metavar="N",
        help="Number the spans in the prompt from N on; 'exam' then measures the effect of the "
        "numbers.",
    )
    record: Path | None = options.input_file(
        "--record", help="Append the model's answers to a file."
    )
    replay: Path | None = options.input_file(
        "--replay",
        help="Take the answers from a recorded file; nothing is sent, and no key is needed.",
    )
    batch: bool = options.option(
        "--batch",
        is_flag=True,
        help="Use the server's Batch API, at half the price and within a day; the same command "
        "continues to wait, or collects the answers.",
    )
    write_batch: Path | None = options.input_file(
        "--write-batch",
        help="Send nothing: write the requests into FILE, in the format of the OpenAI Batch API "
        "and vllm run-batch.",
    )
    read_batch: tuple[Path, ...] = options.input_file(
        "--read-batch",
        help="Send nothing: take the answers from batch result files; repeat for several files.",
        multiple=True,
    )
    dry_run: bool = options.option(
        "--dry-run", is_flag=True, help="Only show what would be sent where, and the cost."
    )

    @property
    def by_files(self) -> bool:
        """True if the user transfers requests and answers as files."""
        return self.write_batch is not None or bool(self.read_batch)

    @property
    def way(self) -> Way:
        """The way to ask for the decisive step; empty if the judge asks for modes."""
        if self.step_by_step:
            return "step by step"
        return "whole run" if self.decisive else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """The options of ``mast-tui judge``."""

    paths: tuple[Path, ...] = options.paths(required=True)
    judge_name: str = options.option(
        "--judge",
        type=click.Choice(["rules", "twins", "llm"]),
        required=True,
        help="The judge: rules, a comparison of runs, or a model.",
    )
    rule_names: str | None = options.option(
        "--rules",
        metavar="all|NAME,…",
        help="The rules that run. Default: two of them; docs/lint.md lists all.",
    )
    again: bool = options.option(
        "--again",
        is_flag=True,
        help="Also judge traces that this judge has judged before; a model is asked again.",
    )
    quiet: bool = options.option("--quiet", is_flag=True, help="Show no progress on stderr.")
    workers: str | None = options.workers()
    out: str | None = options.option(
        "--out",
        metavar="FOLDER-or-URL",
        help="Write findings as shards (Parquet) into this folder, not into a workspace; the same "
        "command continues an interrupted run. See docs/scale.md.",
    )
    shard_files: int | None = options.option(
        "--shard-files",
        type=click.IntRange(1),
        help="The average number of files per shard. Default: up to 512, fewer for few files.",
    )
    model: ModelRequest = options.group(ModelRequest)
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


JUDGE_RULES: Final = (
    OptionRule[JudgeRequest](
        "--rules needs --judge rules",
        options=("--rules",),
        when=lambda request: request.judge_name != "rules",
    ),
    OptionRule[JudgeRequest](
        "{option} is not for twins: one process compares all runs",
        options=("--workers", "--out"),
        when=lambda request: request.judge_name == "twins",
    ),
    OptionRule[JudgeRequest](
        "--workers needs --out for a model; for a workspace --concurrency sets the number of "
        "simultaneous requests",
        options=("--workers",),
        needs=("--out",),
        when=lambda request: request.judge_name == "llm",
    ),
    OptionRule[JudgeRequest](
        "{other} is for a workspace; --out writes shards instead",
        options=("--out",),
        excludes=("--again", "--workspace"),
    ),
    OptionRule[JudgeRequest](
        "{option} is for --judge llm; {request.judge_name} uses no model",
        options=options.flags_of(ModelRequest),
        when=lambda request: request.judge_name != "llm",
    ),
    OptionRule[JudgeRequest](
        "--examples N needs --few-shot gold",
        options=("--examples",),
        when=lambda request: (
            isinstance(request.model.examples, int) and request.model.few_shot != "gold"
        ),
    ),
    OptionRule[JudgeRequest](
        "--examples FILE contains all examples; leave out --few-shot",
        options=("--few-shot",),
        when=lambda request: isinstance(request.model.examples, Path),
    ),
    OptionRule[JudgeRequest](
        "--redact and --no-redact exclude each other; give one of them",
        options=("--redact",),
        excludes=("--no-redact",),
    ),
    OptionRule[JudgeRequest](
        "--record and --replay exclude each other; give one of them",
        options=("--record",),
        excludes=("--replay",),
    ),
    OptionRule[JudgeRequest](
        "--batch sends and collects by itself; leave out --write-batch and --read-batch",
        options=("--batch",),
        excludes=("--write-batch", "--read-batch"),
    ),
    OptionRule[JudgeRequest](
        "--record and --replay are for direct requests, not for batches",
        options=("--record", "--replay"),
        excludes=("--batch", "--write-batch", "--read-batch"),
    ),
    OptionRule[JudgeRequest](
        "--decisive asks for one step, not for modes: leave out {other}",
        options=("--decisive", "--step-by-step"),
        excludes=("--verify", "--few-shot", "--examples"),
    ),
    OptionRule[JudgeRequest](
        "{other} cannot be combined with --out",
        options=("--out",),
        excludes=(
            "--guidelines",
            "--hold-out",
            "--record",
            "--replay",
            "--batch",
            "--write-batch",
            "--read-batch",
        ),
    ),
    OptionRule[JudgeRequest](
        "examples of your own traces need a workspace; with --out give --few-shot built-in",
        options=("--out",),
        when=lambda request: request.model.few_shot == "gold" or request.model.examples,
    ),
)


_BY_MODEL: Final = "mast_tui.cli.judge.llm"
"""The module for a model. Its client takes as long to import as all other code."""

_INTO_SHARDS: Final = "mast_tui.scale.command"
_INTO_SHARDS_BY_MODEL: Final = "mast_tui.scale.model_command"
"""The modules of ``--out``. The core may import them only by name."""


@click.command()
@options.takes(JudgeRequest, JUDGE_RULES)
def judge_command(request: JudgeRequest) -> int:
    """Let a judge suggest failure modes in traces.

    'rules' and 'twins' need no model and no network. 'twins' compares several runs of one task and
    finds steps that only failed runs share. 'llm' asks a model at any server with the OpenAI API;
    --dry-run shows first what is sent and the cost.

    The results on each trace are saved at once. The same command continues an interrupted run: it
    skips traces that this version of the judge has judged (except 'twins', which compares all
    runs). Results stay hidden from blind annotators, and from those to whom a study gives traces
    without suggestions.

    Example: mast-tui judge runs/ --judge rules
    """
    if request.judge_name == "llm" and request.out is None:
        return int(import_module(_BY_MODEL).judge_with_model(request))
    if request.judge_name == "twins":
        twins = TwinsJudge(traces_under(request.paths, []))
        if not request.quiet:
            say(f"mast-tui judge: {twins.summary}")
        return _judge_into_workspace(replace(request, again=True), twins)
    with WorkerPool(request.workers, quiet=request.quiet) as pool:
        if request.judge_name == "llm":
            return int(import_module(_INTO_SHARDS_BY_MODEL).judge_with_model(request, pool))
        judge = RulesJudge(chosen_rules(request.rule_names or "default"))
        if request.out is None:
            return _judge_into_workspace(request, judge, judge.covered_by, pool)
        return int(import_module(_INTO_SHARDS).judge_with_rules(request, judge, pool))


def _judge_into_workspace(
    request: JudgeRequest,
    judge: Judge,
    covered_by: tuple[str, ...] = (),
    pool: WorkerPool | None = None,
) -> int:
    """Run a judge without a model, save its suggestions, and return the exit code.

    Without ``--again``, traces that this judge or a judge in ``covered_by`` has judged are skipped.
    """
    workspace = open_workspace(request.common, create=True)
    taxonomy = working_taxonomy(workspace, request.common.taxonomy)
    hides_findings = command_viewer(
        workspace, taxonomy.ref, request.common, allow_unknown=True
    ).judges_hidden
    reports: list[FileReport] = []
    traces: Iterable[Trace | JudgedTrace] = traces_under(request.paths, reports)
    quiet = request.quiet
    if pool is not None and pool.workers is not None:
        quiet = True  # the pool shows the progress
        already_judged = (
            frozenset() if request.again else judged_traces(judge, taxonomy, workspace, covered_by)
        )
        traces = judge_under(request.paths, reports, TraceJudging(judge, already_judged), pool)
    summary = run_judge(
        judge,
        taxonomy,
        traces,
        workspace,
        covered_by=None if request.again else covered_by,
        on_progress=LineProgress(quiet, hides_findings=hides_findings).on_trace,
    )
    keep_missing_indices(workspace)
    document = run_document(summary, reports, taxonomy)
    return report_failures(
        print_run(document, taxonomy, hides_findings=hides_findings, as_json=request.as_json)
    )
