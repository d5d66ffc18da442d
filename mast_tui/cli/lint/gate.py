"""The findings that make ``lint`` fail, and the rules that can find them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.shared import options
from mast_tui.errors import MastError
from mast_tui.figures.signatures.report import stated_for
from mast_tui.judges.rules import DEFAULT, RULES, Rule, chosen_rules
from mast_tui.judges.rules.guards import InvalidGuards, read_rules

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
        help="The findings that fail: those of some modes, of fatal modes, or all.",
    )


def guards_option() -> Any:
    """Declare ``--guards``: a file of guards, which look in the place of rules."""
    return options.input_file(
        "--guards", help="Have the guards of this file look, those that are on, and no rules."
    )


def rules_option() -> Any:
    """Declare ``--rules``."""
    return options.option(
        "--rules",
        metavar="all|NAME,…",
        help="The rules that run. Default: two of them, and those for other modes that --fail-on "
        "names; docs/lint.md lists all.",
    )


class NoRuleForTaxonomy(MastError):
    """No rule looks for a mode of the taxonomy."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The findings that fail, by their modes.

    Attributes:
        taxonomy: The taxonomy of the modes.
        everything: All findings fail.
        modes: The slugs of modes whose findings fail.
        fatal: The slugs of fatal modes, for judges that do not mark decisive findings; empty if no
            study states them, None if fatal findings do not matter.
    """

    taxonomy: Taxonomy
    everything: bool
    modes: tuple[str, ...]
    fatal: tuple[str, ...] | None

    def fails(self, finding: Finding) -> bool:
        """Return whether a finding fails."""
        if self.everything or finding.mode in self.modes:
            return True
        if self.fatal is None:
            return False
        return finding.mode in self.fatal if finding.decisive is None else finding.decisive


def read_gate(text: str, taxonomy: Taxonomy) -> Gate:
    """Read the value of ``--fail-on``.

    A finding is fatal if its judge calls it decisive. For judges that do not say so, such as the
    rules, it is fatal if the posts on the ITBench study call its mode fatal.

    Args:
        text: ``any``, ``fatal``, and modes by code, slug or name, separated by commas.
        taxonomy: The taxonomy of the modes.

    Raises:
        click.UsageError: There is no such mode.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--fail-on is empty; give codes of modes, 'fatal' or 'any'")
    modes: list[str] = []
    fatal_modes: tuple[str, ...] | None = None
    for name in names:
        if name.casefold() == ANY:
            continue
        if name.casefold() == FATAL:
            fatal_modes = _fatal_modes(taxonomy)
            continue
        mode = taxonomy.find(name)
        if mode is None:
            raise click.UsageError(f"--fail-on {name}: {_unknown_mode_text(name, taxonomy)}")
        modes.append(mode.slug)
    return Gate(taxonomy, ANY in map(str.casefold, names), tuple(modes), fatal_modes)


