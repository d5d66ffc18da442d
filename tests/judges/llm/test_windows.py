"""Division of a trace into windows, and estimates of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.prompt.windows import plan, split
from mast_tui.judges.llm.request import Parameters, TraceFails, Window
from mast_tui.taxonomy.loader import from_dict
from mast_tui.taxonomy.model import Taxonomy
from tests.judges.llm.views import MAST, prompt_of, requests, sent, trace_of, view_of
from tests.judges.memory_trace import MemoryTrace

END = {"3.1", "3.2", "3.3"}

span_text = st.integers(0, 3_000).map(lambda count: "step " * (count // 5))
texts = st.lists(span_text, min_size=1, max_size=60)
budgets = st.sampled_from((300, 1_000, 4_000, 24_000))


def codes(window: Window) -> set[str]:
    return {MAST.mode(slug).code for slug in window.modes}


def check(windows: tuple[Window, ...], first: int, last: int) -> None:
    """Check that windows follow each other without a gap, each with something new."""
    assert windows[0].first == first
    assert windows[-1].last == last
    for previous, following in pairwise(windows):
        assert previous.first < following.first <= previous.last + 1
        assert previous.last < following.last
    assert all(first <= window.first <= window.last <= last for window in windows)


@given(texts, budgets)
def test_windows_cover_all_spans_in_order(span_texts: list[str], budget: int) -> None:
    prompt, parameters = prompt_of(budget)
    windows = plan(view_of(trace_of(span_texts)), prompt, parameters)
    check(windows, 0, len(span_texts) - 1)
    assert [window.final for window in windows] == [False] * (len(windows) - 1) + [True]
    for window in windows[:-1]:
        assert codes(window) == {mode.code for mode in MAST.modes} - END
    assert codes(windows[-1]) == {mode.code for mode in MAST.modes}


@given(texts, st.sampled_from((1_500, 4_000)))
def test_requests_keep_to_the_window_size(span_texts: list[str], budget: int) -> None:
    for _, request in requests(trace_of(span_texts), budget):
        # The boundaries are counted too: six characters' worth for each line of ours.
        assert estimate("".join(request.user)) <= budget * 1.1


def test_a_short_trace_is_one_window_and_a_long_one_overlaps() -> None:
    ((window, request),) = requests(trace_of(["plan", "act", "done"]))
    assert window == Window(0, 2, True, tuple(mode.slug for mode in MAST.modes))
    assert request.remarks == ()
    assert "goes on" not in sent(request)[2]
    assert requests(MemoryTrace()) == []
    prompt, parameters = prompt_of(2_000)
    windows = plan(view_of(trace_of(["a step of the run " * 5] * 200)), prompt, parameters)
    assert len(windows) > 3
    shared = [previous.last - following.first + 1 for previous, following in pairwise(windows)]
    sizes = [window.last - window.first + 1 for window in windows]
    assert all(0 < overlap < min(sizes) / 2 for overlap in shared)


def test_long_texts_are_shortened_and_the_last_spans_get_a_larger_share() -> None:
    texts = [f"step {number} " * 40 for number in range(60)]
    texts[20] = "\n".join(f"line {number}" for number in range(30_000))
    matches = [
        (request, sent(request)[2])
        for window, request in requests(trace_of(texts), 6_000)
        if window.first <= 20 <= window.last
    ]
    assert matches
    for request, user in matches:
        assert any("#21" in remark for remark in request.remarks)
        assert "line 0\n" in user
        assert "line 29999" in user
        assert "characters left out …]" in user
    texts = ["word " * 20_000 for _ in range(12)]
    shares = {}
    for window, request in requests(trace_of(texts), 24_000):
        user = "".join(request.user)
        shares[window.last] = user.count("word") / (window.last - window.first + 1)
    last = max(shares)
    assert shares[last] > 1.3 * min(shares[end] for end in shares if end != last)


@settings(max_examples=settings().max_examples // 2)
@given(texts, budgets)
def test_an_overflow_splits_windows_until_it_fails(span_texts: list[str], budget: int) -> None:
    prompt, parameters = prompt_of(budget)
    view = view_of(trace_of(span_texts))
    open_windows = list(plan(view, prompt, parameters))
    failed: list[str] = []
    while open_windows:
        window = open_windows.pop()
        try:
            parts = split(window, view, prompt, parameters)
        except TraceFails as error:
            failed.append(str(error))
            continue
        assert parts == split(window, view, prompt, parameters)
        check(parts, window.first, window.last)
        assert parts[-1].modes == window.modes
        assert parts[-1].final == window.final
        for part in parts:
            assert part.tokens is not None
            assert part.tokens < (window.tokens or budget)
        open_windows += parts
        if len(open_windows) > 400:
            break
    assert failed or open_windows
    assert all("#" in message for message in failed)


def staged_taxonomy(*stages: Sequence[str]) -> Taxonomy:
    """Return a taxonomy with a mode for each of these lists of stages."""
    modes = [
        {"slug": f"m{n}", "name": f"M{n}", "category": "all"} | ({"stages": s} if s else {})
        for n, s in enumerate(stages)
    ]
    return from_dict(
        {"id": "own", "version": "1", "categories": [{"id": "all"}], "modes": modes}, "own.toml"
    )


def test_modes_are_looked_for_in_windows_of_their_stage() -> None:
    parameters = Parameters("model", window_tokens=1_000)
    prompt = Prompt(staged_taxonomy((), ()), parameters)
    windows = plan(view_of(trace_of(["step " * 100] * 40)), prompt, parameters)
    assert len(windows) > 2
    assert {window.modes for window in windows} == {("m0", "m1")}
    parameters = Parameters("model", window_tokens=1_000)
    prompt = Prompt(staged_taxonomy(["post"]), parameters)
    view = view_of(trace_of(["word " * 400] * 20))
    (window,) = plan(view, prompt, parameters)
    (less,) = split(window, view, prompt, parameters)
    for part in (window, less):
        assert (part.last, part.final, part.modes) == (19, True, ("m0",))
    assert 0 < window.first < less.first <= 19
    assert prompt.request(view, less, "").tokens < prompt.request(view, window, "").tokens


def test_a_single_span_is_shortened_until_it_fails() -> None:
    prompt, parameters = prompt_of(2_000)
    view = view_of(trace_of(["word " * 50_000]))
    (window,) = plan(view, prompt, parameters)
    sizes = []
    with pytest.raises(TraceFails, match="#1"):  # noqa: PT012
        while True:
            sizes.append(prompt.request(view, window, "").tokens)
            (window,) = split(window, view, prompt, parameters)
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes) > 1


# Estimates of tokens


def test_estimates_by_kind_of_text() -> None:
    for text, least, most in [
        # Lower bounds are what a widespread tokenizer counts at least.
        ("The service came back after it, and nobody looked at the logs. " * 60, 750, 1150),
        ("", 0, 0),
        ("a", 1, 1),
        ("9f8e7d6c5b4a39281706f5e4d3c2b1a0" * 30, 450, 900),
        ('{"pod": "cart-7d9f-x2", "ready": false, "restarts": 14}\n' * 40, 800, 1400),
        ("故障发生在支付服务，重启之后仍然失败。" * 40, 500, 1400),
        ("Сбой произошёл в службе оплаты. " * 40, 300, 1200),
        ("🚀🔥🤖" * 40, 200, 800),
        ("0123456789" * 100, 330, 1000),
    ]:
        assert least <= estimate(text) <= most


@given(st.text(max_size=200), st.text(max_size=200))
def test_estimates_grow_with_text(text: str, more: str) -> None:
    assert estimate(text) <= estimate(text + more)
    assert abs(estimate(text) + estimate(more) - estimate(text + more)) <= 5


@given(st.text(st.characters(), min_size=1, max_size=100))
def test_estimates_are_bounded_for_any_text(text: str) -> None:
    assert 1 <= estimate(text) <= 4 * len(text) + 1
