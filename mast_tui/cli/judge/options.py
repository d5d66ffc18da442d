"""The command line of ``mast-tui judge``: options of a model, and the traces under its paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.options import OptionRule
from mast_tui.configuration import ANSWER_TOKENS, TIMEOUT, WINDOW_TOKENS
from mast_tui.judges.llm.request import MOST_STEPS, Way
from mast_tui.traces.library import scan
from mast_tui.traces.scan.each_trace import each_trace

if TYPE_CHECKING:
    from mast_tui.cli.shared.workers import WorkerPool
    from mast_tui.judges.runner import JudgedTrace, TraceJudging
    from mast_tui.traces.model import FileReport, Trace


def traces_under(paths: tuple[Path, ...], reports: list[FileReport]) -> Iterator[Trace]:
    """The traces under the paths; what is none is collected in ``reports``."""
    for report in scan(paths):
        if report.format is None:
            reports.append(report)
        yield from report.traces


def looks_under(
    paths: tuple[Path, ...], reports: list[FileReport], looking: TraceJudging, pool: WorkerPool
) -> Iterator[JudgedTrace]:
    """What a judge sees in the traces under the paths, by the workers that read them.

    Args:
        paths: Files and folders.
        reports: Where what is no trace is collected.
        looking: Has the judge look.
        pool: Who reads, and hears how far that is.
    """
    for report, looks in each_trace(pool.reachable(paths), looking, pool.workers, tell=pool.tell):
        if report.format is None:
            reports.append(report)
        for look in looks:
            pool.on_trace(failed=look.problem is not None)
            yield look


MOST_EXAMPLES: Final = 50


class NumberOrFile(click.ParamType[int | Path]):
    """A number of examples, or the path of a file that exists."""

    name = "number or file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Path:
        """Return the number or the path.

        Args:
            value: The text of the option, or its converted value.
            param: The option.
            ctx: The context of the command.

        Raises:
            click.BadParameter: It is neither.
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
            self.fail(f"{text!r} is neither a number nor a file", param, ctx)
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """The options of ``mast-tui judge`` for a model."""

    model: str | None = options.option(
        "--model", metavar="M", help="The model, as its server calls it."
    )
    base_url: str | None = options.option(
        "--base-url",
        metavar="URL",
        help="Where it is asked. Default: OPENAI_BASE_URL, else the configuration, else OpenAI.",
    )
    allow_http: bool = options.option(
        "--allow-http",
        is_flag=True,
        help="Send traces and key in the clear to another machine, such as one in the same room.",
    )
    concurrency: int | None = options.option(
        "--concurrency",
        type=click.IntRange(1, 256),
        metavar="N",
        help="Requests under way at once. Default: 8.",
    )
    samples: int | None = options.option(
        "--samples",
        type=click.IntRange(1, 50),
        metavar="K",
        help="Ask K times about each trace; confidence is the share that found it. Default: 1.",
    )
    temperature: float | None = options.option(
        "--temperature",
        type=click.FloatRange(0.0, 2.0),
        metavar="T",
        help="Default: as the server does it.",
    )
    window_tokens: int | None = options.option(
        "--window-tokens",
        type=click.IntRange(1_000, 2_000_000),
        metavar="N",
        help="The most of a trace that one request shows, in tokens; longer ones take several."
        f" Default: {WINDOW_TOKENS}.",
    )
    answer_tokens: int | None = options.option(
        "--answer-tokens",
        type=click.IntRange(200, 200_000),
        metavar="N",
        help="The most that one answer may take at first, in tokens; a model that thinks gets more."
        f" Default: {ANSWER_TOKENS}.",
    )
    max_tokens_total: int | None = options.option(
        "--max-tokens-total",
        type=click.IntRange(1),
        metavar="N",
        help="What the run may spend, tokens in and out together.",
    )
    max_cost: float | None = options.option(
        "--max-cost",
        type=click.FloatRange(0.0, min_open=True),
        metavar="X",
        help="What the run may spend in money, by the prices in config.toml.",
    )
    timeout: float | None = options.option(
        "--timeout",
        type=click.FloatRange(1.0),
        metavar="SECONDS",
        help=f"How long one answer may take. Default: {TIMEOUT:g}.",
    )
    few_shot: str | None = options.option(
        "--few-shot",
        type=click.Choice(["gold", "built-in"]),
        help="Show the model examples from settled gold, or one hit and one near miss for each mode"
        " from the sample traces; the traces they are from are left out of figures.",
    )
    examples: int | Path | None = options.option(
        "--examples",
        type=NumberOrFile(),
        metavar="N|FILE",
        help="How many examples from gold (default: 4); or a table with examples of your own: "
        "trace_id, mode, value, span_first, span_last, quote, note, as csv-long has them.",
    )
    guidelines: bool = options.option(
        "--guidelines",
        is_flag=True,
        help="Show the model what the team has agreed on each mode, in the mode's section.",
    )
    hold_out: float | None = options.option(
        "--hold-out",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        metavar="SHARE",
        help="Set a share of all traces aside for good, which no prompt may use.",
    )
    redact: Path | None = options.input_file(
        "--redact", help="Patterns of your own, one a line, taken out before anything is sent."
    )
    no_redact: bool = options.option(
        "--no-redact", is_flag=True, help="Send texts as they are, secrets and all."
    )
    no_hints: bool = options.option(
        "--no-hints", is_flag=True, help="Do not show the model what the rules have counted."
    )
    verify: bool = options.option(
        "--verify",
        is_flag=True,
        help="Put each finding before the model once more, with its definition alone; what does "
        "not hold is dropped. A request more for each.",
    )
    decisive: bool = options.option(
        "--decisive",
        is_flag=True,
        help="Ask for the decisive step in the place of all modes: the earliest whose correction "
        "would have saved the run, what should have been done, and what would have followed.",
    )
    step_by_step: bool = options.option(
        "--step-by-step",
        is_flag=True,
        help="Ask so of each step by itself, up to the first that is it, in runs of at most "
        f"{MOST_STEPS} spans. A request more for each.",
    )
    mode_order: int = options.option(
        "--mode-order",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Ask about the modes in an order drawn from N, to see what depends on it with 'exam'.",
    )
    first_number: int = options.option(
        "--first-number",
        type=click.IntRange(1, 1_000_000),
        default=1,
        metavar="N",
        help="Number the spans from N on in what is sent, to the same end.",
    )
    record: Path | None = options.input_file(
        "--record", help="Write what the model answers into a file, behind what stands in it."
    )
    replay: Path | None = options.input_file(
        "--replay", help="Answer from such a file; nothing is sent, and no key is wanted."
    )
    batch: bool = options.option(
        "--batch",
        is_flag=True,
        help="Ask through the server's Batch API, at half the price and within a day; the same "
        "command goes on waiting, or collects.",
    )
    write_batch: Path | None = options.input_file(
        "--write-batch",
        help="Ask nothing: write what would be asked into FILE, as the OpenAI Batch API and "
        "vllm run-batch take it.",
    )
    read_batch: tuple[Path, ...] = options.input_file(
        "--read-batch",
        help="Ask nothing: take the answers from what they have written; several times for several "
        "files.",
        multiple=True,
    )
    dry_run: bool = options.option(
        "--dry-run", is_flag=True, help="Only tell what would be sent where, and what it costs."
    )

    @property
    def by_files(self) -> bool:
        """Whether requests and answers go through files that somebody else carries."""
        return self.write_batch is not None or bool(self.read_batch)

    @property
    def way(self) -> Way:
        """The way in which the decisive step is asked for; empty where the modes are."""
        if self.step_by_step:
            return "step by step"
        return "whole run" if self.decisive else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """The options of ``mast-tui judge``."""

    paths: tuple[Path, ...] = options.paths(required=True)
    judge_name: str = options.option(
        "--judge", type=click.Choice(["rules", "twins", "llm"]), required=True
    )
    rule_names: str | None = options.option(
        "--rules",
        metavar="all|NAME,…",
        help="Which rules run. Default: two of them; docs/rules.md lists all.",
    )
    again: bool = options.option(
        "--again",
        is_flag=True,
        help="Judge traces anew that this judge has seen; a model is asked again.",
    )
    quiet: bool = options.option("--quiet", is_flag=True, help="No progress on stderr.")
    workers: str | None = options.workers()
    out: str | None = options.option(
        "--out",
        metavar="FOLDER-or-URL",
        help="Write what is found as shards (Parquet) into this folder, not into a workspace; "
        "the same command goes on where it was broken off. docs/scale.md has more.",
    )
    shard_files: int | None = options.option(
        "--shard-files",
        type=click.IntRange(1),
        help="How many files of traces a shard has on average. Default: by their number, up to "
        "512.",
    )
    model: ModelRequest = options.group(ModelRequest)
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


