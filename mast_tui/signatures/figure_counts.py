"""Figures of counts: modes per failed trace, shapes of failures, shares of categories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from mast_tui.reports.render.svg import WIDTH, Drawing, on_shade, text_width, wrapped
from mast_tui.signatures.figure_rates import percent

if TYPE_CHECKING:
    from mast_tui.figures.signatures.groups import CategoryJson, ModesPerTraceJson

_LEFT: Final = 40
_PLOT: Final = 150
_SHADES: Final = (0.12, 0.34, 0.58, 0.82, 1.0)


def ticks(most: int) -> list[int]:
    """Round numbers from 0 to at least ``most``, six of them at most."""
    step = 1
    for step in (k * 10**e for e in range(12) for k in (1, 2, 5)):
        if most <= 5 * step:
            break
    return list(range(0, max(most, 1) + step, step))


def distribution(found: ModesPerTraceJson) -> Drawing:
    """How many failed traces show how many modes, and the mean with its interval above."""
    drawing = Drawing(WIDTH)
    counts = {int(modes): count for modes, count in found["distribution"].items()}
    high = found["ci"][1] if found["ci"] else found["value"] or 0
    last = max([*counts, int(high) + 1])
    marks = ticks(max(counts.values(), default=0))
    bottom = 44.0 + _PLOT
    slot = (WIDTH - _LEFT) / (last + 1)
    wide = min(44.0, 0.7 * slot)

    def at(modes: float) -> float:
        return _LEFT + slot * (modes + 0.5)

    for mark in marks:
        y = bottom - _PLOT * mark / marks[-1]
        drawing.line(_LEFT, y, WIDTH, y, "v-grid" if mark else "v-axis")
        drawing.text(_LEFT - 8, y + 4, str(mark), "v-s v-m", "end")
    for modes in range(last + 1):
        count = counts.get(modes, 0)
        tall = _PLOT * count / marks[-1]
        if count:
            tip = f"{count} failed traces show {modes} modes"
            drawing.rect(at(modes) - wide / 2, bottom - tall, wide, tall, "v-failed", tip=tip)
            kind = "v-s v-halo"
            drawing.text(at(modes), bottom - tall - 5, str(count), kind, "middle")
        if last <= 24 or modes % 5 == 0:
            drawing.text(at(modes), bottom + 16, str(modes), "v-s", "middle")
    words = "number of modes in a failed trace"
    drawing.text((_LEFT + WIDTH) / 2, bottom + 34, words, "v-s v-m", "middle")
    drawing.text(0, 12, "traces", "v-s v-m")
    if found["value"] is not None:
        _mean(drawing, found["value"], found["ci"], at)
    drawing.height = bottom + 40
    return drawing


def _mean(
    drawing: Drawing, value: float, ci: list[float] | None, at: Callable[[float], float]
) -> None:
    words, middle = f"mean {value:.1f}", at(value)
    if ci is not None:
        words += f" ({ci[0]:.1f} to {ci[1]:.1f})"
        drawing.interval(at(ci[0]), at(ci[1]), 24)
        middle = at(sum(ci) / 2)
    drawing.dot(at(value), 24, 4)
    # Bold letters are wider than the plain ones that are measured.
    room = text_width(words, 14) / 2
    drawing.text(min(max(middle, _LEFT + 20 + room), WIDTH - room), 12, words, "v-b", "middle")


def shares(
    rows: Sequence[tuple[str, Sequence[tuple[str, int]]]], nothing: str = "nothing to share"
) -> Drawing:
    """Level bars of which each is divided into parts; ``rows`` are names and parts with counts.

    Every row has the same parts in the same order.
    """
    drawing = Drawing(WIDTH)
    left, span = 120.0, WIDTH - 120.0
    y = 0.0
    for name, parts in rows:
        total = sum(count for _, count in parts)
        drawing.lines(0, y + 19 - 7 * (len(wrapped(name, 112)) - 1), wrapped(name, 112))
        if not total:
            drawing.text(left, y + 19, nothing, "v-s v-m")
        x = left
        for place, (part, count) in enumerate(parts):
            wide = span * count / total if total else 0
            if wide:
                tip = f"{name}: {part} {count} of {total}, {percent(count / total)}"
                drawing.rect(x, y, wide, 30, "v-cell v-paper")
                shade = _SHADES[place % len(_SHADES)]
                drawing.rect(x, y, wide, 30, "v-heat", tip=tip, opacity=shade)
                _share_words(drawing, x + wide / 2, y + 19, wide, (count, total), shade)
            x += wide
        y += 40
    seen = {place: part for _, parts in rows for place, (part, count) in enumerate(parts) if count}
    drawing.height = _parts_legend(drawing, y + 8, dict(sorted(seen.items())))
    return drawing


def _share_words(
    drawing: Drawing, x: float, y: float, wide: float, of: tuple[int, int], shade: float
) -> None:
    both = f"{percent(of[0] / of[1])} ({of[0]})"
    for words in (both, str(of[0])):
        if text_width(words, 10.5) + 6 <= wide:
            drawing.text(x, y, words, on_shade(shade), "middle")
            return


def _parts_legend(drawing: Drawing, y: float, names: Mapping[int, str]) -> float:
    x, y = 120.0, y + 6
    for place, name in names.items():
        words = wrapped(name, WIDTH - 150, most=1)[0]
        if x > 120 and x + 20 + text_width(words) > WIDTH:
            x, y = 120.0, y + 20
        drawing.rect(x, y - 9, 14, 10, "v-cell v-paper")
        drawing.rect(x, y - 9, 14, 10, "v-heat", opacity=_SHADES[place % len(_SHADES)])
        drawing.rect(x, y - 9, 14, 10, "v-cell")
        drawing.text(x + 20, y, words)
        x += 20 + text_width(words) + 20
    return y + 8


def categories(found: dict[str, CategoryJson]) -> Drawing:
    """Of what shows in failed and in successful traces, the part of each category."""
    return shares(
        [
            ("failed traces", [(one["name"], one["failed"]["count"]) for one in found.values()]),
            (
                "successful traces",
                [(one["name"], one["succeeded"]["count"]) for one in found.values()],
            ),
        ],
        "no mode shows in these traces",
    )


def chain_rows(
    chains: Sequence[tuple[Sequence[Sequence[str]], int]], most: int
) -> tuple[Drawing, int]:
    """The most frequent chains of onset, as boxes with arrows, and how many of them are drawn."""
    drawing = Drawing(WIDTH)
    left, gap = 132.0, 20.0
    y = 0.0
    largest = max((count for _, count in chains), default=1)
    drawn = list(chains[:most])
    for steps, count in drawn:
        drawing.text(24, y + 17, str(count), "v-b", "end")
        drawing.rect(32, y + 5, 84 * count / largest, 16, "v-failed", tip=f"{count} traces")
        x = left
        for place, step in enumerate(steps):
            words = wrapped(" + ".join(step), WIDTH - left - 24, most=1)[0]
            wide = text_width(words) + 16
            if place and x + gap + wide > WIDTH:
                x, y = left + gap, y + 30
            if place:
                drawing.text(x + gap / 2, y + 17, "→", "v-m", "middle")
                x += gap
            drawing.rect(x, y, wide, 26, "v-cell", radius=5)
            drawing.text(x + wide / 2, y + 17, words, "", "middle")
            x += wide
        y += 38
    drawing.height = max(y - 8, 20)
    if not drawn:
        drawing.text(0, 14, "no chain is known", "v-m")
    return drawing, len(drawn)
