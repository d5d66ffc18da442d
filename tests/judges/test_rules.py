"""What each rule suggests, and what beside it is no failure."""

from __future__ import annotations

import json

import pytest

from mast_tui.judges.rules import RULES, RulesJudge, UnknownRule, chosen_rules
from mast_tui.labels import Evidence, Finding
from tests.judges.memory_trace import MemoryTrace

REPETITION = "step_repetition"
TOO_LATE = "unaware_of_termination_conditions"
RESET = "conversation_reset"
MISMATCH = "reasoning_action_mismatch"
TOO_EARLY = "premature_termination"
FAILING = "incorrect_verification"

PODS = "NAME        READY   STATUS    RESTARTS   AGE\nledger-0    0/1     Error     4          7m\n"
OTHER_PODS = PODS.replace("0/1     Error     4", "1/1     Running   4")


def start() -> MemoryTrace:
    return MemoryTrace().user("The ledger of the shop answers with 503. Find out why and mend it.")


def found(trace: MemoryTrace, mode: str) -> list[tuple[int, int]]:
    """Where the mode is suggested, in the numbers that people see."""
    places = []
    for finding in RulesJudge(RULES).judge(trace).findings:
        if finding.mode == mode:
            assert finding.first is not None
            assert finding.last is not None
            first, last = trace.index_of(finding.first), trace.index_of(finding.last)
            assert first is not None
            assert last is not None
            places.append((first + 1, last + 1))
    return places


def only(trace: MemoryTrace) -> Finding:
    (finding,) = RulesJudge(RULES).judge(trace).findings
    return finding


def words_of(finding: Finding) -> Evidence:
    assert finding.evidence is not None
    return finding.evidence


