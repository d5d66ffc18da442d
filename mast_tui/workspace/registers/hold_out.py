"""Traces that no prompt may show, so that judges can be measured on them.

The choice depends on the id of a trace alone. So it includes later traces, and is the same on every
machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mast_tui.errors import WorkspaceError
from mast_tui.study.plan import original_id

if TYPE_CHECKING:
    from mast_tui.workspace.store import Workspace

SETTING: Final = "set_aside"
"""The setting with the shares."""


CALIBRATION_SEED: Final = 1
"""The seed that draws traces for calibration; all other seeds draw traces for tests."""


class TracePart(StrEnum):
    """The use of a trace: to teach a judge, to fit its thresholds, or to measure it."""

    DEVELOPMENT = "development"
    CALIBRATION = "calibration"
    TEST = "test"


def set_split(
    workspace: Workspace, calibration: float, test: float, *, dry_run: bool = False
) -> None:
    """Set shares of the traces aside for calibrating and testing judges, once and for all.

    Args:
        workspace: The workspace.
        calibration: The share for calibration, which may be 0.
        test: The share for tests.
        dry_run: True to check the shares only.

    Raises:
        WorkspaceError: A share is not possible, or other shares are set aside already.
    """
    if not (0 <= calibration < 1 and 0 < test < 1 and calibration + test < 1):
        raise WorkspaceError(
            "development, calibration and test are shares of the traces, such as 0.5,0.2,0.3; "
            "only calibration may be 0"
        )
    share_by_seed = {0: test}  # any seed other than that for calibration draws traces for tests
    if calibration:
        # Calibration traces are drawn from the traces that are not drawn for tests.
        share_by_seed[CALIBRATION_SEED] = round(calibration / (1 - test), 9)
    with workspace.transaction():
        earlier_shares = shares_set_aside(workspace)
        if earlier_shares and earlier_shares != share_by_seed:
            raise _already_set_aside(earlier_shares, "split")
        if not dry_run:
            add_shares(workspace, share_by_seed)


def trace_part(workspace: Workspace, trace_id: str) -> TracePart:
    """Return the part to which a trace belongs: development, calibration or test.

    Args:
        workspace: The workspace.
        trace_id: The trace.
    """
    drawn_by = {
        seed
        for seed, share in shares_set_aside(workspace).items()
        if _random_number_of(trace_id, seed) < share
    }
    if drawn_by - {CALIBRATION_SEED}:  # all other seeds draw traces for tests
        return TracePart.TEST
    return TracePart.CALIBRATION if drawn_by else TracePart.DEVELOPMENT


def set_aside(workspace: Workspace, share: float, *, seed: int = 0) -> None:
    """Set a share of the traces aside for tests, once and for all.

    The same share and seed can be set again.

    Args:
        workspace: The workspace.
        share: The share, greater than 0 and less than 1.
        seed: The seed of the draw.

    Raises:
        WorkspaceError: The share is not possible, or prompts may have shown traces of this draw,
            because another share or seed was set before.
    """
    if not 0 < share < 1:
        raise WorkspaceError(f"a share of traces to set aside must be between 0 and 1, not {share}")
    with workspace.transaction():
        shares = shares_set_aside(workspace)
        if shares and shares.get(seed) != share:
            raise _already_set_aside(shares, "share")
        add_shares(workspace, {seed: share})


def held_out(workspace: Workspace, trace_id: str) -> bool:
    """Return whether a trace is set aside, so that no prompt may show it.

    Args:
        workspace: The workspace.
        trace_id: The trace.
    """
    return trace_part(workspace, trace_id) is not TracePart.DEVELOPMENT


def shares_set_aside(workspace: Workspace) -> Mapping[int, float]:
    """Return the shares set aside by seed; only a merge results in several."""
    value = workspace.get_setting(SETTING)
    return {} if value is None else {int(seed): share for seed, share in json.loads(value)}


def add_shares(workspace: Workspace, shares: Mapping[int, float]) -> None:
    """Set further shares aside; for each seed the greater share counts.

    Args:
        workspace: The workspace.
        shares: The shares to add, by seed.
    """
    with workspace.transaction():
        own_shares = shares_set_aside(workspace)
        joined_shares = {
            seed: max(own_shares.get(seed, 0.0), shares.get(seed, 0.0))
            for seed in sorted({*own_shares, *shares})
        }
        if joined_shares != own_shares:
            workspace.set_setting(SETTING, json.dumps(list(joined_shares.items())))


def _random_number_of(trace_id: str, seed: int) -> float:
    """Return the number in [0, 1) that a seed gives a trace, the same on every machine.

    A suffix such as ``~2``, which a merge may add to the id, does not change it.
    """
    text = f"{seed}:{original_id(trace_id)}".encode("utf-8", "surrogatepass")
    first_bytes = hashlib.sha256(text).digest()[:6]
    return int.from_bytes(first_bytes, "big") / (1 << 8 * len(first_bytes))


def _already_set_aside(shares: Mapping[int, float], noun: str) -> WorkspaceError:
    """Return the error that other shares are set aside; ``noun`` is what the user may keep."""
    # The share for calibration is stored as a part of the traces that are not for tests.
    untested_share = 1 - shares.get(0, 0.0)
    shares_text = ", ".join(
        f"{share * untested_share:g} for calibration"
        if seed == CALIBRATION_SEED
        else f"{share:g} for tests"
        for seed, share in shares.items()
    )
    return WorkspaceError(
        f"{shares_text} of the traces are already set aside in this workspace, and prompts may "
        f"have used the others; keep that {noun}, or use a new workspace"
    )
