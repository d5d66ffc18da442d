"""With what a run was asked for and what it used, as plain JSON values, and back.

What is empty is left out.
"""

from __future__ import annotations

from dataclasses import asdict
from dataclasses import fields as fields_of

from mast_tui.labels import QuoteCounts
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.events.values import Values, compact
from mast_tui.workspace.records import RunSettings, Usage


def settings_to_dict(settings: RunSettings) -> Values:
    """Settings of a run as plain values, but for their form, which is known only later."""
    prices = {
        "price_in": settings.price_in,
        "price_out": settings.price_out,
        "price_cached": settings.price_cached,
    }
    return {
        "model": settings.model,
        "prompt": settings.prompt,
        "host": settings.host,
        **compact(
            {"parameters": dict(settings.parameters), "examples": list(settings.examples)},
        ),
        **{name: float(price) for name, price in prices.items() if price is not None},
    }


def settings_from(fields: Fields, *, form: str | None) -> RunSettings:
    """The settings; raises ``ValueError`` where something is missing or cannot be."""
    return RunSettings(
        model=fields.text("model"),
        prompt=fields.text("prompt"),
        host=fields.text("host"),
        parameters=fields.named_texts("parameters"),
        examples=fields.texts("examples"),
        price_in=fields.number_or_none("price_in"),
        price_out=fields.number_or_none("price_out"),
        price_cached=fields.number_or_none("price_cached"),
        form=form,
    )


def usage_to_dict(usage: Usage) -> Values:
    """What was used, as plain values; nothing at all is an empty object."""
    return compact(
        {
            "requests": usage.requests,
            "tokens_in": usage.tokens_in,
            "tokens_out": usage.tokens_out,
            "tokens_cached": usage.tokens_cached,
        }
    )


def usage_from(fields: Fields | None) -> Usage:
    """What was used; raises ``ValueError`` where it cannot be."""
    if fields is None:
        return Usage()
    names = ("requests", "tokens_in", "tokens_out", "tokens_cached")
    used = [fields.whole_or_none(name) or 0 for name in names]
    if min(used) < 0:
        raise ValueError("a run uses no less than nothing")
    return Usage(*used)


def kinds_to_dict(quotes: QuoteCounts) -> Values:
    """How many quotes were found in which way, as plain values; none of a kind is left out."""
    return {name: count for name, count in asdict(quotes).items() if count}


def kinds_from(fields: Fields | None, *, quotes: int, found: int) -> QuoteCounts:
    """How many quotes were found in which way.

    Args:
        fields: counts by kind; None in a run of an earlier version, which did not tell them apart.
        quotes: how many there are.
        found: how many of them were found.

    Raises:
        ValueError: these are no counts.
    """
    if fields is None:
        return QuoteCounts(not_found=max(0, quotes - found), unsorted=found)
    counts = [fields.whole_or_none(kind.name) or 0 for kind in fields_of(QuoteCounts)]
    if min(counts) < 0:
        raise ValueError("no kind of quotes is counted below nothing")
    return QuoteCounts(*counts)
