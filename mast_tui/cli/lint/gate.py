"""Which findings make ``lint`` fail, and which rules run so that it can."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.shared import options
from mast_tui.errors import MastError
from mast_tui.figures.signatures.report import stated_for
from mast_tui.judges.rules import DEFAULT, RULES, Rule, chosen_rules
from mast_tui.judges.rules.guards import InvalidGuards, read_guards

if TYPE_CHECKING:
    from pathlib import Path

    from mast_tui.labels import Finding
    from mast_tui.taxonomy.model import Taxonomy

ANY: Final = "any"
FATAL: Final = "fatal"


def fail_on_option() -> Any:
    """Declare ``--fail-on``."""
    return options.option(
        "--fail-on",
        default=ANY,
        show_default=True,
        metavar="CODE,…|fatal|any",
        help="Which findings make it fail: those of some modes, of modes that bring a run down, "
        "all.",
    )


def guards_option() -> Any:
    """Declare ``--guards``: a file of guards, which look in the place of rules."""
    return options.input_file(
        "--guards", help="Have the guards of this file look, those that are on, and no rules."
    )


def rules_option() -> Any:
    """Declare ``--rules``: the rules that run."""
    return options.option(
        "--rules",
        metavar="all|NAME,…",
        help="Which rules run. Default: two of them, and those for modes that --fail-on "
        "names and these do not see; docs/rules.md lists all.",
    )


class NoModeOfThese(MastError):
    """The rules look for no mode of the taxonomy."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Which findings of a taxonomy's modes fail: all, those of ``modes``, those that are ``fatal``.

    ``fatal`` are the modes that count as fatal where a judge does not say what decided the
    outcome, none where nobody has said of any mode; None where that is not asked for. All are
    slugs.
    """

    taxonomy: Taxonomy
    everything: bool
    modes: tuple[str, ...]
    fatal: tuple[str, ...] | None

    def fails(self, finding: Finding) -> bool:
        """Whether a finding fails."""
        if self.everything or finding.mode in self.modes:
            return True
        if self.fatal is None:
            return False
        return finding.mode in self.fatal if finding.decisive is None else finding.decisive


def gate_of(text: str, taxonomy: Taxonomy) -> Gate:
    """Read ``--fail-on``.

    Fatal is a finding that its judge calls decisive; of a judge that does not say so, as the rules,
    one of a mode that the posts on the ITBench study call fatal.

    Args:
        text: ``any``, ``fatal``, and modes by code, slug or name, with commas between them.
        taxonomy: Of which they are modes.

    Returns:
        What fails.

    Raises:
        click.UsageError: There is no such mode.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise click.UsageError("--fail-on names nothing; give codes of modes, 'fatal' or 'any'")
    modes: list[str] = []
    fatal: tuple[str, ...] | None = None
    for word in words:
        if word.casefold() == ANY:
            continue
        if word.casefold() == FATAL:
            fatal = _fatal_modes(taxonomy)
            continue
        mode = taxonomy.find(word)
        if mode is None:
            raise click.UsageError(f"--fail-on {word}: {_no_mode(word, taxonomy)}")
        modes.append(mode.slug)
    return Gate(taxonomy, ANY in map(str.casefold, words), tuple(modes), fatal)


def _fatal_modes(taxonomy: Taxonomy) -> tuple[str, ...]:
    stated = stated_for(taxonomy.ref)
    if stated is None:
        return ()
    return tuple(slug for slug, kind in stated.classes.items() if kind == FATAL)


def _no_mode(word: str, taxonomy: Taxonomy) -> str:
    known = {
        name.casefold(): mode
        for mode in taxonomy.modes
        for name in (mode.code, mode.slug, mode.name)
    }
    near = get_close_matches(word.casefold(), known, n=1, cutoff=0.5)
    there = f"{taxonomy.ref} has {', '.join(mode.code for mode in taxonomy.modes)}"
    if not near:
        return f"no such mode; {there}"
    meant = known[near[0]]
    return f"no such mode; did you mean {meant.code} ({meant.name})? {there}"