class TestRepetition:
    def test_the_same_call_with_the_same_answer(self) -> None:
        trace = start().run("kubectl get pods", PODS).think("Hm.").run("kubectl get pods", PODS)
        assert found(trace, REPETITION) == [(5, 6)]
        finding = only(trace)
        assert words_of(finding).quote == "kubectl get pods"
        assert words_of(finding).key == "call_2:call"
        assert "#5" in finding.rationale
        assert "#2" in finding.rationale

    def test_more_repetitions_make_it_surer(self) -> None:
        twice = start().run("ls /srv", "a b").run("ls /srv", "a b")
        often = start().run("ls /srv", "a b").run("ls /srv", "a b").run("ls /srv", "a b")
        assert only(often).confidence > only(twice).confidence

    def test_an_age_that_has_grown_is_no_new_answer(self) -> None:
        later = PODS.replace("7m", "9m12s")
        trace = start().run("kubectl get pods", PODS).run("kubectl get pods", later)
        assert found(trace, REPETITION) == [(4, 5)]

    def test_only_how_the_output_is_cut_differs(self) -> None:
        trace = start().run("kubectl get pods | head -20", PODS).run("kubectl get pods 2>&1", PODS)
        assert found(trace, REPETITION) == [(4, 5)]

    def test_a_look_is_fair_again_once_somebody_has_asked_for_something_new(self) -> None:
        trace = start().run("kubectl get pods", PODS).user("And are they well now?")
        assert found(trace.run("kubectl get pods", PODS), REPETITION) == []

    def test_the_same_words_again_ask_for_nothing_new(self) -> None:
        trace = start().user("Go on.").run("kubectl get pods", PODS).user("Go on.")
        assert found(trace.run("kubectl get pods", PODS), REPETITION) == [(6, 7)]

    def test_a_refused_answer_handed_in_again(self) -> None:
        trace = start().call("submit", '{"answer": "42"}', "42").user("That is wrong. Try again.")
        assert found(trace.call("submit", '{"answer": "42"}', "42"), REPETITION) == [(5, 6)]

    def test_a_failing_change_tried_again_unchanged(self) -> None:
        trace = start()
        for _ in range(3):
            trace.run("kubectl apply -f ledger.yaml", "error: no such file", failed=True)
        assert found(trace, REPETITION) == [(4, 7)]

    def test_a_call_that_is_not_the_same_to_the_letter_is_not_called_so(self) -> None:
        trace = start()
        for text in ("a = [1, 2, 3]\nprint(a)", "a = 1, 2, 3\nprint(a)", "a = 1, 2, 3\nprint(a)"):
            trace.run(f"python - <<'EOF'\n{text}\nEOF", None)
        assert "nearly the same call as #2, with no result" in only(trace).rationale
        trace = start().run("ls /srv", None).run("ls /srv", None).run("ls /srv", None)
        assert ": the same call as #2, with no result" in only(trace).rationale

    def test_polling_without_a_wait_while_only_numbers_move(self) -> None:
        trace = start().think("Read the gauge.")
        for value in ("2511.4", "2498.0", "2533.8", "2502.1"):
            trace.run("curl -s 'http://prom/api/v1/query?query=p95'", value)
        assert found(trace, REPETITION) == [(5, 10)]

    @pytest.mark.parametrize(
        "again",
        [
            pytest.param(
                lambda t: t.run("kubectl rollout restart deploy/ledger", "restarted").run(
                    "kubectl get pods", PODS
                ),
                id="after a change",
            ),
            pytest.param(lambda t: t.run("kubectl get pods", OTHER_PODS), id="another answer"),
            pytest.param(lambda t: t.run("kubectl get pods -n other", PODS), id="another place"),
            pytest.param(lambda t: t.run("kubectl get deployments", PODS), id="another question"),
            pytest.param(
                lambda t: t.call("shell", '{"cmd": "kubectl get pods"}', PODS, agent="second"),
                id="another agent",
            ),
        ],
    )
    def test_what_is_no_repetition(self, again: object) -> None:
        assert callable(again)
        trace = start().run("kubectl get pods", PODS)
        again(trace)
        assert found(trace, REPETITION) == []

    def test_pages_of_one_file_are_different_questions(self) -> None:
        trace = start()
        for page in range(6):
            trace.run(f"sed -n '{page}00,{page}99p' src/ledger.py", "    return None\n")
        assert found(trace, REPETITION) == []

    def test_waiting_for_a_change_to_take_effect_is_fair_for_a_while(self) -> None:
        trace = start().run("kubectl rollout restart deploy/ledger", "restarted")
        for _ in range(3):
            trace.run("sleep 30; kubectl get pods", PODS)
        assert found(trace, REPETITION) == []
        for _ in range(2):
            trace.run("sleep 30; kubectl get pods", PODS)
        assert found(trace, REPETITION) == [(10, 13)]

    def test_a_pause_on_the_clock_is_a_wait(self) -> None:
        def polled(seconds: float) -> MemoryTrace:
            trace = start()
            for turn, value in enumerate(("101", "102", "103", "104")):
                trace.run("cat /srv/gauge", value, start=1000.0 + turn * seconds)
            return trace

        assert found(polled(2.0), REPETITION)
        assert not found(polled(300.0), REPETITION)

    def test_one_agent_says_the_same_over_and_over(self) -> None:
        asked = (
            "Please open the archive of 2015 and read the table of the first week of August to me."
        )
        trace = start()
        for turn in range(3):
            trace.say(asked, "lead").say(f"I could not open it, attempt {turn}.", "reader")
        assert found(trace, REPETITION) == [(4, 4), (6, 6)]

    @pytest.mark.parametrize(
        "words",
        [
            pytest.param("Please ask {} what a parcel of two kilograms to Lyon costs.", id="names"),
            pytest.param("Look for flights from {} to Lisbon on the first of May, please.", id="x"),
        ],
    )
    def test_words_that_differ_make_another_question(self, words: str) -> None:
        trace = start()
        for name in ("FedEx", "DHL", "USPS", "JFK"):
            trace.say(words.format(name) + " Tell me the cheapest way there is.", "lead")
            trace.say(f"{name}: nothing", "reader")
        assert found(trace, REPETITION) == []

    def test_a_prompt_that_several_agents_share_is_nobody_s_words(self) -> None:
        prompt = "You are at a company that makes software. Answer in one word, and nothing else. "
        trace = start()
        for _ in range(3):
            trace.say(prompt + "Python.", "chief").say(prompt + "Done.", "clerk")
        assert found(trace, REPETITION) == []

    def test_what_a_log_prints_twice_was_said_once(self) -> None:
        words = "I look at the ledger's pods now, and then at the events of the last hour. " * 10
        trace = start()
        for turn in range(3):
            trace.say(words).log(f"copy {turn}")
        assert found(trace, REPETITION) == []

    def test_two_questions_in_turns_are_one_place(self) -> None:
        trace = start()
        for _ in range(3):
            trace.run("kubectl get pods", PODS).run("kubectl get events", "none")
        assert found(trace, REPETITION) == [(6, 13)]

    def test_what_lies_between_two_repetitions_is_not_marked(self) -> None:
        trace = start().run("kubectl get pods", PODS).run("kubectl get pods", PODS)
        trace.run("kubectl get events", "none").run("kubectl get pods", PODS)
        assert found(trace, REPETITION) == [(4, 5), (8, 9)]

    def test_an_argument_that_is_mended_after_an_error(self) -> None:
        trace = start().run("kubectl get pod ledger", "Error: not found", failed=True)
        trace.run("kubectl get pod ledger-0", "Error: not found", failed=True)
        assert found(trace, REPETITION) == []


