"""Answering many suggestions at once: those of a rule, a mode or a judge, by how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.suggestion_wording import judge_name, rule_words
from mast_tui.ui.wording import counted, plain_title

if TYPE_CHECKING:
    from mast_tui.session import Suggestion


class Breadth(StrEnum):
    """What suggestions have in common that are answered together."""

    RULE = "r"
    MODE = "m"
    JUDGE = "j"
    ALL = "s"


@dataclass(frozen=True, slots=True)
class Scope:
    """Some of a trace's suggestions: those that have something in common with ``like``.

    ``least`` and ``most`` are how sure the judge is of them, both included; one that does not say
    how sure it is lies in neither.
    """

    like: Suggestion
    breadth: Breadth
    least: float | None = None
    most: float | None = None

    def covers(self, other: Suggestion) -> bool:
        """Whether a suggestion is one of them."""
        confidence = other.confidence
        if self.least is not None and (confidence is None or confidence < self.least):
            return False
        if self.most is not None and (confidence is None or confidence > self.most):
            return False
        like = self.like
        if self.breadth is Breadth.ALL:
            return True
        if other.judge != like.judge:
            return False
        if self.breadth is Breadth.JUDGE:
            return True
        return other.mode == like.mode and (
            self.breadth is Breadth.MODE
            or other.id == like.id
            or (bool(words := rule_words(like.rationale)) and rule_words(other.rationale) == words)
        )

    def of(self, suggestions: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
        """Those among the suggestions that it covers."""
        return tuple(filter(self.covers, suggestions))

    def next_confidence(self) -> Scope:
        """The same with another limit: none, at most as sure as the one at hand, at least so."""
        sure = self.like.confidence
        if self.most is not None:
            return replace(self, least=sure, most=None)
        return replace(self, least=None, most=None if self.least is not None else sure)


@dataclass(frozen=True, slots=True)
class ManyAnswered:
    """What is to be done with the suggestions of a scope: ``x`` reject, ``a`` accept, ``h`` hide;
    ``w`` shows again what was hidden, and ends what goes on.

    ``onward``: the same answer goes to such ones on each trace that is opened from now on.
    """

    scope: Scope
    answer: str
    onward: bool = False


class ManyScreen(KeyDialog[ManyAnswered]):
    """Asks which suggestions are meant and what to do with them; gives None after Escape."""

    dialog_keys: ClassVar = (
        *(("x", "rejects"), ("a", "accepts"), ("h", "hides"), ("Esc", "leaves")),
    )

    def __init__(
        self,
        like: Suggestion,
        pending: Sequence[Suggestion],
        mode_words: Callable[[str], str],
        hidden: int,
        standing: int,
    ) -> None:
        """Begin with those of one rule, or of the mode where the rule has said it once.

        Args:
            like: The one under the cursor.
            pending: All that wait for an answer and are shown.
            mode_words: The name of a mode, by its slug.
            hidden: How many wait and are hidden.
            standing: How many answers go on to each trace that is opened.
        """
        super().__init__()
        by_rule = Scope(like, Breadth.RULE)
        self.scope = by_rule if len(by_rule.of(pending)) > 1 else Scope(like, Breadth.MODE)
        self._like = like
        self._pending = pending
        self._mode = mode_words(like.mode)
        self._hidden = hidden
        self._standing = standing
        self._onward = False
        keys = [*Breadth, *("c" * (like.confidence is not None)), "q"]
        self._asked = {key: KeyRow(key) for key in keys}
        self._answers = {key: KeyRow(key) for key in "xahw"[: 4 if hidden or standing else 3]}

    def compose(self) -> ComposeResult:
        """Rows for what is meant, and for what is done with it."""
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Answer many suggestions")
            yield from self._asked.values()
            with Vertical(classes="answers"):
                yield from self._answers.values()
            yield Static(
                Content("u takes answers back in one step · X w ends hiding and going on"),
                classes="hint",
            )

    def on_mount(self) -> None:
        """Show what is chosen."""
        self._show()

    def _confidence(self) -> str:
        if self.scope.most is not None:
            return f"only those at most as sure as this one ({self.scope.most:.2f})"
        if self.scope.least is not None:
            return f"only those at least as sure as this one ({self.scope.least:.2f})"
        return "however sure the judge is"

    def _show(self) -> None:
        code = self._mode.partition(" ")[0]
        judge = judge_name(self._like.judge)
        names = {
            Breadth.RULE: f"{code}, same rule: “{rule_words(self._like.rationale)} …”",
            Breadth.MODE: f"{self._mode}, by {judge}",
            Breadth.JUDGE: f"all by {judge}",
            Breadth.ALL: "all, whoever says it" if self._onward else "all on this trace",
        }
        for breadth, name in names.items():
            number = len(replace(self.scope, breadth=breadth).of(self._pending))
            mark = "●" if breadth is self.scope.breadth else " "
            self._asked[breadth].show(f"({mark}) ×{number} {name}")
        count = counted(len(self.scope.of(self._pending)), "suggestion")
        onward = ", and such ones on the traces that follow" if self._onward else ""
        ended = [f"show what is hidden again ({self._hidden} here)"] * bool(self._hidden)
        ended += ["answer no more on the traces that follow"] * bool(self._standing)
        words = {
            "c": self._confidence(),
            "q": "here and on each trace you open from now on" if onward else "on this trace",
            "x": f"reject {count}{onward}",
            "a": f"accept {count}{onward}",
            "h": f"hide {count}, and such ones on other traces, unanswered",
            "w": ", ".join(ended),
        }
        for key, row in {**self._asked, **self._answers}.items():
            if key in words:
                row.show(words[key])

    def take(self, key: str) -> bool:
        """Take a scope, a limit or an answer."""
        if key in self._answers:
            if key == "w" or self.scope.of(self._pending):
                self.dismiss(ManyAnswered(self.scope, key, self._onward))
            return True
        if key not in self._asked:
            return False
        if key == "c":
            self.scope = self.scope.next_confidence()
        elif key == "q":
            self._onward = not self._onward
        else:
            self.scope = replace(self.scope, breadth=Breadth(key))
        self._show()
        return True