def guards_for(path: Path, gate: Gate, *, running: bool = False) -> tuple[Rule, ...]:
    """Return the rules of the guards that are on.

    Args:
        path: The file of guards.
        gate: What fails, and of which taxonomy.
        running: Whether the runs go on, so that no guard looks that needs their end.

    Raises:
        InvalidGuards: The file cannot be used, or none of its guards would look.
        click.UsageError: None of the guards is about a mode that is to fail.
    """
    guards = read_guards(path).rules(mode.slug for mode in gate.taxonomy.modes)
    rules = tuple(rule for rule in guards if not (running and rule.needs_end))
    if not rules:
        raise InvalidGuards(f"{path}: all guards judge the end of a run; see 'mast-tui lint'")
    seen = {rule.mode for rule in rules}
    for slug in gate.modes:
        if slug not in seen:
            code = gate.taxonomy.mode(slug).code
            raise click.UsageError(f"--fail-on {code}: no guard of {path} that is on is about it")
    return rules


def rules_for(names: str | None, gate: Gate, *, running: bool = False) -> tuple[Rule, ...]:
    """Choose the rules that run, so that each mode that is to fail can be found.

    Args:
        names: The value of ``--rules``.
        gate: What fails; only rules for modes of its taxonomy run.
        running: Whether the runs go on, so that no rule runs that needs their end.

    Returns:
        The rules, in their order.

    Raises:
        UnknownRule: There is no rule of such a name.
        NoModeOfThese: No rule that is chosen looks for a mode of the taxonomy.
        click.UsageError: A mode that is to fail is looked for by none of the rules, so that it
            never would, or all that are named need the end of a run.
    """
    taxonomy = gate.taxonomy
    known = {mode.slug: mode.code for mode in taxonomy.modes}
    able = tuple(rule for rule in RULES if rule.mode in known)
    if not able:
        raise NoModeOfThese(f"the rules know no mode of {taxonomy.ref}; they were made for MAST")
    able = tuple(rule for rule in able if not (running and rule.needs_end))
    if names is None:
        # What has earned it is enough for its modes; the others find more, and are wrong more often
        wanted = {*gate.modes, *(gate.fatal or ())} - {rule.mode for rule in DEFAULT}
        chosen = tuple(rule for rule in able if rule in DEFAULT or rule.mode in wanted)
    else:
        named = chosen_rules(names)
        chosen = tuple(rule for rule in named if rule in able)
        if not chosen:
            told = ", ".join(rule.name for rule in named)
            raise click.UsageError(f"--rules {told}: judges the end of a run; see 'mast-tui lint'")
    seen = {rule.mode for rule in chosen}
    for slug in gate.modes:
        if slug not in seen:
            raise click.UsageError(_never_found(slug, known, able))
    if gate.fatal == ():
        raise click.UsageError(
            f"--fail-on fatal: nobody has said which modes of {taxonomy.ref} are fatal, and the "
            "rules do not say it of a finding; name codes"
        )
    if gate.fatal is not None and seen.isdisjoint(gate.fatal):
        codes = ", ".join(sorted(known[slug] for slug in gate.fatal))
        raise click.UsageError(
            f"--fail-on fatal: none of the rules that run looks for a fatal mode ({codes}); "
            "leave out --rules, or say --rules all"
        )
    return chosen


def _never_found(slug: str, known: dict[str, str], able: tuple[Rule, ...]) -> str:
    code = known[slug]
    names = [rule.name for rule in able if rule.mode == slug]
    if names:
        return (
            f"--fail-on {code}: none of the rules that run looks for it; add {' or '.join(names)} "
            "to --rules"
        )
    if any(rule.mode == slug for rule in RULES):
        return f"--fail-on {code}: only the end of a run shows it; see 'mast-tui lint'"
    seen = sorted({known[rule.mode] for rule in able})
    return f"--fail-on {code}: no rule looks for it; the rules look for {', '.join(seen)}"
