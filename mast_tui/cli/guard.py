"""``mast-tui guard``: build checks of runs from labels, and run them in a hook."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from mast_tui.adjudication import read_work_by_trace
from mast_tui.adjudication.trace_files import SpanOrders, traces_from_files
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer
from mast_tui.cli.shared.common import (
    open_with_taxonomy,
    print_json,
    print_line,
    print_table,
    say,
    summary_of,
)
from mast_tui.columns import TableColumn
from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.figures.intervals import wilson
from mast_tui.gold.model import GoldLabel
from mast_tui.judges.rules import GUARD_RULES, RULES_PREFIX
from mast_tui.judges.rules.guards import (
    PHRASES,
    Guard,
    GuardsFile,
    TestedRates,
    guards_text,
    read_rules,
    stop_reasons,
)
from mast_tui.judges.rules.walk import Walk, walk
from mast_tui.labels import Label, VerdictValue
from mast_tui.output_files import Outputs, ReplacementRules
from mast_tui.safe_text import one_line
from mast_tui.session import Viewer
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.json_fields import fields_of, items_of
from mast_tui.workspace import Workspace
from mast_tui.workspace.outputs import reason_to_protect

MOST_FALSE_ALARMS: Final = 0.05
"""The highest upper bound of the share of false alarms for a guard that is on."""

MOST_PHRASES: Final = 5
"""The most phrases of a guard."""

_PHRASE_WORDS: Final = range(3, 7)
_WORD: Final = re.compile(r"[\w']+")
_FEWEST_FAILURES: Final = 2
"""The fewest runs with the failure that contain a phrase."""


@click.group()
def guard_command() -> None:
    """Turn labels into guards: checks that agents run before they stop.

    Example: mast-tui guard build --labels gold -o guards.toml
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardBuildRequest:
    """The options of ``mast-tui guard build``."""

    label_source: str = options.option(
        "--labels",
        default="gold",
        show_default=True,
        metavar="gold|NAME",
        help="The annotator whose labels decide which runs show a failure.",
    )
    output: Path | None = options.output(required=True, help="The file of guards to write.")
    seed: int = options.seed(help="The seed of the split of the labelled traces into halves.")
    force: bool = options.force()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


@guard_command.command("build")
@options.takes(GuardBuildRequest, (options.ONE_OUTPUT_ON_STDOUT,))
def build_command(request: GuardBuildRequest) -> None:
    """Compile labels into a file of guards, each with its error rates.

    Guards are chosen on one half of the labelled traces and tested on the other; runs of one task
    are in one half. A guard is on only if the upper bound of its false alarms is at most 5 %.

    Example: mast-tui guard build --labels gold -o guards.toml
    """
    workspace, taxonomy = open_with_taxonomy(request.common)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    assert request.output is not None, "the option is required"
    outputs = Outputs(ReplacementRules(precious=reason_to_protect, force=request.force))
    outputs.check(request.output)
    runs, missing_count = _labelled_runs(workspace, taxonomy, request.label_source, viewer)
    if missing_count:
        traces_text = counted(missing_count, "labelled trace")
        say(f"mast-tui guard: no file is known of {traces_text}; open the traces once")
    if not runs:
        raise MastError(f"no available trace has a verdict by {request.label_source}")
    guards = tuple(_tested_guards(runs, taxonomy, request.seed))
    outputs.add(
        request.output,
        guards_text(
            GuardsFile(
                format="mast-tui guards",
                version=1,
                taxonomy=taxonomy.ref,
                labels=request.label_source,
                guards=guards,
            )
        ),
    )
    outputs.commit()
    if request.as_json:
        document = [{"name": guard.name, "mode": guard.mode, "on": guard.on} for guard in guards]
        print_json({"output": str(request.output), "traces": len(runs), "guards": document})
        return
    on_count = sum(guard.on for guard in guards)
    with summary_of(request.output):
        if guards:
            print_table(_COLUMNS, guards)
        print_line(
            f"{request.output}: {counted(len(guards), 'guard')} from "
            f"{counted(len(runs), 'labelled trace')}; {counted(on_count, 'is', 'are')} on"
        )


_COLUMNS: Final[tuple[TableColumn[Guard], ...]] = (
    TableColumn("guard", lambda guard: guard.name),
    TableColumn("on", lambda guard: "on" if guard.on else "off"),
    TableColumn(
        "false alarms", lambda guard: _share_text(guard, "false_alarms", "runs"), right=True
    ),
    TableColumn("at most", lambda guard: _bound_text(guard.tested), right=True),
    TableColumn("hits", lambda guard: _share_text(guard, "hits", "failures"), right=True),
    TableColumn("note", lambda guard: guard.note),
)


