"""A small share of the attacks of scripts/attack.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import pytest

from scripts.attack import KINDS, outcomes
from tests.attack.trying import Outcome

# All kinds are tried by one process before the first test, which takes minutes on a busy machine.
pytestmark = pytest.mark.timeout(1800)

SHARES: Final = {
    "kills": 0.006, "planted": 0.015, "servers": 0.025, "imports": 0.001, "files": 0.0003,
    "archives": 0.005, "copies": 0.005, "team": 0.014,
}  # fmt: skip


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Outcome]]:
    """The outcomes of a few tries of every kind, made by one process."""
    outcomes_by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes(SHARES, tmp_path_factory.mktemp("attack"), seed=1, jobs=1):
        outcomes_by_kind[outcome.kind].append(outcome)
    return outcomes_by_kind


def test_every_kind_has_a_share() -> None:
    assert SHARES.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", SHARES)
def test_nothing_falls(kind: str, tried: Mapping[str, list[Outcome]]) -> None:
    assert tried[kind]
    assert not [(outcome.attack, outcome.failure) for outcome in tried[kind] if outcome.failure]