class TestViews:
    PAGE = "Address: https://a.example/p\nTitle: P\nViewport position: page {} of 3.\n===\nText"

    def test_the_same_view_once_more(self) -> None:
        trace = start()
        for page in (1, 1, 2, 1):
            trace.say("Open the page of the shop.", "lead").say(self.PAGE.format(page), "surfer")
        assert found(trace, REPETITION) == [(5, 5)]

    def test_another_click_with_the_same_view_is_another_step(self) -> None:
        shown = " Here is a screenshot of [P](https://a.example/p). The viewport shows 30%.\nText"
        trace = start().say("I clicked 'Next'." + shown).say("I clicked 'More'." + shown)
        assert found(trace, REPETITION) == []


class TestInvented:
    def asked(self, user: str, order: str) -> list[tuple[int, int]]:
        trace = MemoryTrace().user(user).call("get_order", json.dumps({"order_id": order}), "none")
        return found(trace, "fail_to_ask_for_clarification")

    def test_a_value_that_nobody_gave(self) -> None:
        assert self.asked("Cancel my order, please.", "#W1234567") == [(2, 2)]
        assert self.asked("Cancel my order, please.", "your_order_id") == [(2, 2)]

    def test_a_value_that_was_given_in_another_spelling(self) -> None:
        assert self.asked("Cancel my order w-1234567, please.", "#W1234567") == []

    def test_a_value_from_a_long_answer(self) -> None:
        trace = MemoryTrace().user("Cancel my order.")
        trace.call("list_orders", "{}", "x" * 5000 + " #W1234567 " + "x" * 5000)
        trace.call("get_order", '{"order_id": "#W1234567"}', "pending")
        assert found(trace, "fail_to_ask_for_clarification") == []