def _share_text(guard: Guard, part: str, whole: str) -> str:
    tested = guard.tested
    return "" if tested is None else f"{getattr(tested, part)} of {getattr(tested, whole)}"


def _bound_text(tested: TestedRates | None) -> str:
    bound = None if tested is None else tested.false_alarm_bound
    return "" if bound is None else f"{bound:.1%}"


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run with its labels.

    Attributes:
        walk: The steps of the run.
        task: The text that identifies the task of the run.
        verdicts: The verdicts by the slug of the mode.
        quotes: The texts that labels quote, by the slug of the mode.
    """

    walk: Walk
    task: str
    verdicts: Mapping[str, VerdictValue]
    quotes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def is_in_first_half(self, seed: int) -> bool:
        """Check whether the run is in the half for choosing guards.

        All runs of a task are in the same half.
        """
        digest = blake2b(f"{seed}\n{self.task}".encode("utf-8", "surrogatepass")).digest()
        return digest[0] % 2 == 0

    def spoken_words(self) -> str:
        """Return the lower-case words of all agent messages, separated and enclosed by spaces."""
        messages = (step.own_text for step in self.walk.steps if step.is_message)
        return f" {' '.join(_WORD.findall(' '.join(messages).lower()))} "


def _labelled_runs(
    workspace: Workspace, taxonomy: Taxonomy, label_source: str, viewer: Viewer
) -> tuple[list[LabelledRun], int]:
    """Return the labelled runs that the viewer may see, and the number of missing files.

    The viewer's history records these runs as seen.

    Raises:
        MastError: The source of labels is neither ``gold`` nor an annotator of the workspace.
    """
    if label_source.startswith(RULES_PREFIX):
        raise MastError(
            f"--labels {one_line(label_source)}: guards consist of these rules and would agree "
            "with themselves; name a person, an agent or a model"
        )
    is_gold = label_source == "gold"
    if not is_gold:
        workspace.check_annotators(label_source, other_choices=["gold"])
    span_orders = SpanOrders(workspace)
    trace_of = traces_from_files(workspace)
    annotators = None if is_gold else [label_source]
    work_by_trace = read_work_by_trace(workspace, taxonomy, annotators=annotators)
    visible_ids = [trace_id for trace_id in work_by_trace if viewer.may_see_others(trace_id)]
    viewer.reveal(visible_ids)
    runs = []
    missing_count = 0
    for trace_id in visible_ids:
        work = work_by_trace[trace_id]
        if not (is_gold or work.sides):
            continue
        trace = trace_of(trace_id)
        if trace is None:
            missing_count += 1
            continue
        if is_gold:
            gold = work.gold(taxonomy, span_orders(trace_id))
            values = {verdict.mode: verdict.value for verdict in gold.verdicts}
            labels: Iterable[Label | GoldLabel] = gold.labels
        else:
            # One annotator has one side in a trace.
            (side, *_) = work.sides
            values = {mode.slug: side.verdict(mode.slug) for mode in taxonomy.modes}
            labels = side.labels.values()
        runs.append(_labelled_run(trace_id, trace, values, labels))
    return runs, missing_count


def _labelled_run(
    trace_id: str,
    trace: Trace,
    values: Mapping[str, VerdictValue | None],
    labels: Iterable[Label | GoldLabel],
) -> LabelledRun:
    """Return a run with its verdicts and the quotes of its labels."""
    verdicts = {mode: value for mode, value in values.items() if value is not None}
    quotes: dict[str, list[str]] = {}
    for label in labels:
        quotes.setdefault(label.mode, []).append(label.target.quote or "")
    # A trace without a task counts as a task of its own.
    task = "\n".join(trace.meta.task_key or (trace_id,))
    return LabelledRun(walk(trace), task, verdicts, quotes)


def _tested_guards(runs: Sequence[LabelledRun], taxonomy: Taxonomy, seed: int) -> Iterator[Guard]:
    """Choose guards on one half of the runs, and yield them tested on the other half.

    A guard is a rule of the package, or a set of phrases.
    """
    first_half = [run for run in runs if run.is_in_first_half(seed)]
    second_half = [run for run in runs if not run.is_in_first_half(seed)]
    slugs = {mode.slug for mode in taxonomy.modes}
    for rule in GUARD_RULES:
        if rule.mode in slugs:
            guard = Guard(name=rule.name, condition=rule.name, mode=rule.mode, on=False)
            if _is_chosen(guard, first_half):
                yield tested_guard(guard, second_half)
    for mode in taxonomy.modes:
        phrases = chosen_phrases(first_half, mode.slug)
        if phrases:
            yield tested_guard(
                Guard(
                    name=f"phrases-{mode.code}",
                    condition=PHRASES,
                    mode=mode.slug,
                    on=False,
                    phrases=phrases,
                ),
                second_half,
            )


def _is_chosen(guard: Guard, labelled_runs: Iterable[LabelledRun]) -> bool:
    """Check whether the guard fires more often in runs with the failure than in others."""
    rates = rates_of(guard, labelled_runs)
    if not rates.hits:
        return False
    # This is hits / failures > false_alarms / runs without a division by 0. ``rates.runs`` are the
    # runs without the failure.
    return rates.hits * rates.runs > rates.false_alarms * rates.failures or not rates.runs


def rates_of(guard: Guard, runs: Iterable[LabelledRun]) -> TestedRates:
    """Count the hits and false alarms of a guard, with their intervals.

    Args:
        guard: The guard.
        runs: The labelled runs. Runs without a verdict on the guard's mode do not count.
    """
    # The keys are the verdict, and True if the guard fires.
    counts = Counter(
        (run.verdicts.get(guard.mode), any(True for _ in guard.rule.find(run.walk))) for run in runs
    )
    hits = counts[VerdictValue.PRESENT, True]
    failures = hits + counts[VerdictValue.PRESENT, False]
    false_alarms = counts[VerdictValue.ABSENT, True]
    clean_runs = false_alarms + counts[VerdictValue.ABSENT, False]
    alarm_interval = _rounded_wilson(false_alarms, clean_runs)
    return TestedRates(
        runs=clean_runs,
        false_alarms=false_alarms,
        false_alarm_bound=None if alarm_interval is None else alarm_interval[1],
        failures=failures,
        hits=hits,
        hit_interval=_rounded_wilson(hits, failures),
    )


def _rounded_wilson(count: int, total: int) -> tuple[float, float] | None:
    interval = wilson(count, total)
    return None if interval is None else (round(interval[0], 4), round(interval[1], 4))


def tested_guard(guard: Guard, runs: Iterable[LabelledRun]) -> Guard:
    """Return a guard with its error rates, on if false alarms are rare enough.

    Args:
        guard: The guard.
        runs: The labelled runs that had no part in choosing the guard.
    """
    rates = rates_of(guard, runs)
    is_on = rates.false_alarm_bound is not None and rates.false_alarm_bound <= MOST_FALSE_ALARMS
    note = "" if is_on else _reason_for_off(rates)
    return msgspec.structs.replace(guard, on=is_on, note=note, tested=rates)


def _reason_for_off(rates: TestedRates) -> str:
    """Return the text why a guard is off, with the number of runs that would suffice."""
    needed_runs = next(
        n
        for n in itertools.count(rates.runs + 1)
        if (wilson(rates.false_alarms, n) or (0.0, 1.0))[1] <= MOST_FALSE_ALARMS
    )
    return (
        f"tested on {counted(rates.runs, 'run')} without the failure; with "
        f"{counted(rates.false_alarms, 'false alarm')}, {needed_runs} such runs are needed"
    )


def chosen_phrases(runs: Sequence[LabelledRun], mode: str) -> tuple[str, ...]:
    """Choose quoted phrases that agents say only in runs with the failure.

    Each next phrase occurs in the most failed runs that no chosen phrase covers.

    Args:
        runs: The labelled runs.
        mode: The slug of the mode.
    """
    texts = [(run.verdicts.get(mode), run.spoken_words()) for run in runs]
    failed_texts = [text for value, text in texts if value is VerdictValue.PRESENT]
    clean_texts = [text for value, text in texts if value is VerdictValue.ABSENT]
    candidates = {
        phrase
        for run in runs
        if run.verdicts.get(mode) is VerdictValue.PRESENT
        for quote in run.quotes.get(mode, ())
        for phrase in _phrases_in(quote)
    }
    runs_by_phrase = {
        phrase: frozenset(
            number for number, text in enumerate(failed_texts) if f" {phrase} " in text
        )
        for phrase in candidates
        if not any(f" {phrase} " in text for text in clean_texts)
    }
    phrases: list[str] = []
    covered_runs: frozenset[int] = frozenset()
    while len(phrases) < MOST_PHRASES and runs_by_phrase:
        best_phrase = max(
            runs_by_phrase,
            key=lambda phrase: (len(runs_by_phrase[phrase] - covered_runs), len(phrase), phrase),
        )
        best_runs = runs_by_phrase.pop(best_phrase)
        if len(best_runs) < _FEWEST_FAILURES or best_runs <= covered_runs:
            break
        phrases.append(best_phrase)
        covered_runs |= best_runs
    return tuple(phrases)


def _phrases_in(quote: str) -> Iterator[str]:
    tokens = _WORD.findall(quote.lower())
    for length in _PHRASE_WORDS:
        for start in range(len(tokens) - length + 1):
            yield " ".join(tokens[start : start + length])


_SETTINGS: Final[Mapping[str, Path]] = {
    "claude-code": Path(".claude/settings.json"),
    "codex": Path(".codex/hooks.json"),
}
"""The file of hooks in a project by coding agent."""

_TIMEOUT_SECONDS: Final = 60
"""The time limit of the hook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardHookRequest:
    """The options of ``mast-tui guard hook``."""

    agent: str = options.argument(type=click.Choice([*_SETTINGS]))
    guards: Path = options.input_file("--guards", required=True, help="The file of guards.")
    output: Path | None = options.output(
        help="The settings to write. Default: .claude/settings.json or .codex/hooks.json here."
    )


