"""One run of a judge in words: what came of it, what it took, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from mast_tui.safe_text import one_line
from mast_tui.ui.judge_runs.run_rows import RunView, share_found
from mast_tui.ui.phrases import cost_words

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace.records import Run, RunSettings, RunTrace

MOST_LISTED: Final = 100
"""Traces of one run that are listed in words with what went wrong or what to know."""

_MODE_CELLS: Final = 32


def run_words(
    view: RunView, names: Mapping[str, str], taxonomy: Taxonomy, *, at_work: bool = False
) -> str:
    """One run in sentences and a small table; ``names`` are what traces go by.

    ``at_work`` says that it goes on right now.
    """
    run = view.run
    lines = [_head(run, at_work)]
    if view.failed:
        count = len(run.traces)
        lines.append(f"It failed on {view.failed} of {count} traces; Enter lists them.")
    if run.note:
        lines.append(run.note)
    lines += _taken(run)
    if view.modes is None:
        lines.append("What it found is hidden while you work blind or the study keeps it back.")
    else:
        lines += _quotes(run)
        lines += _mode_table(view, taxonomy)
    lines += _about_traces("Failed", names, [(t, t.problem) for t in run.traces if t.problem])
    # What was mended or left out would tell that something was found.
    told = run.traces if view.modes is not None else ()
    remarks = [(t, "; ".join(t.remarks)) for t in told if t.remarks]
    lines += _about_traces("Remarks", names, remarks)
    if run.settings is not None:
        lines += ["", *_settings(run.settings)]
    return "\n".join(lines)


def _head(run: Run, at_work: bool) -> str:
    what = f"{one_line(run.judge)}, {one_line(run.taxonomy)}"
    if run.ending is not None:
        return f"{what}, ended early: {run.ending}. Run it again and it goes on."
    if run.finished_at is None and at_work:
        return f"{what}, still at work."
    if run.finished_at is None:
        return f"{what}, not finished: run it again and it goes on where it stopped."
    return f"{what}."


def _taken(run: Run) -> Iterator[str]:
    if run.settings is None:
        return
    used = run.usage
    cost = "" if run.cost is None else f", cost {cost_words(run.cost)}"
    requests = f"{used.requests:,} request{'' if used.requests == 1 else 's'}"
    yield f"{requests} to {one_line(run.settings.host)}: " + (
        f"{used.tokens_in:,} tokens in, {used.tokens_out:,} out{cost}."
    )


def _quotes(run: Run) -> Iterator[str]:
    quotes = run.quotes
    if quotes.all:
        share = share_found(quotes)
        yield f"{quotes.found:,} of {quotes.all:,} quotes stand in the traces ({share})."
        yield f"Quotes: {quotes.words}."
        if quotes.altered or quotes.not_found:
            yield "Suggestions with altered quotes come late, those without theirs last."


def _mode_table(view: RunView, taxonomy: Taxonomy) -> Iterator[str]:
    """Per mode how one has answered; what is no mode of this taxonomy goes by its slug."""
    if view.left_out:
        these = "1 trace" if view.left_out == 1 else f"{view.left_out} traces"
        yield f"Left out of the figures: {these} whose text stood as an example in a prompt."
    if not view.modes:
        return
    yield ""
    yield f"{'':{_MODE_CELLS}}  found  accepted  rejected  waiting  rate"
    known = [mode.slug for mode in taxonomy.modes]
    for slug in [*(s for s in known if s in view.modes), *sorted(view.modes.keys() - set(known))]:
        name = slug if slug not in known else taxonomy.mode(slug).name
        code = "" if slug not in known else f"{taxonomy.mode(slug).code} "
        said = view.modes[slug]
        yield (
            f"{one_line(code + name, _MODE_CELLS):{_MODE_CELLS}}{said.standing:7}"
            f"{said.accepted:10}{said.rejected:10}{said.waiting:9}{said.share or '—':>6}"
        )


def _about_traces(
    title: str, names: Mapping[str, str], found: Sequence[tuple[RunTrace, str | None]]
) -> Iterator[str]:
    if not found:
        return
    yield ""
    yield f"{title}:"
    for trace, words in found[:MOST_LISTED]:
        yield f"  {one_line(names.get(trace.trace_id, trace.trace_id))}: {one_line(words or '')}"
    if len(found) > MOST_LISTED:
        yield f"  … and {len(found) - MOST_LISTED:,} more traces"


def _settings(settings: RunSettings) -> Iterator[str]:
    form = "" if settings.form is None else f", answers as {one_line(settings.form)}"
    yield f"Asked {one_line(settings.model)}, prompt {one_line(settings.prompt)}{form}."
    if settings.parameters:
        told = (f"{name.replace('_', ' ')} {value}" for name, value in settings.parameters)
        yield f"With {one_line(', '.join(told))}."
    if settings.price_in is not None and settings.price_out is not None:
        yield f"Price per million tokens: {settings.price_in:g} in, {settings.price_out:g} out."
    if settings.examples:
        count = len(settings.examples)
        these = (
            "1 trace stands as an example" if count == 1 else f"{count} traces stand as examples"
        )
        yield f"{these} in the prompt."
