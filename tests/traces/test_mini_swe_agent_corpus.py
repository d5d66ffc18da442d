"""mini-swe-agent's real trajectory, held to its raw file."""

from __future__ import annotations

import json

from mast_tui.traces.readers.mini_swe_agent import READER
from tests.traces.checks import CORPUS, needs_corpus, read_one

RUN = CORPUS / "mini-swe-agent" / "github_issue.traj.json"


@needs_corpus
def test_every_answer_is_words_and_a_command_and_every_command_is_answered() -> None:
    raw = json.loads(RUN.read_text(encoding="utf-8"))
    trace = read_one(READER, RUN)
    assert not trace.problems
    answers = [number for number, message in enumerate(raw) if message["role"] == "assistant"]
    assert len(trace) == len(raw) + len(answers)
    for number in answers:
        words, call = trace.index_of(f"/{number}"), trace.index_of(f"/{number}/action/0")
        result = trace.index_of(f"/{number + 1}")
        assert words is not None
        assert call is not None
        assert result == call + 1
        before, _mark, rest = raw[number]["content"].partition("```mswea_bash_command\n")
        assert trace.text(words) == before.strip()
        assert trace.text(call) == rest.removesuffix("\n```")
        assert trace.span(result).parent == trace.span(call).key
        seen = raw[number + 1]["content"]
        assert trace.text(result) in seen
        if seen.startswith("<returncode>"):
            failed = not seen.startswith("<returncode>0<")
            assert trace.span(result).status == ("error" if failed else "ok")
