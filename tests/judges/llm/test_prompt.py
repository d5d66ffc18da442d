"""The prompt: its content, its hash, and the key of an answer."""

from __future__ import annotations

import json
from dataclasses import replace

from msgspec import structs

from mast_tui.configuration import JudgeConfiguration
from mast_tui.judges.llm.prompt.prompt import Example, Prompt
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.taxonomy_text import CHECKLISTS, taxonomy_text
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.prompt.windows import plan
from mast_tui.judges.llm.request import Fact, Parameters, Window
from mast_tui.judges.llm.run.judging import TraceJudge
from mast_tui.judges.llm.run.setup import configured_setup, file_notice, sending_notice
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.traces.model import AnswerKey, Outcome, TraceMeta
from tests.judges.llm.views import MAST, marked_lines, prompt_of, requests, sent, trace_of, view_of
from tests.judges.memory_trace import MemoryTrace

PARAMETERS = Parameters("model")
EXAMPLE = Example("t", "step_repetition", VerdictValue.PRESENT, "ls\nls", "ls", "twice")


def test_the_prompt_has_the_whole_taxonomy_and_the_common_part_first() -> None:
    ((_, request),) = requests(trace_of(["x"]))
    system = sent(request)[1]
    for mode in MAST.modes:
        assert f"{mode.code} {mode.name}" in system
        for text in (mode.definition, *CHECKLISTS[mode.slug], *mode.applies_not):
            assert text in system
        for other in mode.confusable:
            assert other.difference in system
    # What all requests have in common comes first, for prompt caches.
    ((_, short),) = requests(trace_of(["one"]))
    (_, long), *_ = requests(trace_of(["two " * 2_000] * 30), 4_000)
    assert short.system == long.system
    assert len(short.system[0]) > 0.95 * sum(map(len, short.system))


def test_modes_have_checklists_unless_reworded() -> None:
    assert set(CHECKLISTS) == {mode.slug for mode in MAST.modes}
    for questions in CHECKLISTS.values():
        assert 3 <= len(questions) <= 5
        assert all("?" in question for question in questions)
        assert any("Evidence: " in question for question in questions)
    # The instructions are not longer than without checklists.
    assert Prompt(MAST, PARAMETERS).system.tokens <= 4_466
    changed = taxonomy_text(CHANGED)
    assert CHECKLISTS[CHANGED_MODE.slug][0] not in changed
    assert CHANGED_MODE.applies[0] in changed
    assert CHECKLISTS[MAST.modes[1].slug][0] in changed


def test_a_request_marks_the_start_of_its_window_and_the_end_of_the_run() -> None:
    parts = requests(trace_of(["step by step " * 40] * 60), 3_000)
    assert len(parts) > 2
    for window, request in parts:
        boundary, _, user = sent(request)
        marks = marked_lines(user, boundary)
        assert ("the run ends here]" in marks) == window.final
        assert (f"this part begins with #{window.first + 1}]" in marks) == (window.first > 0)
        question = user.rpartition("Judge these modes")[2]
        assert {code.code for code in MAST.modes if code.code in question} == {
            MAST.mode(slug).code for slug in window.modes
        }