JUDGE_RULES: Final = (
    OptionRule[JudgeRequest](
        "--rules is for --judge rules; the other judges have none",
        options=("--rules",),
        when=lambda request: request.judge_name != "rules",
    ),
    OptionRule[JudgeRequest](
        "{option} is not for twins: they are compared in one place",
        options=("--workers", "--out"),
        when=lambda request: request.judge_name == "twins",
    ),
    OptionRule[JudgeRequest](
        "--workers takes --out with it for a model; into a workspace --concurrency says how many "
        "requests are under way",
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
        "{option} is for --judge llm; the {request.judge_name} ask no model",
        options=options.flags_of(ModelRequest),
        when=lambda request: request.judge_name != "llm",
    ),
    OptionRule[JudgeRequest](
        "--examples N goes with --few-shot gold",
        options=("--examples",),
        when=lambda request: (
            isinstance(request.model.examples, int) and request.model.few_shot != "gold"
        ),
    ),
    OptionRule[JudgeRequest](
        "--examples FILE has all examples; leave out --few-shot",
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
        "--record and --replay are for what is asked directly, not for batches",
        options=("--record", "--replay"),
        excludes=("--batch", "--write-batch", "--read-batch"),
    ),
    OptionRule[JudgeRequest](
        "--decisive asks for one step, not for modes: leave out {other}",
        options=("--decisive", "--step-by-step"),
        excludes=("--verify", "--few-shot", "--examples"),
    ),
    OptionRule[JudgeRequest](
        "{other} does not go together with --out",
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
        "examples of your own traces need a workspace; with --out take --few-shot built-in",
        options=("--out",),
        when=lambda request: request.model.few_shot == "gold" or request.model.examples,
    ),
)
