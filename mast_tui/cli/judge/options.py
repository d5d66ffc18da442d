"""The command line of ``mast-tui judge``: options of a model, and the traces under its paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared.options import Decorated
from mast_tui.configuration import ANSWER_TOKENS, TIMEOUT, WINDOW_TOKENS
from mast_tui.judges.llm.request import MOST_STEPS
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


@dataclass(frozen=True, slots=True)
class JudgeCommand:
    """What was asked for, of whatever judge, and who asks."""

    paths: tuple[Path, ...]
    again: bool
    quiet: bool
    as_json: bool
    common: CommonOptions


def _file(name: str, help_text: str, *, multiple: bool = False) -> Callable[[Decorated], Decorated]:
    """An option that names a file."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option(name, type=kind, multiple=multiple, metavar="FILE", help=help_text)


_OPTIONS: Final = (
    click.option("--model", metavar="M", help="The model, as its server calls it."),
    click.option(
        "--base-url",
        metavar="URL",
        help="Where it is asked. Default: OPENAI_BASE_URL, else the configuration, else OpenAI.",
    ),
    click.option(
        "--allow-http",
        is_flag=True,
        help="Send traces and key in the clear to another machine, such as one in the same room.",
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(1, 256),
        metavar="N",
        help="Requests under way at once. Default: 8.",
    ),
    click.option(
        "--samples",
        type=click.IntRange(1, 50),
        metavar="K",
        help="Ask K times about each trace; confidence is the share that found it. Default: 1.",
    ),
    click.option(
        "--temperature",
        type=click.FloatRange(0.0, 2.0),
        metavar="T",
        help="Default: as the server does it.",
    ),
    click.option(
        "--window-tokens",
        type=click.IntRange(1_000, 2_000_000),
        metavar="N",
        help="The most of a trace that one request shows, in tokens; longer ones take several."
        f" Default: {WINDOW_TOKENS}.",
    ),
    click.option(
        "--answer-tokens",
        type=click.IntRange(200, 200_000),
        metavar="N",
        help="The most that one answer may take at first, in tokens; a model that thinks gets more."
        f" Default: {ANSWER_TOKENS}.",
    ),
    click.option(
        "--max-tokens-total",
        type=click.IntRange(1),
        metavar="N",
        help="What the run may spend, tokens in and out together.",
    ),
    click.option(
        "--max-cost",
        type=click.FloatRange(0.0, min_open=True),
        metavar="X",
        help="What the run may spend in money, by the prices in config.toml.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(1.0),
        metavar="SECONDS",
        help=f"How long one answer may take. Default: {TIMEOUT:g}.",
    ),
    click.option(
        "--few-shot",
        type=click.Choice(["gold", "built-in"]),
        help="Show the model examples from settled gold, or one hit and one near miss for each mode"
        " from the sample traces; the traces they are from are left out of figures.",
    ),
    click.option(
        "--examples",
        type=click.IntRange(1, 50),
        metavar="N",
        help="How many examples from gold. Default: 4.",
    ),
    click.option(
        "--hold-out",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        metavar="SHARE",
        help="Set a share of all traces aside for good, which no prompt may use.",
    ),
    _file("--redact", "Patterns of your own, one a line, taken out before anything is sent."),
    click.option("--no-redact", is_flag=True, help="Send texts as they are, secrets and all."),
    click.option(
        "--no-hints", is_flag=True, help="Do not show the model what the rules have counted."
    ),
    click.option(
        "--verify",
        is_flag=True,
        help="Put each finding before the model once more, with its definition alone; what does "
        "not hold is dropped. A request more for each.",
    ),
    click.option(
        "--decisive",
        is_flag=True,
        help="Ask for the decisive step in the place of all modes: the earliest whose correction "
        "would have saved the run, what should have been done, and what would have followed.",
    ),
    click.option(
        "--step-by-step",
        is_flag=True,
        help="Ask so of each step by itself, up to the first that is it, in runs of at most "
        f"{MOST_STEPS} spans. A request more for each.",
    ),
    click.option(
        "--mode-order",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Ask about the modes in an order drawn from N, to see what depends on it with 'exam'.",
    ),
    click.option(
        "--first-number",
        type=click.IntRange(1, 1_000_000),
        default=1,
        metavar="N",
        help="Number the spans from N on in what is sent, to the same end.",
    ),
    _file("--record", "Write what the model answers into a file, behind what stands in it."),
    _file("--replay", "Answer from such a file; nothing is sent, and no key is wanted."),
    click.option(
        "--batch",
        is_flag=True,
        help="Ask through the server's Batch API, at half the price and within a day; the same "
        "command goes on waiting, or collects.",
    ),
    _file(
        "--write-batch",
        "Ask nothing: write what would be asked into FILE, as the OpenAI Batch API and "
        "vllm run-batch take it.",
    ),
    _file(
        "--read-batch",
        "Ask nothing: take the answers from what they have written; several times for several "
        "files.",
        multiple=True,
    ),
    click.option(
        "--dry-run", is_flag=True, help="Only tell what would be sent where, and what it costs."
    ),
)


def model_options(command: Decorated) -> Decorated:
    """Add them all."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
