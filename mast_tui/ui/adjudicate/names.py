"""How the sides of a trace are called on the adjudicate screen: by name, or by a letter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mast_tui.gold import Conflict, ConflictKind, Decision, Said
from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line


@dataclass(frozen=True, slots=True)
class Names:
    """What each side goes by. With ``letters`` nobody else's name is told, and nothing else.

    ``letters`` are by name, in their order.
    """

    letters: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, limit: int | None = None) -> str:
        """A side's letter or name, fit for display."""
        return self.letters.get(name, "?") if self.letters else one_line(name, limit)

    def in_order(self, said: Iterable[Said]) -> tuple[Said, ...]:
        """The sides in the order in which they are numbered: that of the letters, if any."""
        places = {name: place for place, name in enumerate(self.letters)}
        return tuple(sorted(said, key=lambda side: places.get(side.annotator, len(places))))

    def joined(self, names: Iterable[str]) -> list[str]:
        """Several sides as they are called, in their order."""
        sides = self.in_order(Said(name, None) for name in names)
        return [self.of(side.annotator) for side in sides]


def difference(conflict: Conflict, names: Names) -> str:
    """What the sides differ on: ``present / absent``, ``place: only ann``, ``place differs``."""
    if conflict.kind is ConflictKind.PLACE:
        marked = [said for said in conflict.said if said.targets]
        only = names.of(marked[0].annotator) if len(marked) == 1 else None
        return f"place: only {only}" if only is not None else "place differs"
    values = {said.value for said in conflict.said}
    return " / ".join(value.value for value in VerdictValue if value in values)


def outcome(decision: Decision, names: Names) -> str:
    """A decision in a few words: ``absent``, ``present, as ann``, ``place taken, as ann``."""
    if decision.is_verdict:
        words = decision.value.value
    else:
        words = "place taken" if decision.value is VerdictValue.PRESENT else "place dropped"
    if len(decision.sides) == 1:
        return f"{words}, as {names.of(decision.sides[0])}"
    return f"{words}, as all" if len(decision.sides) > 1 else words


def who(said: Iterable[Said], names: Names) -> str:
    """The sides with what each says: ``ann present · bob absent``."""
    return " · ".join(
        f"{names.of(side.annotator, 16)} {side.value.value if side.value else 'open'}"
        for side in names.in_order(said)
    )