def _fatal_modes(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the slugs of the modes that a study calls fatal; empty if there is no study."""
    stated = stated_for(taxonomy.ref)
    if stated is None:
        return ()
    return tuple(slug for slug, kind in stated.classes.items() if kind == FATAL)


def _unknown_mode_text(name: str, taxonomy: Taxonomy) -> str:
    """Return the error for an unknown mode, with the closest match and all codes."""
    modes_by_name = {
        mode_name.casefold(): mode
        for mode in taxonomy.modes
        for mode_name in (mode.code, mode.slug, mode.name)
    }
    matches = get_close_matches(name.casefold(), modes_by_name, n=1, cutoff=0.5)
    codes_text = f"{taxonomy.ref} has {', '.join(mode.code for mode in taxonomy.modes)}"
    if not matches:
        return f"no such mode; {codes_text}"
    match = modes_by_name[matches[0]]
    return f"no such mode; did you mean {match.code} ({match.name})? {codes_text}"


def guards_for(path: Path, gate: Gate, *, running: bool = False) -> tuple[Rule, ...]:
    """Return the rules of the guards that are on.

    Args:
        path: The file of guards.
        gate: The findings that fail, and the taxonomy.
        running: Whether the runs have not ended; then guards that need the end are left out.

    Raises:
        InvalidGuards: The file cannot be used, or no guard in it is left.
        click.UsageError: No guard looks for a mode that must fail.
    """
    guards = read_rules(path, gate.taxonomy)
    rules = tuple(rule for rule in guards if not (running and rule.needs_end))
    if not rules:
        raise InvalidGuards(f"{path}: all guards judge the end of a run; see 'mast-tui lint'")
    guarded_modes = {rule.mode for rule in rules}
    for slug in gate.modes:
        if slug not in guarded_modes:
            code = gate.taxonomy.mode(slug).code
            raise click.UsageError(f"--fail-on {code}: no guard of {path} that is on is about it")
    return rules


def rules_for(names: str | None, gate: Gate, *, running: bool = False) -> tuple[Rule, ...]:
    """Choose the rules that run, so that each mode that must fail can be found.

    Args:
        names: The value of ``--rules``.
        gate: The findings that fail; only rules for modes of its taxonomy run.
        running: Whether the agents still run. Then no rule that needs the end of a run is chosen.

    Returns:
        The rules, in their order.

    Raises:
        UnknownRule: There is no rule of such a name.
        NoRuleForTaxonomy: No rule looks for a mode of the taxonomy.
        click.UsageError: No chosen rule looks for a mode that must fail, or all named rules need
            the end of a run.
    """
    taxonomy = gate.taxonomy
    codes = {mode.slug: mode.code for mode in taxonomy.modes}
    usable_rules = tuple(rule for rule in RULES if rule.mode in codes)
    if not usable_rules:
        raise NoRuleForTaxonomy(
            f"the rules know no mode of {taxonomy.ref}; they were made for MAST"
        )
    usable_rules = tuple(rule for rule in usable_rules if not (running and rule.needs_end))
    if names is None:
        # The default rules are precise; the others find more, and are wrong more often.
        needed_modes = {*gate.modes, *(gate.fatal or ())} - {rule.mode for rule in DEFAULT}
        chosen_rules_of_run = tuple(
            rule for rule in usable_rules if rule in DEFAULT or rule.mode in needed_modes
        )
    else:
        named_rules = chosen_rules(names)
        chosen_rules_of_run = tuple(rule for rule in named_rules if rule in usable_rules)
        if not chosen_rules_of_run:
            names_text = ", ".join(rule.name for rule in named_rules)
            raise click.UsageError(
                f"--rules {names_text}: judges the end of a run; see 'mast-tui lint'"
            )
    rule_modes = {rule.mode for rule in chosen_rules_of_run}
    for slug in gate.modes:
        if slug not in rule_modes:
            raise click.UsageError(_unreachable_mode_text(slug, codes, usable_rules))
    if gate.fatal == ():
        raise click.UsageError(
            f"--fail-on fatal: no study says which modes of {taxonomy.ref} are fatal, and the "
            "rules do not mark decisive findings; name codes"
        )
    if gate.fatal is not None and rule_modes.isdisjoint(gate.fatal):
        fatal_codes = ", ".join(sorted(codes[slug] for slug in gate.fatal))
        raise click.UsageError(
            f"--fail-on fatal: none of the rules that run looks for a fatal mode ({fatal_codes}); "
            "leave out --rules, or give --rules all"
        )
    return chosen_rules_of_run


def _unreachable_mode_text(slug: str, codes: dict[str, str], usable: tuple[Rule, ...]) -> str:
    """Return the error for a mode that must fail but that no chosen rule can find."""
    code = codes[slug]
    names = [rule.name for rule in usable if rule.mode == slug]
    if names:
        return (
            f"--fail-on {code}: none of the rules that run looks for it; add {' or '.join(names)} "
            "to --rules"
        )
    if any(rule.mode == slug for rule in RULES):
        return f"--fail-on {code}: only the end of a run shows it; see 'mast-tui lint'"
    rule_codes = sorted({codes[rule.mode] for rule in usable})
    return f"--fail-on {code}: no rule looks for it; the rules look for {', '.join(rule_codes)}"
