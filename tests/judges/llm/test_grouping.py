"""Grouping of open notes by a model."""

from __future__ import annotations

import asyncio
import json

import pytest

from mast_tui.errors import MastError
from mast_tui.judges.llm.request import Parameters
from mast_tui.judges.llm.run.grouping import (
    Proposal,
    grouping_notice,
    grouping_request,
    propose_groups,
    read_groups,
)
from mast_tui.judges.llm.run.setup import Setup
from tests.judges.llm.server import MODEL, Action, ModelServer, answer
from tests.workspace.build import MAST

NOTES = ("asks twice", "asked anna@example.org again", "wrong customer")


def setup_of(server: ModelServer | None = None, **parameters: int) -> Setup:
    address = "http://127.0.0.1:9/v1" if server is None else server.base_url
    return Setup(MAST, Parameters(MODEL, **parameters), address)  # type: ignore[arg-type]


def groups(*named_notes: tuple[str, list[int]]) -> str:
    return json.dumps({"groups": [{"name": name, "notes": notes} for name, notes in named_notes]})


def proposed(server: ModelServer) -> Proposal:
    return asyncio.run(propose_groups(setup_of(server), NOTES))


def test_an_unusable_grouping_is_requested_once_more() -> None:
    def script(_body: dict[str, object], n: int) -> Action:
        return answer("no groups" if n == 0 else groups(("Asks twice", [1])))

    with ModelServer(script) as server:
        assert proposed(server).usage.requests == 2
    with (
        ModelServer(lambda *_: answer(groups(("", [1])))) as server,
        pytest.raises(MastError, match="was unusable twice"),
    ):
        proposed(server)


def test_one_request_groups_notes_and_reports_its_cost() -> None:
    notice = grouping_notice(setup_of(), NOTES)
    assert "texts of 3 notes are sent to 127.0.0.1:9, this machine, and nothing else" in notice
    assert "1 request, about" in notice
    assert "It stops at" in notice
    with pytest.raises(MastError, match="one request can hold 20"):
        grouping_request(setup_of(window_tokens=20), NOTES)
    with ModelServer(lambda *_: answer(groups(("Asks twice", [1, 2]), ("Mix-up", [3])))) as server:
        proposal = proposed(server)
        (request,) = server.chats
    assert proposal.groups == {NOTES[0]: "Asks twice", NOTES[1]: "Asks twice", NOTES[2]: "Mix-up"}
    usage = proposal.usage
    assert (usage.requests, usage.tokens_in, usage.tokens_out) == (1, 100, 50)
    body = json.dumps(request.body)
    assert '"required": ["groups"]' in body
    assert "wrong customer" in body
    assert "anna@example.org" not in body


def test_a_note_is_in_one_group_without_a_tag_sign() -> None:
    group_of_note = read_groups(groups(("#who ", [1, 9, 0]), ("", [2]), ("again", [1, 3])), NOTES)
    assert group_of_note == {NOTES[0]: "who", NOTES[2]: "again"}
