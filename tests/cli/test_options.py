"""Requests made from the options of a command, and rules that refuse combinations of options."""

from __future__ import annotations

from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.options import OptionRule


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOptions:
    """Options that are one field of a request."""

    width: int | None = options.option("--width", type=int)
    tall: bool = options.option("--tall", is_flag=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxRequest:
    """The options of a command for tests."""

    names: tuple[str, ...] = options.argument(nargs=-1)
    colour: str = options.option("--colour", default="red")
    labels: tuple[str, ...] = options.option("--label", multiple=True)
    size: SizeOptions = options.group(SizeOptions)
    common: CommonOptions = options.common(taxonomy="it has no labels")
    as_json: bool = options.as_json()


RULES = (
    OptionRule[BoxRequest]("needs a width", options=("--tall",), needs=("--width",)),
    OptionRule[BoxRequest](
        "{option} and {other} differ", options=("--json",), excludes=("--label", "names")
    ),
    OptionRule[BoxRequest](
        "{request.colour} is no colour", when=lambda request: request.colour == "loud"
    ),
)


@click.command()
@options.takes(BoxRequest, RULES)
def box_command(request: BoxRequest) -> None:
    """Print the request."""
    click.echo(repr(request))


@pytest.mark.parametrize(
    ("line", "request_or_message"),
    [
        ("", BoxRequest()),
        ("a b --label x --label y", BoxRequest(names=("a", "b"), labels=("x", "y"))),
        ("--width 3 --tall", BoxRequest(size=SizeOptions(width=3, tall=True))),
        ("--workspace w --blind", BoxRequest(common=CommonOptions(workspace="w", blind=True))),
        ("--tall", "needs a width"),
        ("--json --label x", "--json and --label differ"),
        ("--json a", "--json and names differ"),
        ("--json", BoxRequest(as_json=True)),
        ("--colour loud", "loud is no colour"),
        ("--blind --assisted", "--blind and --assisted exclude each other"),
        ("--taxonomy t", "does not accept --taxonomy: it has no labels"),
    ],
)
def test_a_line_becomes_a_request_or_is_refused(
    line: str, request_or_message: BoxRequest | str
) -> None:
    result = CliRunner().invoke(box_command, line.split())
    if isinstance(request_or_message, BoxRequest):
        assert result.output.strip() == repr(request_or_message)
    else:
        assert result.exit_code == 2
        assert request_or_message in result.output


def test_a_rule_on_an_option_that_is_none_is_found_at_once() -> None:
    rule = OptionRule[BoxRequest]("wrong", options=("--colors",))
    with pytest.raises(AssertionError, match="--colors"):
        options.takes(BoxRequest, (rule,))


def test_the_rules_of_a_command_can_be_read() -> None:
    assert options.rules_of(box_command) == RULES
    assert options.flags_of(BoxRequest, without=("--colour",))[:3] == (
        "--label",
        "--width",
        "--tall",
    )
