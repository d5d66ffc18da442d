"""The split of a command line into common options, a command and its arguments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.cli.command_line import COMMANDS, CommonOptions, quick_app_arguments, split_command
from mast_tui.cli.dispatch import load_command

COMMON = st.lists(
    st.sampled_from(
        [["--workspace", "w.db"], ["--annotator=alice"], ["--blind"], ["--taxonomy", "judge"]]
    ),
    max_size=3,
)


@given(COMMON, st.sampled_from(sorted(COMMANDS)), st.lists(st.text(max_size=5), max_size=3))
def test_a_command_may_follow_common_options(
    options: list[list[str]], command: str, arguments: list[str]
) -> None:
    flat = [word for option in options for word in option]
    command_line = split_command([*flat, command, *arguments])
    assert command_line.command == command
    assert command_line.options == tuple(flat)
    assert command_line.arguments == tuple(arguments)


@given(st.sampled_from(sorted(COMMANDS)))
def test_a_path_named_like_a_command_is_reached_with_a_dot(command: str) -> None:
    assert split_command([f"./{command}"]).command is None
    assert split_command(["traces", command]).command is None


def test_the_value_of_an_option_is_no_command() -> None:
    assert split_command(["--annotator", "judge", "traces"]).command is None
    assert split_command(["--annotator", "judge", "status"]).command == "status"


def test_plain_arguments_of_the_app_are_parsed_quickly() -> None:
    parsed = quick_app_arguments(
        ["a.jsonl", "--workspace=w.db", "b", "--annotator", "bo", "--blind"]
    )
    assert parsed == (("a.jsonl", "b"), CommonOptions("w.db", "bo", blind=True))


def test_unusual_arguments_are_left_to_the_full_parser() -> None:
    for args in (
        ["--help"],
        ["--version"],
        ["--no-such-option"],
        ["--workspace"],
        ["--workspace", "--blind"],
        ["--annotator="],
        ["--annotator", "a", "--annotator", "b"],
        ["--blind", "--assisted"],
        ["--", "x"],
        ["-h"],
    ):
        assert quick_app_arguments(args) is None, args


def test_the_help_page_has_the_help_of_each_command() -> None:
    for name, command in COMMANDS.items():
        assert load_command(name).get_short_help_str(limit=70) == command.help
