"""Answering many suggestions at once: those of a rule, a mode or a judge, by how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.dialog import KeyDialog
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
class SuggestionScope:
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

    def next_confidence(self) -> SuggestionScope:
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

    scope: SuggestionScope
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
        mode: str,
        hidden: int,
        standing: int,
    ) -> None:
        """Begin with those of one rule, or of the mode where the rule has said it once.

        Args:
            like: The one under the cursor.
            pending: All that wait for an answer and are shown.
            mode: The name of its mode.
            hidden: How many wait and are hidden.
            standing: How many answers go on to each trace that is opened.
        """
        super().__init__()
        by_rule = SuggestionScope(like, Breadth.RULE)
        self.scope = (
            by_rule if len(by_rule.of(pending)) > 1 else SuggestionScope(like, Breadth.MODE)
        )
        self._like = like
        self._pending = pending
        self._mode = mode
        self._hidden = hidden
        self._standing = standing
        self._onward = False

    def compose(self) -> ComposeResult:
        """Rows for what is meant, and for what is done with it."""
        key_of = context_of(self).key_of
        undo = key_of("everywhere.undo")
        again = key_of("annotate.answer_many")
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Answer many suggestions")
            yield Static(id="scopes", classes="question")
            yield Static(id="answers")
            yield Static(
                Content(f"{undo} undoes all of it · {again}, then w shows hidden ones again"),
                classes="hint",
            )

    def on_mount(self) -> None:
        """Show what is chosen."""
        self._show()

    def _rows(self) -> list[tuple[str, str]]:
        code = self._mode.partition(" ")[0]
        names = {
            Breadth.RULE: f"{code}, same rule: “{rule_words(self._like.rationale)} …”",
            Breadth.MODE: f"{self._mode}, by {judge_name(self._like.judge)}",
            Breadth.JUDGE: f"all by {judge_name(self._like.judge)}",
            Breadth.ALL: "all, whoever says it" if self._onward else "all on this trace",
        }
        rows = []
        for breadth, name in names.items():
            scope = replace(self.scope, breadth=breadth)
            count = len(scope.of(self._pending))
            sign = "●" if breadth is self.scope.breadth else " "
            rows.append((breadth.value, f"({sign}) ×{count} {name}"))
        return rows

    def _confidence(self) -> str:
        if self.scope.most is not None:
            return f"only those at most as sure as this one ({self.scope.most:.2f})"
        if self.scope.least is not None:
            return f"only those at least as sure as this one ({self.scope.least:.2f})"
        return "however sure the judge is"

    def _show(self) -> None:
        count = counted(len(self.scope.of(self._pending)), "suggestion")
        rows = self._rows()
        if self._like.confidence is not None:
            rows.append(("c", self._confidence()))
        where = "here and on each trace you open from now on" if self._onward else "on this trace"
        rows.append(("q", where))
        self._fill("#scopes", rows)
        onward = ", and such ones on the traces that follow" if self._onward else ""
        answers = [
            ("x", f"reject {count}{onward}"),
            ("a", f"accept {count}{onward}"),
            ("h", f"hide {count}, and such ones on other traces, unanswered"),
        ]
        if self._reversible:
            answers.append(("w", self._reversal))
        self._fill("#answers", answers)

    @property
    def _reversible(self) -> bool:
        return bool(self._hidden or self._standing)

    @property
    def _reversal(self) -> str:
        """What ``w`` does."""
        parts = []
        if self._hidden:
            parts.append(f"show what is hidden again ({self._hidden} here)")
        if self._standing:
            parts.append("answer no more on the traces that follow")
        return ", ".join(parts)

    def _fill(self, where: str, rows: Sequence[tuple[str, str]]) -> None:
        lines = [Content.assemble((f" {key} ", "bold"), f" {words}") for key, words in rows]
        self.query_one(where, Static).update(Content("\n").join(lines))

    def take(self, key: str) -> bool:
        """Take a scope, a limit or an answer."""
        if key in ("x", "a", "h") or (key == "w" and self._reversible):
            if key == "w" or self.scope.of(self._pending):
                self.dismiss(ManyAnswered(self.scope, key, self._onward))
            return True
        if key in tuple(Breadth):
            self.scope = replace(self.scope, breadth=Breadth(key))
        elif key == "c" and self._like.confidence is not None:
            self.scope = self.scope.next_confidence()
        elif key == "q":
            self._onward = not self._onward
        else:
            return False
        self._show()
        return True