@guard_command.command("hook")
@options.takes(GuardHookRequest)
def hook_command(request: GuardHookRequest) -> None:
    """Write a stop hook of a coding agent, which runs the guards.

    The agent runs the hook before a session ends. If a guard fires, the agent gets the reason and
    continues. Other settings in the file stay.

    Example: mast-tui guard hook claude-code --guards guards.toml
    """
    read_rules(request.guards, load_mast(), any_taxonomy=True)  # raises if unusable
    path = request.output or _SETTINGS[request.agent]
    settings = _read_settings(path)
    program = shutil.which("mast-tui") or str(Path(sys.argv[0]).absolute())
    arguments = [program, "guard", "stop", "--guards", str(request.guards.absolute())]
    entry: dict[str, Any] = {
        "type": "command",
        "command": shlex.join(arguments),
        "timeout": _TIMEOUT_SECONDS,
    }
    hooks = settings.setdefault("hooks", {})
    stop_groups = hooks.setdefault("Stop", []) if isinstance(hooks, dict) else None
    if not isinstance(stop_groups, list):
        raise MastError(f"{path}: 'hooks' or its 'Stop' is not what the agent expects; fix it")
    existing_hooks = [
        hook for group in stop_groups for hook in items_of(fields_of(group).get("hooks"))
    ]
    if any(fields_of(hook).get("command") == entry["command"] for hook in existing_hooks):
        print_line(f"{path}: the hook is already there")
        return
    stop_groups.append({"hooks": [entry]})
    outputs = Outputs(ReplacementRules(force=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    outputs.add(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    outputs.commit()
    with summary_of(path):
        print_line(f"{path}: the stop hook runs {request.guards}")


def _read_settings(path: Path) -> dict[str, Any]:
    """Read a settings file; empty if it is missing.

    Raises:
        MastError: The file is no JSON object.
    """
    try:
        settings = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise MastError(f"{path}: not JSON ({error}); fix or move it") from None
    if not isinstance(settings, dict):
        raise MastError(f"{path}: not a JSON object; fix or move it")
    return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardStopRequest:
    """The options of ``mast-tui guard stop``."""

    # An existence check by click would exit with 2, which keeps the agent from stopping.
    guards: Path = options.option(
        "--guards", required=True, type=click.Path(path_type=Path), help="The file of guards."
    )


@guard_command.command("stop")
@options.takes(GuardStopRequest)
def stop_command(request: GuardStopRequest) -> None:
    """Tell a stop hook, whose JSON is on stdin, if the session may end.

    Prints nothing if the session may end, or if a hook has already kept it from ending in this
    turn. Otherwise prints the decision to block, with the reasons. Claude Code and Codex read it.

    Example: mast-tui guard stop --guards guards.toml < event.json
    """
    event = _stop_event(sys.stdin.read())
    if event.get("stop_hook_active"):
        return
    path = Path(str(event.get("transcript_path") or ""))
    report = read_file(path, named=True)
    if report.failed is not None or not report.traces:
        raise MastError(f"{path}: {report.failed or 'no trace in it'}")
    trace = report.traces[0]
    read_fully(trace)
    rules = read_rules(request.guards, load_mast(), any_taxonomy=True)
    reasons = stop_reasons(rules, trace, str(event.get("last_assistant_message") or ""))
    if reasons:
        reason = " ".join(one_line(text, 400) for text in dict.fromkeys(reasons))
        answer = {"decision": "block", "reason": f"{reason} Do what is missing before you end."}
        sys.stdout.write(json.dumps(answer) + "\n")


def _stop_event(text: str) -> Mapping[str, Any]:
    """Parse the JSON event of a stop hook.

    Raises:
        MastError: The text is no JSON object with the path of a transcript.
    """
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        event = None
    path = fields_of(event).get("transcript_path")
    is_path = isinstance(path, str) and path and "\0" not in path and path.isprintable()
    if not isinstance(event, dict) or not is_path:
        raise MastError("stdin contains no stop hook event with a 'transcript_path'")
    return event
