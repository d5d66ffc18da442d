"""Dialogs in which a choice is found by typing a part of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import ClassVar, Final

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.theme import BUILTIN_THEMES
from textual.widgets import Input, Static

from mast_tui.configuration import configuration_path, with_theme
from mast_tui.errors import MastError
from mast_tui.output_files import write_output
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.actions.registry import Keymap, Where, actions_for, key_text, keys_of
from mast_tui.ui.actions.tables import SYNONYMS
from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.dialog import TypingDialog
from mast_tui.ui.widgets.bars import TextLine
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.ui.wording import plain_lines, plain_title


class FinderChoice(Struct, frozen=True, dict=True):
    """A choice: the value to return, and the searched texts of its row.

    ``keywords`` are searched first, but not shown.
    """

    value: str
    code: str
    name: str
    detail: str = ""
    keywords: str = ""

    @cached_property
    def terms_by_weight(self) -> tuple[tuple[int, list[str]], ...]:
        """The searched words, each with a weight: keywords count most, the detail least."""
        return tuple(
            (weight, _terms(text))
            for weight, text in (
                (8, self.keywords),
                (6, self.name),
                (4, self.code),
                (2, self.detail),
            )
        )

    def score(self, word: str) -> int:
        """Return how well a word matches; 0 for no match.

        Single letters and pairs match only the beginnings of words.
        """
        scores = [0]
        for weight, terms in self.terms_by_weight:
            if word in terms:
                scores.append(10 * weight)
            elif any(other.startswith(word) for other in terms):
                scores.append(10 * weight - 5)
            elif len(word) > 2 and any(word in other for other in terms):
                scores.append(weight)
        return max(scores)


LEAST_WIDTH: Final = 72
"""The least cells of the dialog. The styles keep it within the screen."""

MOST_WIDTH: Final = 110
"""The most cells of the dialog, so that some of the screen stays visible."""

FRAME_CELLS: Final = 7
"""The cells of the border, the padding and the scroll bar."""

CODE_CELLS: Final = 14
"""The most cells of a code."""

MEASURED_ROWS: Final = 1_000
"""The number of rows that decide the width. A list of traces may have many more."""

QUERY_CELLS: Final = 20
"""The most cells of the typed text in the message about no match."""

SPACE_CELLS: Final = 6
"""The cells between the texts of a row and around them."""

EXACT_CODE_SCORE: Final = 10_000
"""The score of a choice with the query as its code, above all other scores."""

CODE_BEGINNING_SCORE: Final = 50
"""The score of a choice with a code that begins with the query."""

LEAST_LIKENESS: Final = 0.82
"""The least likeness of a mistyped word: two exchanged letters in a word of six."""

LEAST_MISTYPED: Final = 5
"""The least letters of a word that may be mistyped."""

_WORD: Final = re.compile(r"\d+(?:\.\d+)+|[^\W_]+")


def widest_row(choices: Sequence[FinderChoice]) -> int:
    """Return the cells that the widest row needs to show its name and detail in full.

    Only the first rows count, because a list of traces may be long.
    """
    first_choices = choices[:MEASURED_ROWS]
    code_cells = max((cell_len(choice.code) for choice in first_choices), default=0)
    text_cells = (
        cell_len(one_line(choice.name)) + cell_len(one_line(choice.detail))
        for choice in first_choices
    )
    return min(CODE_CELLS, code_cells) + SPACE_CELLS + max(text_cells, default=0)


class ChoiceList(VirtualLines):
    """The matching choices."""

    css_prefix = "choice-list"
    css_parts = ("cursor", "code", "detail")

    def __init__(self) -> None:
        super().__init__()
        self.can_focus = False
        self.choices: Sequence[FinderChoice] = ()

    @property
    def row_count(self) -> int:
        """The number of matching choices."""
        return len(self.choices)

    def show(self, choices: Sequence[FinderChoice]) -> None:
        """Replace the choices, with the cursor on the first."""
        self.choices = choices
        self.cursor = 0
        self.rows_changed()

    def render_row(self, row: int, width: int) -> Strip:
        """Render a choice: its code, its name, and a part of its detail.

        Args:
            row: The position of the row.
            width: The cells of the row.
        """
        choice = self.choices[row]
        base = self.row_style(row)
        code_cells = max((cell_len(item.code) for item in self.choices), default=0)
        code = " "
        if code_cells:
            code = f" {set_cell_size(choice.code, min(code_cells, CODE_CELLS))}  "
        name = one_line(choice.name, max(1, width - cell_len(code) - 1))
        detail_cells = max(0, width - cell_len(code) - cell_len(name) - 2)
        detail = one_line(choice.detail, max(1, detail_cells))
        return Strip(
            [
                Segment(code, base + self._part("code")),
                Segment(name, base),
                Segment(f"  {detail}", base + self._part("detail")),
            ]
        ).adjust_cell_length(width, base)


def best_first(query: str, choices: Sequence[FinderChoice]) -> list[FinderChoice]:
    """Return the choices that match a query, best first.

    Choices with the same score keep their order.

    Args:
        query: The text that the user typed.
        choices: The choices.
    """
    query = query.strip()
    if not query:
        return list(choices)
    terms = _terms(query)
    scores = [_match_score(query, terms, choice) for choice in choices]
    if not any(scores):
        terms = _corrected(terms, choices)
        scores = [_match_score(query, terms, choice) for choice in choices]
    matching_indices = [index for index, score in enumerate(scores) if score > 0]
    matching_indices.sort(key=lambda index: -scores[index])
    return [choices[index] for index in matching_indices]


def _terms(text: str) -> list[str]:
    """Return the words and numbers of a text, without case."""
    return _WORD.findall(text.casefold())


def _match_score(query: str, terms: Sequence[str], choice: FinderChoice) -> int:
    """Return how well a choice matches a query and its words; 0 if a word does not match."""
    if query == choice.code.replace(".", "") or query in choice.code.split():
        return EXACT_CODE_SCORE
    begins_code = choice.code.casefold().startswith(query.casefold())
    term_scores = [choice.score(word) for word in terms] or [0]
    terms_score = sum(term_scores) if all(term_scores) else 0
    return max(terms_score, CODE_BEGINNING_SCORE * begins_code)


def _corrected(terms: Sequence[str], choices: Sequence[FinderChoice]) -> list[str]:
    """Return words with typos replaced by similar words of the choices.

    Numbers and short words stay, because too many others are similar.
    """
    known_terms = {
        known_word
        for choice in choices
        for _, choice_terms in choice.terms_by_weight
        for known_word in choice_terms
    }
    corrected = []
    for word in terms:
        candidates = [known_word for known_word in known_terms if known_word[0] == word[0]]
        is_long = len(word) >= LEAST_MISTYPED and word.isalpha()
        similar = get_close_matches(word, sorted(candidates), 1, LEAST_LIKENESS) if is_long else []
        corrected.append(similar[0] if similar else word)
    return corrected


class FinderDialog(TypingDialog):
    """A dialog that returns the value of the choice, or None after Escape.

    With ``other_effect`` a row returns the typed text if that is a number or matches no choice.
    """

    choice_noun: ClassVar = "choice"
    dialog_keys: ClassVar = (*(("↑ ↓", "move"), ("Enter", "chooses"), ("Esc", "cancels")),)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("down,ctrl+n", "move(1)", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
        Binding("pagedown", "move_page(1)", show=False, priority=True),
        Binding("pageup", "move_page(-1)", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        choices: Sequence[FinderChoice],
        *,
        placeholder: str,
        other_effect: str = "",
    ) -> None:
        """Make the dialog.

        Args:
            title: The title.
            choices: The choices.
            placeholder: The hint on the empty line.
            other_effect: The row for a text that matches no choice, with ``{}`` for the text;
                empty if such a text is not accepted.
        """
        super().__init__(title, kind="finder")
        self._choices = choices
        self._placeholder = placeholder
        self._other_effect = other_effect

    def compose_rows(self) -> ComposeResult:
        """Yield the input line, and the matches."""
        needed_width = widest_row(self._choices) + FRAME_CELLS
        self.box.styles.width = max(LEAST_WIDTH, min(needed_width, MOST_WIDTH))
        yield TextLine(placeholder=self._placeholder)
        yield ChoiceList()

    def on_mount(self) -> None:
        """Show all choices."""
        self.query_one(ChoiceList).show(self._choices)

    @on(Input.Changed)
    def _query_changed(self, event: Input.Changed) -> None:
        """Show the matching choices, and a row for the typed text if it is accepted."""
        matches = best_first(event.value, self._choices)
        text = event.value.strip()
        text_in_row = one_line(text, QUERY_CELLS)
        no_match = f"No {self.choice_noun} matches “{text_in_row}”"
        self.box.border_subtitle = None if matches else plain_title(no_match)
        is_number = text.removeprefix("#").isdecimal()
        if self._other_effect and text and (is_number or not matches):
            effect = self._other_effect.format(text_in_row)
            matches.insert(0, FinderChoice(text, code="", name=effect))
        self.query_one(ChoiceList).show(matches)
        self._preview_choice()

    def _preview_choice(self) -> None:
        choice_list = self.query_one(ChoiceList)
        if choice_list.choices:
            self.preview(choice_list.choices[choice_list.cursor].value)

    def preview(self, value: str) -> None:
        """Preview the choice under the cursor."""

    @on(Input.Submitted)
    def _query_submitted(self) -> None:
        """Return the choice under the cursor, if there is one."""
        choice_list = self.query_one(ChoiceList)
        if choice_list.choices:
            self.dismiss(choice_list.choices[choice_list.cursor].value)

    @on(VirtualLines.Chosen)
    def _row_chosen(self, event: VirtualLines.Chosen) -> None:
        self.dismiss(self.query_one(ChoiceList).choices[event.row].value)

    def action_move(self, delta: int) -> None:
        """Move to another choice."""
        self.query_one(ChoiceList).move_by(delta)
        self._preview_choice()

    def action_move_page(self, delta: int) -> None:
        """Move by screens."""
        self.query_one(ChoiceList).move_page(delta)
        self._preview_choice()


class ModeFinder(FinderDialog):
    """A dialog that returns the slug of a mode, and shows the definition of each."""

    choice_noun = "mode"

    def __init__(self, taxonomy: Taxonomy) -> None:
        choices = [
            FinderChoice(
                mode.slug,
                # A code such as 2.1 is made up of the digits to type. For other codes the digits
                # are shown instead.
                mode.code if taxonomy.coded_by_digits else taxonomy.keys_of(mode),
                mode.name,
                " ".join([mode.definition, *(alias.name for alias in mode.aliases)]),
            )
            for mode in taxonomy.all_modes
        ]
        super().__init__("Label with", choices, placeholder="name, definition or code")
        self._taxonomy = taxonomy

    def compose_rows(self) -> ComposeResult:
        """Yield the input line, the matches, and the definition."""
        yield from super().compose_rows()
        yield Static(plain_lines(self._taxonomy.modes[0].definition), id="definition")

    def preview(self, value: str) -> None:
        """Show the definition of the mode under the cursor."""
        definition = plain_lines(self._taxonomy.mode(value).definition)
        self.query_one("#definition", Static).update(definition)


PLACE_NOUNS: Final[Mapping[Where, str]] = {
    Where.LIBRARY: "trace",
    Where.ANNOTATE: "span",
    Where.ADJUDICATE: "span",
}
"""The things to which the palette goes on a screen; on other screens to none."""


class Palette(FinderDialog):
    """The palette of all actions of a screen with their keys.

    It returns the id of an action, the typed number or key of a span, or None after Escape.
    """

    choice_noun = "action"

    def __init__(self, where: Where, keymap: Keymap) -> None:
        """List the actions.

        Args:
            where: The screen.
            keymap: The keys that the user has set.
        """
        # The actions of digit keys would only lengthen the list.
        choices = [
            FinderChoice(
                action.id,
                " ".join(map(key_text, keys_of(action, keymap))),
                action.help,
                keywords=f"{action.title} {SYNONYMS.get(action.id, '')}",
            )
            for screen in dict.fromkeys((where, Where.EVERYWHERE))
            for action in actions_for(screen)
            if not action.name.startswith(("digit_", "side_"))
        ]
        noun = PLACE_NOUNS.get(where, "")
        title = f"Find an action, or go to a {noun}" if noun else "Find an action"
        hint = f"what to do, or the number or name of a {noun}" if noun else "what to do"
        other_effect = f"Go to {noun} “{{}}”, if there is one" if noun else ""
        super().__init__(title, choices, placeholder=hint, other_effect=other_effect)


class ThemeChoice(FinderDialog):
    """A dialog that sets a theme and returns its name.

    Escape restores the previous theme.
    """

    choice_noun = "theme"

    def __init__(self, current: str) -> None:
        """List all themes, the current one first."""
        self._previous_theme = current
        names = sorted(BUILTIN_THEMES, key=lambda name: (name != current, name))
        choices = [
            FinderChoice(name, code="", name=name, detail=_theme_kind(name)) for name in names
        ]
        super().__init__("Theme", choices, placeholder="a part of its name")

    def preview(self, value: str) -> None:
        """Show the theme under the cursor."""
        self.app.theme = value

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        """Set the theme and save it, or restore the previous theme for None."""
        self.app.theme = result or self._previous_theme
        if result is not None:
            self._save_theme(result)
        return super().dismiss(result)

    def _save_theme(self, name: str) -> None:
        path = configuration_path()
        try:
            text = path.read_text("utf-8") if path.exists() else ""
            path.parent.mkdir(parents=True, exist_ok=True)
            write_output(path, with_theme(text, name))
        except (MastError, OSError, UnicodeDecodeError) as error:
            context_of(self).show_error(f"The theme is not saved: {one_line(str(error))}")
        else:
            context_of(self).say(f"{name} is saved in {one_line(str(path))}")


def _theme_kind(name: str) -> str:
    theme = BUILTIN_THEMES[name]
    if theme.ansi:
        return "the terminal's own colours"
    return "dark" if theme.dark else "light"