class TestAssumed:
    MODE = "fail_to_ask_for_clarification"

    @pytest.mark.parametrize(
        "words",
        [
            "Assuming we have downloaded the table, the mean is 12.",
            "As the download fails, we can simulate the temperature data for now.",
            "I use placeholder values until somebody has the file.",
        ],
    )
    def test_going_on_as_if_it_had_what_it_has_not(self, words: str) -> None:
        assert found(MemoryTrace().user("What was the mean?").say(words), self.MODE) == [(2, 2)]

    @pytest.mark.parametrize(
        "words",
        [
            "I will not assume that we have the table; please send it.",
            "If we assume the file is complete, the mean is 12.",
            "The simulation ends at noon.",
        ],
    )
    def test_words_that_assume_nothing(self, words: str) -> None:
        assert found(MemoryTrace().user("What was the mean?").say(words), self.MODE) == []

    def test_figures_that_stand_nowhere_before(self) -> None:
        words = "Here is the sales data of both homes: 850,000 and 950000."
        assert found(MemoryTrace().user("Which sold for more?").say(words), self.MODE) == [(2, 2)]

    def test_figures_that_a_tool_has_given_or_that_are_years(self) -> None:
        trace = MemoryTrace().user("Which sold for more?")
        trace.call("sales", "{}", '{"a": 850000, "b": 950000}')
        trace.say("Here is the sales data of both homes, of 2022: 850,000 and 950,000.")
        assert found(trace, self.MODE) == []


class TestChoice:
    def test_the_name_tells_which_rules_ran(self) -> None:
        names = [
            RulesJudge(chosen_rules(which)).name
            for which in ("default", "all", "limit,repeated-call")
        ]
        assert names[0] == RulesJudge().name
        assert names[1] == f"{names[0]}+all"
        assert names[2] == f"{names[0]}+repeated-call+limit"

    def test_only_modes_of_rules_that_run_have_a_verdict(self) -> None:
        assert RulesJudge(chosen_rules("limit")).looks_at == (TOO_LATE,)

    @pytest.mark.parametrize("name", ["loop", "after-done", "overlong", "unchecked"])
    def test_a_rule_of_earlier_versions_is_said_to_be_removed(self, name: str) -> None:
        with pytest.raises(UnknownRule, match=f"'{name}' was removed: .*; there are default, all"):
            chosen_rules(f"limit,{name}")

    @pytest.mark.parametrize("names", ["", "loops", "all,nothing"])
    def test_an_unknown_name_is_refused_with_those_there_are(self, names: str) -> None:
        with pytest.raises(UnknownRule) as refused:
            chosen_rules(names)
        assert "repeated-call" in str(refused.value)


class TestTooLate:
    def test_a_limit_ends_the_run_at_work(self) -> None:
        trace = start().think("More logs.").run("kubectl logs deploy/ledger", "timeout")
        trace.log("run ended: maximum number of turns (40) reached")
        assert found(trace, TOO_LATE) == [(5, 5)]
        assert "maximum number of turns" in words_of(only(trace)).quote

    def test_a_limit_after_the_end_is_no_failure(self) -> None:
        trace = start().run("kubectl get pods", OTHER_PODS)
        trace.say("The incident is resolved: all pods are ready.")
        trace.log("run ended: maximum number of turns (40) reached")
        assert found(trace, TOO_LATE) == []

    def test_a_limit_in_a_service_is_not_the_run_s(self) -> None:
        log = "WARN rate limit exceeded: 200 requests\n" * 40
        trace = start().run("kubectl logs deploy/ledger", log).say("The ledger is throttled.")
        assert found(trace, TOO_LATE) == []


class TestReset:
    PLAN = (
        "I'll take this in three steps: list the pods, read the log of the ledger, look at events."
    )

    def opened(self) -> MemoryTrace:
        trace = start().say(self.PLAN).run("kubectl get pods", PODS)
        trace.run("kubectl logs ledger-0", "disk full").think("The volume is full.")
        return (
            trace.run("kubectl get pvc", "ledger-data 1Gi")
            .think("Grow the volume.")
            .run("kubectl patch pvc ledger-data -p '{}'", "patched")
        )

    def test_the_opening_comes_again_and_its_steps_with_it(self) -> None:
        trace = self.opened().say(self.PLAN).run("kubectl get pods", OTHER_PODS)
        trace.run("kubectl logs ledger-0", "ready")
        assert found(trace, RESET) == [(13, 17)]

    def test_a_plan_that_is_only_restated_is_none(self) -> None:
        trace = self.opened().say(self.PLAN + " The first two are done.")
        trace.run("kubectl get events", "none").say("No events.")
        assert found(trace, RESET) == []

    def test_the_first_calls_in_the_same_order(self) -> None:
        trace = self.opened().run("kubectl get pods", OTHER_PODS)
        trace.run("kubectl logs ledger-0", "ready").run("kubectl get pvc", "ledger-data 2Gi")
        assert found(trace, RESET) == [(13, 18)]

    def test_another_order_in_the_same_words_is_other_work(self) -> None:
        words = "May I have the reason for the cancellation of {}, and a yes to go on with it?"
        trace = start().say(words.format("IFOYYZ"))
        for number in range(9):
            trace.run(f"cat {number}", str(number))
        assert found(trace.say(words.format("NQNU5R")).say("Thank you."), RESET) == []

    def test_a_prompt_that_the_harness_repeats_is_none(self) -> None:
        trace = MemoryTrace()
        for turn in range(8):
            trace.say(self.PLAN).run("kubectl get pods", PODS).run(f"echo {turn}", str(turn))
        assert found(trace, RESET) == []