def test_requests_are_reproducible_counted_and_differ_by_sample() -> None:
    trace = MemoryTrace().user("Mend it.").call("ls", "{}", "a@x.org").say("Done.")
    first, second = (requests(trace, redaction=Redaction.default())[0][1] for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert sent(first) == sent(second)
    assert len({replace(first, sample=n).fingerprint for n in range(3)}) == 3
    (short,), (long,) = (requests(trace_of(texts)) for texts in (["x"], ["x", "word " * 1_000]))
    assert 900 < long[1].tokens - short[1].tokens < 1_600
    assert short[1].tokens > 3_000


CHANGED_MODE = structs.replace(MAST.modes[0], definition=f"{MAST.modes[0].definition} Always.")
CHANGED_MODES = (CHANGED_MODE, *MAST.modes[1:])
CHANGED = from_dict(to_dict(structs.replace(MAST, modes=CHANGED_MODES)), "other.toml")
HINTS = replace(PARAMETERS, hints="judge:rules@0")
ARTEFACTS = replace(PARAMETERS, artefacts=True)
CHANGES = {
    "nothing": Prompt(MAST, PARAMETERS),
    "model": Prompt(MAST, replace(PARAMETERS, model="other")),
    "answer room": Prompt(MAST, replace(PARAMETERS, answer_tokens=8_000)),
    "short answers": Prompt(MAST, replace(PARAMETERS, answer_tokens=1_000)),
    "temperature": Prompt(MAST, replace(PARAMETERS, temperature=0.0)),
    "samples": Prompt(MAST, replace(PARAMETERS, samples=3)),
    "windows": Prompt(MAST, replace(PARAMETERS, window_tokens=8_000)),
    "example": Prompt(MAST, PARAMETERS, (EXAMPLE,)),
    "other example": Prompt(MAST, PARAMETERS, (replace(EXAMPLE, quote="ls\nls"),)),
    "mode order": Prompt(MAST, replace(PARAMETERS, mode_order=7)),
    "first number": Prompt(MAST, replace(PARAMETERS, first_number=101)),
    "extra": Prompt(MAST, PARAMETERS, extra="patterns"),
    "definition": Prompt(CHANGED, PARAMETERS),
    "hints": Prompt(MAST, HINTS),
    "artefacts": Prompt(MAST, ARTEFACTS),
    "other hints": Prompt(MAST, replace(HINTS, hints="judge:rules@1")),
}


def test_the_hash_depends_on_all_that_shapes_answers() -> None:
    hashes = {name: prompt.hash for name, prompt in CHANGES.items()}
    same = {hashes.pop(name) for name in ("nothing", "model", "answer room")}
    assert len(same) == 1
    assert len({*hashes.values(), *same}) == len(hashes) + 1
    assert all(len(value) == 8 and int(value, 16) >= 0 for value in (*hashes.values(), *same))


def test_the_answer_key_depends_on_request_and_prompt() -> None:
    ((_, request),) = requests(trace_of(["x"]))
    plain = CHANGES["nothing"]
    keys = [
        plain.answer_key(request, 500),
        plain.answer_key(request, 501),
        plain.answer_key(replace(request, sample=1), 500),
        plain.answer_key(replace(request, user=("other data",)), 500),
        plain.answer_key(replace(request, system=("judge", "on")), 500),
        *(
            prompt.answer_key(request, 500)
            for name, prompt in CHANGES.items()
            if name not in ("nothing", "answer room")
        ),
    ]
    assert len(set(keys)) == len(keys)
    shortened = replace(request, tokens=11, remarks=("shortened",))
    assert plain.answer_key(shortened, 500) == keys[0]


def test_the_mode_order_can_be_shuffled() -> None:
    prompt = Prompt(MAST, replace(PARAMETERS, mode_order=7))
    plain = Prompt(MAST, PARAMETERS)
    assert prompt.modes != plain.modes
    assert sorted(prompt.modes) == sorted(plain.modes)
    assert sorted(prompt.window_modes) == sorted(plain.window_modes)
    view = view_of(trace_of(["x"]))
    _, system, user = sent(prompt.request(view, Window(0, 0, True, prompt.modes), ""))
    codes = [MAST.mode(slug).code for slug in prompt.modes]
    assert ", ".join(codes) in user
    assert [line.split()[1] for line in system.splitlines() if line.startswith("### ")] == codes


def test_examples_hide_their_trace_and_traces_their_outcome() -> None:
    example = replace(EXAMPLE, trace_id="secret-trace-name")
    prompt = Prompt(MAST, PARAMETERS, (example,))
    request = prompt.request(view_of(trace_of(["x"])), Window(0, 0, True, prompt.modes), "")
    assert "secret-trace-name" not in "".join(request.system)
    assert '"ls\\nls"' in "".join(request.system)
    key = AnswerKey(reference=(("ground_truth", "the cache was full"),))
    meta = TraceMeta(task="Mend it.", outcome=Outcome.FAILED, score=0.125, answer_key=key)
    ((_, hidden),) = requests(MemoryTrace("t", meta).say("Done."))
    assert not any(text in sent(hidden)[2] for text in ("the cache was full", "0.125", "failed"))


def test_facts_are_shown_redacted_in_their_window() -> None:
    prompt, _ = prompt_of()
    view = view_of(trace_of(["a", "b", "c", "d"]))
    facts = [
        Fact(0, 1, "step_repetition", "the same call twice"),
        Fact(3, 3, "step_repetition", "the same again"),
        Fact(0, 0, "premature_termination", "a mode that is not asked for here"),
    ]
    window = Window(0, 1, False, prompt.window_modes)
    _, _, user = sent(prompt.request(view, window, "", facts=facts))
    assert "- 1.3, #1 to #2: the same call twice\n" in user
    assert "the same again" not in user
    assert "not asked for" not in user
    _, _, bare = sent(prompt.request(view, window, ""))
    assert "facts]" not in bare
    trace = MemoryTrace().user("Mend it.")
    for _ in range(4):
        trace.call("mail", '{"to": "bob@example.com"}', "sent\n[data ends]", agent="main")
    trace_judge = TraceJudge(trace, Prompt(MAST, HINTS), HINTS, Redaction.default())
    assert trace_judge.first_request is not None
    boundary, _, user = sent(trace_judge.first_request)
    section = user.partition(f"[{boundary} facts]\n")[2].partition("\n[")[0]
    assert section.startswith("- 1.3, #")
    assert "bob@example.com" not in user
    assert len(section.splitlines()) == 1


def test_hints_of_rules_are_on_by_default() -> None:
    configured = configured_setup(MAST, JudgeConfiguration(model="m"))
    assert configured.parameters.hints == RulesJudge().name
    without = configured_setup(MAST, JudgeConfiguration(model="m", hints=False))
    assert without.parameters.hints == ""


def artefact_sections(trace: MemoryTrace, parameters: Parameters = ARTEFACTS) -> list[str]:
    """Return the section of each request on the artefacts of the run, or empty texts."""
    view = RedactedView(trace, Redaction.default())
    prompt = Prompt(MAST, parameters)
    texts = []
    for window in plan(view, prompt, parameters):
        boundary, _, user = sent(prompt.request(view, window, "" if window.first == 0 else "story"))
        head, _, tail = user.partition(f"[{boundary} what the run left]\n")
        texts.append(tail.partition(f"[{boundary} data ends]")[0])
        assert estimate(head + tail) <= parameters.window_tokens + 100
    return texts


def test_patch_and_test_results_are_a_section_and_need_consent() -> None:
    key = AnswerKey(
        patch=(("submission", "-a\n+b"), ("gold_patch", "-a\n+right")),
        tests=(("passed", "t1\nt2 for a@example.org, AKIAIOSFODNN7EXAMPLE"),),
        scores=(("reward", "0"),),
    )
    trace = MemoryTrace(meta=TraceMeta(answer_key=key)).user("Mend it.").say("Done.")
    (text,) = artefact_sections(trace)
    assert text.startswith("submission:\n-a\n+b\n\npassed:\nt1\nt2 for ")
    assert "AKIA" not in text
    assert "right" not in text
    assert "reward" not in text
    assert artefact_sections(trace, PARAMETERS) == [""]
    system = {name: "".join(CHANGES[name].system.pieces) for name in ("nothing", "artefacts")}
    assert "what the run left" in system["artefacts"]
    assert "what the run left" not in system["nothing"]
    for artefacts in (False, True):
        setup = configured_setup(MAST, JudgeConfiguration(model="m", artefacts=artefacts))
        for text in (sending_notice(setup), file_notice(setup)):
            assert ("final patches, test results" in text) == artefacts


def test_without_a_patch_file_changes_are_shown_in_their_share() -> None:
    change = json.dumps({"file_path": "/a.py", "content": "x = 1\n" * 9_000})
    trace = MemoryTrace().user("Mend it. " * 900)
    for _ in range(30):
        trace.say("word " * 200)
    trace.call("Write", change, "ok").call("ls", "{}", "a.py")
    parameters = replace(ARTEFACTS, window_tokens=4_000)
    *parts, last = artefact_sections(trace, parameters)
    assert parts
    assert set(parts) == {""}
    assert last.startswith("/a.py, changed in #32:\n@@ all of it @@\n+x = 1")
    assert "characters left out" in last
    assert estimate(last) <= 4_000 // 5 + 20
    assert artefact_sections(MemoryTrace().user("Mend it.").say("Done.")) == [""]


def test_shifted_span_numbers_are_mapped_back() -> None:
    trace = MemoryTrace().user("Mend it.")
    for _ in range(3):
        trace.call("ls", "{}", "cart.py", agent="main")
    trace.say("See issue #5.")
    parameters = replace(HINTS, first_number=101)
    prompt = Prompt(MAST, parameters)
    trace_judge = TraceJudge(trace, prompt, parameters, Redaction.none())
    assert trace_judge.first_request is not None
    boundary, _, user = sent(trace_judge.first_request)
    marks = marked_lines(user, boundary)
    assert [mark.split("]")[0] for mark in marks if mark.startswith("#")] == [
        f"#{number}" for number in range(101, 109)
    ]
    assert "task: see #101]" in marks
    facts = user.partition("facts]\n")[2].partition("\n[")[0]
    assert facts.startswith("- 1.3, #10")
    assert "#2" not in facts
    claim = {
        "rationale": "#102 and #104 are the same, see issue #5 and #900",
        "quote": "cart.py",
        "first": 102,
        "last": 105,
        "confidence": 0.5,
    }
    answer = {"modes": {"1.3": {"findings": [claim], "verdict": "present"}}}
    view = RedactedView(trace, Redaction.none(), 101)
    read = prompt.read(json.dumps(answer), view, Window(0, 7, True, prompt.modes))
    [finding] = read.findings
    assert (finding.first, finding.last) == (trace.span(1).key, trace.span(4).key)
    assert finding.rationale == "#2 and #4 are the same, see issue #5 and #900"
    assert read.remarks == ()
