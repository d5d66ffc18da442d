"""A small share of what ``scripts/attack.py`` does: nothing falls."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from scripts.attack import KINDS, outcomes

SHARES: Final = {
    "kills": 0.008,
    "locks": 0.02,
    "signals": 0.05,
    "planted": 0.03,
    "servers": 0.1,
    "imports": 0.003,
    "files": 0.001,
}


def test_every_kind_has_a_share() -> None:
    assert SHARES.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", SHARES)
def test_nothing_falls(kind: str, tmp_path: Path) -> None:
    tried = list(outcomes({kind: SHARES[kind]}, tmp_path / "attack", seed=1, jobs=1))
    assert tried
    assert not [(outcome.what, outcome.fell) for outcome in tried if outcome.fell]