class TestMismatch:
    def test_another_command_than_the_one_announced(self) -> None:
        trace = start().say("Next I'll run `kubectl describe pod ledger-0` to see its last state.")
        trace.run("kubectl rollout restart deploy/ledger", "restarted")
        assert found(trace, MISMATCH) == [(2, 3)]
        assert "describe" in words_of(only(trace)).quote
        assert "is not of kubectl describe" in only(trace).rationale

    def test_a_tool_named_by_its_name(self) -> None:
        trace = start().call("fetch_logs", '{"pod": "ledger-0"}', "…")
        trace.say("I'll use fetch_logs once more before touching anything.")
        trace.call("restart_service", '{"service": "ledger"}', "ok")
        assert found(trace, MISMATCH) == [(4, 5)]

    def test_a_look_is_announced_and_a_change_is_made(self) -> None:
        trace = start().think("Let me look at the events of the last hour.")
        trace.run("kubectl delete pod ledger-0", "deleted")
        assert found(trace, MISMATCH) == [(2, 3)]

    def test_what_was_ruled_out_is_done(self) -> None:
        trace = start().think("I will not delete the pod, its disk would be gone.")
        trace.run("kubectl delete pod ledger-0", "deleted")
        assert found(trace, MISMATCH) == [(2, 3)]

    def test_another_thing_is_changed(self) -> None:
        trace = start().run("kubectl rollout restart deploy/cart", "restarted")
        trace.run("kubectl get pods", PODS).say("Now I'll restart cart.")
        trace.run("kubectl rollout restart deploy/ledger", "restarted")
        assert found(trace, MISMATCH) == [(6, 7)]

    def test_another_amount_is_set(self) -> None:
        trace = start().say("I'll raise the memory limit to 512Mi.")
        trace.run("kubectl set resources deploy/ledger --limits=memory=256Mi", "updated")
        assert found(trace, MISMATCH) == [(2, 3)]

    @pytest.mark.parametrize(
        ("words", "command"),
        [
            ("I'll run `kubectl describe pod ledger-0`.", "kubectl -n shop describe pod/ledger-0"),
            ("Let me look at the pods.", "kubectl get pods"),
            ("Let me check whether a restart helps.", "kubectl rollout restart deploy/ledger"),
            (
                "I'll raise the limit to 512Mi.",
                "kubectl set resources deploy/l --limits=memory=512Mi",
            ),
            ("I will not delete the pod.", "kubectl get pods"),
            ("I know what to do.", "kubectl delete pod ledger-0"),
            ("I'll run `   ` now.", "kubectl get pods"),
            ("Let's run this file and see the result.", "python find_the_ledger.py"),
            ("Let me look at the page with curl.", "curl -X POST -d a=b http://ledger/"),
            ("Let me check what the script prints.", "echo 'print(1)' > check.py"),
            ("If that helps I'll look at the pods.", "kubectl delete pod ledger-0"),
        ],
    )
    def test_words_that_are_followed(self, words: str, command: str) -> None:
        assert found(start().say(words).run(command, "ok"), MISMATCH) == []

    def test_the_announced_call_may_come_second(self) -> None:
        trace = start().say("I'll run `kubectl top pod` now.").run("kubectl get ns", "shop")
        trace.run("kubectl top pod -n shop", "ledger-0 12m")
        assert found(trace, MISMATCH) == []


