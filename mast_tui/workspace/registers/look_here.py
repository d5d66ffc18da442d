"""The spans that probably contain the decisive step of each trace.

``mast-tui exam --coverage --keep`` computes them. They are stored as settings: one for all traces
of a taxonomy, and one for each trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from mast_tui.workspace.store import Workspace

_SETTING: Final = "look_here"


class LookHere(msgspec.Struct, frozen=True):
    """The origin of the stored spans, and their number in each trace.

    ``hash`` identifies the fitted sets, ``judge`` the judge whose findings they use. ``runs`` is
    the number of labelled runs from which they were fitted. ``level`` is the probability with which
    a set contains the decisive step. ``mean_share`` is the measured mean share of a run's steps in
    its set, ``chance_share`` the share of random steps with the same probability.
    """

    hash: str
    judge: str
    level: float
    runs: int
    mean_share: float
    chance_share: float
    sizes: dict[str, int]


def keep_look_here(
    workspace: Workspace,
    taxonomy_ref: str,
    origin: LookHere,
    spans: Mapping[str, Sequence[str]],
) -> None:
    """Store the spans that annotators should look at, in place of earlier ones.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the labels from which the spans were chosen.
        origin: The origin of the spans, and their number in each trace.
        spans: The keys of the spans by trace id.
    """
    with workspace.transaction():
        stored = look_here(workspace, taxonomy_ref)
        stored_traces = set() if stored is None else set(stored.sizes)
        for trace_id in stored_traces - set(spans):  # a setting cannot be deleted
            workspace.set_setting(_trace_setting(taxonomy_ref, trace_id), "[]")
        for trace_id, keys in spans.items():
            text = msgspec.json.encode(keys).decode()
            workspace.set_setting(_trace_setting(taxonomy_ref, trace_id), text)
        workspace.set_setting(f"{_SETTING}:{taxonomy_ref}", msgspec.json.encode(origin).decode())


def look_here(workspace: Workspace, taxonomy_ref: str) -> LookHere | None:
    """Return the origin and numbers of the spans to look at; None if no spans are stored.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy.
    """
    stored = workspace.get_setting(f"{_SETTING}:{taxonomy_ref}")
    return None if stored is None else msgspec.json.decode(stored, type=LookHere)


def spans_to_look_at(workspace: Workspace, taxonomy_ref: str, trace_id: str) -> tuple[str, ...]:
    """Return the keys of the spans to look at in a trace, in their stored order.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy.
        trace_id: The trace.
    """
    stored = workspace.get_setting(_trace_setting(taxonomy_ref, trace_id))
    return () if stored is None else msgspec.json.decode(stored, type=tuple[str, ...])


def _trace_setting(taxonomy_ref: str, trace_id: str) -> str:
    return f"{_SETTING}:{taxonomy_ref}:{trace_id}"
