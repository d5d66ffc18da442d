"""Estimates of tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.llm.prompt.tokens import estimate


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