class TestTooEarly:
    @pytest.mark.parametrize(
        "words",
        [
            "I could not determine the cause. I'll leave it here.",
            "I am giving up on this one.",
            "The restart is through. The ledger is still failing.",
            "The cause is a full volume. Further investigation is required.",
            "Now I'll check the events of the node.",
        ],
    )
    def test_the_run_ends_with_its_goal_unmet(self, words: str) -> None:
        trace = start().run("kubectl get pods", PODS).say(words)
        assert found(trace, TOO_EARLY) == [(4, 4)]

    def test_a_refusal_by_policy_is_the_end_that_was_asked_for(self) -> None:
        trace = start().call("get_order", "{}", '{"status": "delivered"}')
        trace.say("I cannot complete this: by our policy a delivered order is not cancelled.")
        assert found(trace, TOO_EARLY) == []

    def test_words_in_the_middle_end_nothing(self) -> None:
        trace = start().say("I could not determine the cause.").run("kubectl get pods", PODS)
        trace.say("The volume of the ledger is full.")
        assert found(trace, TOO_EARLY) == []

    def test_a_comment_in_code_is_an_agent_s_word_too(self) -> None:
        code = "# Nothing helps, so I give up on it here.\nprint(apis.supervisor.complete_task())"
        trace = start().call("python", code, "task closed")
        assert found(trace, TOO_EARLY) == [(2, 2)]


class TestVerification:
    @pytest.mark.parametrize(
        "check",
        [
            "kubectl get pods",
            "sleep 20 && kubectl get pods",
            "curl -s http://ledger/healthz",
        ],
    )
    def test_a_look_after_the_change_is_a_check(self, check: str) -> None:
        trace = start().run("kubectl set env deploy/ledger MODE=safe", "updated")
        trace.run(check, OTHER_PODS).say("The incident is fixed.")
        assert found(trace, FAILING) == []

    def test_writing_it_down_is_no_change_to_check(self) -> None:
        broken = PODS.replace("Error", "CrashLoopBackOff")
        trace = start().run("kubectl rollout restart deploy/ledger", "restarted")
        trace.run("kubectl get pods -l app=ledger", broken).run("echo fixed > notes.md")
        assert found(trace.say("The incident is fixed."), FAILING) == [(4, 8)]

    def test_success_against_the_last_check(self) -> None:
        trace = start().run("kubectl rollout restart deploy/ledger", "restarted")
        trace.run("kubectl get pods -l app=ledger", PODS.replace("Error", "CrashLoopBackOff"))
        trace.say("The incident is fixed.")
        assert found(trace, FAILING) == [(4, 6)]
        finding = only(trace)
        assert words_of(finding).key == "call_2:result"
        assert "CrashLoopBackOff" in words_of(finding).quote

    def test_a_count_of_none_is_no_problem(self) -> None:
        trace = start().run("kubectl rollout restart deploy/ledger", "restarted")
        trace.run("kubectl logs deploy/ledger | tail -1", "checks: 0 failed, no errors")
        assert found(trace.say("The incident is fixed."), FAILING) == []

    @pytest.mark.parametrize(("read", "hit"), [("4608.3", True), ("412.7", False)])
    def test_a_reading_against_the_bound_that_is_claimed(self, read: str, hit: bool) -> None:
        trace = start().run("kubectl rollout restart deploy/ledger", "restarted")
        trace.call("promql", '{"query": "p95(ledger_duration_milliseconds_bucket)"}', read)
        trace.say("p95 is below 500 ms again. The incident is resolved.")
        assert bool(found(trace, FAILING)) is hit
