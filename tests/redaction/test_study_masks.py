"""Masks of a study: no screen, command or stored quote shows the masked texts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.labels import Target
from mast_tui.redaction import filled_masks as masking
from mast_tui.redaction.filled_masks import filled_mask, is_masked_copy, with_whole_masks
from mast_tui.session import Session, set_study, trace_masks
from mast_tui.traces.model import Trace
from mast_tui.workspace import Workspace
from tests.cli.conftest import Cli
from tests.postgres import PostgresServer
from tests.ui.settle import run_briefly
from tests.ui.stage import MAST, SLUGS, finding, read_trace, stage, suggest, write_trace
from tests.waiting import until
from tests.workspace.test_sight_by_server import STUDY, Team

EMAIL = "alice.doe@example.com"
BADGE = "X-993412"
MESSAGES = (
    {"role": "user", "content": f"Write to {EMAIL} about badge {BADGE}."},
    {"role": "assistant", "content": f"The mail goes to {EMAIL} now; nobody checks it."},
    {"role": "assistant", "content": "Done."},
)


@dataclass(frozen=True, slots=True)
class MaskedStudy:
    """A trace with personal data, and a workspace whose study masks them."""

    file: Path
    workspace: Path

    @property
    def trace(self) -> Trace:
        """The trace without masks."""
        return read_trace(self.file)

    def session(self, annotator: str, *, masked: bool = True) -> Session:
        """Return a session on the trace."""
        workspace = Workspace.open(self.workspace)
        masks = trace_masks(workspace.study(MAST.ref)) if masked else None
        return Session.open(workspace, self.trace.with_masks(masks), MAST, annotator, blind=False)


@pytest.fixture
def study(tmp_path: Path, cli: Cli) -> MaskedStudy:
    """Set up a study of two annotators and an adjudicator that masks texts and badges."""
    made = MaskedStudy(write_trace(tmp_path / "run.json", MESSAGES), tmp_path / "labels.db")
    (tmp_path / "outcomes.csv").write_text("trace,outcome\nrun.json,failed\n", encoding="utf-8")
    patterns = tmp_path / "patterns.txt"
    patterns.write_text("# badges\nbadge = X-[0-9]{6}\n", encoding="utf-8")
    cli.ok(
        *("study", "set", made.file, "--annotators", "alice,bob", "--adjudicators", "carol"),
        *("--annotator", "lead", "--assisted", "--redact", "--redact-file", patterns),
        *("--workspace", made.workspace),
    )
    return made


def assert_nothing_shown(text: str) -> None:
    """Assert that a text has no masked value, nor a recognisable part of one."""
    for secret in (EMAIL, "alice.doe", "example.com", BADGE, "993412"):
        assert secret not in text


@given(
    name=st.sampled_from(["email", "IP", "API key"]),
    secret=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▒"), min_size=1),
    before=st.text("ab \n"),
    after=st.text("ab \n"),
)
def test_a_filled_mask_keeps_length_and_lines(
    name: str, secret: str, before: str, after: str
) -> None:
    mask = filled_mask(name, "k3f9q", secret)
    assert len(mask) == len(secret)
    assert [i for i, char in enumerate(mask) if char == "\n"] == [
        i for i, char in enumerate(secret) if char == "\n"
    ]
    masked = f"{before}{mask}{after}"
    assert is_masked_copy(masked, f"{before}{secret}{after}")
    assert not is_masked_copy(f"{masked}!", f"{before}{secret}{after}?")
    if "\n" not in secret and not secret.isspace():
        middle = len(before) + len(mask) // 2
        start, end = with_whole_masks(masked, middle, middle + 1)
        assert start <= len(before)
        assert end >= len(before) + len(mask)


async def test_without_its_workspace_a_masked_study_shows_no_trace(study: MaskedStudy) -> None:
    with closing(sqlite3.connect(study.workspace)) as database:
        database.execute("PRAGMA user_version = 9999")
    async with stage(study.file, workspace=study.workspace, settled=False) as on:
        await on.until(lambda: "cannot be shown" in on.text)
        assert_nothing_shown(on.text)


async def test_no_frame_of_the_app_shows_masked_texts(study: MaskedStudy) -> None:
    quote = f"to {EMAIL} now"
    suggest(
        study.workspace,
        study.trace,
        [finding(study.trace, "3.2", 2, 2, quote=quote, why=f"nobody checks {EMAIL}")],
    )
    async with stage(study.file, workspace=study.workspace, settled=False) as on:
        for _ in until(lambda: any(screen.trace is not None for screen in on._annotating)):
            assert_nothing_shown(on.text)
            await run_briefly(on.app)
        await on.press()
        assert "▒email·" in on.row(1)
        assert "▒badge" in on.text or "▒" in on.row(1)
        assert_nothing_shown(on.text)
        await on.press("/", *"alice", "enter")
        assert not len(on.annotate.state.hits)
        await on.press("escape", "]")
        assert "nobody checks ▒email·" in " ".join(on.text.split())
        assert_nothing_shown(on.text)
        await on.press("a")
        (label,) = on.session.labels
        assert label.target.quote is not None
        assert_nothing_shown(label.target.quote)
        assert is_masked_copy(label.target.quote, quote)
        await on.press("M")
        assert_nothing_shown(on.text)


def test_a_quote_is_stored_with_whole_masks(study: MaskedStudy) -> None:
    session = study.session("alice")
    text = study.trace.text(1)
    start = text.index(EMAIL) + 3
    key = study.trace.span(1).key
    part = session.trace.text(1)[start : start + 4]
    target = Target(key, key, quote=part, char_start=start, char_end=start + 4)
    session.toggle_label(SLUGS["3.2"], target, suggestions_on_screen=False)
    (label,) = session.labels
    stored = label.target
    assert (stored.char_start, stored.char_end) == (start - 3, start - 3 + len(EMAIL))
    assert_nothing_shown(stored.quote or "")
    masks = session.trace.masks
    assert masks is not None
    assert_nothing_shown(masking.masked_quote(masks, session.trace, EMAIL[:9], key, None, None))


async def test_adjudication_masks_quotes_made_before_the_masks(study: MaskedStudy) -> None:
    trace = study.trace
    start = trace.text(1).index(EMAIL)
    key = trace.span(1).key
    target = Target(key, key, EMAIL[:9], start, start + 9)
    session = study.session("alice", masked=False)
    session.toggle_label(SLUGS["3.2"], target, suggestions_on_screen=False)
    session.finish(open_modes="absent")
    other = study.session("bob")
    other.mark_read([trace.span(0).key])
    other.finish(open_modes="absent")
    async with stage(study.file, workspace=study.workspace, annotator="carol") as on:
        await on.press("A")
        assert "▒email" in on.text
        assert_nothing_shown(on.text)


async def test_masks_of_a_changed_study_hold_at_once(study: MaskedStudy, cli: Cli) -> None:
    options = ("--annotator", "lead", "--workspace", study.workspace)
    cli.ok("study", "set", "--no-redact", *options)
    async with stage(study.file, workspace=study.workspace) as on:
        assert EMAIL in on.text
        cli.ok("study", "set", "--redact", *options)
        on.app.study_changed()
        for _ in until(lambda: "▒email·" in on.text):
            await on.pilot.pause()
        assert_nothing_shown(on.text)


def test_commands_mask_what_they_read_and_write(
    study: MaskedStudy, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = ("--workspace", study.workspace)
    monkeypatch.setattr("sys.stdin", StringIO("j\n13\nw ▒email\n32\n/alice\nq\n"))
    output = cli.ok("read", study.file, "--annotator", "alice", *work).out
    assert "▒email·" in output
    assert "Not found" in output
    assert_nothing_shown(output)
    page, labels, other = (study.file.with_name(n) for n in ("run.html", "l.jsonl", "other.db"))
    cli.ok("page", study.file, "-o", page, "--annotator", "lead", *work)
    page_text = page.read_text(encoding="utf-8")
    assert_nothing_shown(page_text)
    assert ">[email " in page_text[page_text.index("<mark") :]
    cli.ok("export", "--format", "jsonl", "-o", labels, "--annotator", "lead", *work)
    lines = labels.read_text(encoding="utf-8").splitlines()
    assert_nothing_shown("\n".join(line for line in lines if '"label_added"' in line))
    cli.ok("import", labels, "--format", "jsonl", "--workspace", other)
    shown = cli.ok("study", "show", "--json", "--workspace", other).json
    assert shown["study"]["redact"] is True
    finished = study.session("alice")
    finished.finish(open_modes="absent")
    finished.workspace.close()
    report = study.file.with_name("report.md")
    cli.ok("report", "--markdown", report, "--annotator", "lead", *work)
    assert "nobody checks" in report.read_text(encoding="utf-8")
    assert_nothing_shown(report.read_text(encoding="utf-8"))
    gold = cli.ok("export", "--format", "gold", "-o", "-", "--annotator", "lead", *work).out
    assert "redact_key" not in gold


@pytest.mark.slow
def test_members_of_a_server_see_the_same_masks(postgres: PostgresServer) -> None:
    team = Team(postgres)
    with team.workspace("lea") as lea:
        set_study(lea, "lea", replace(STUDY, redact=True))
    texts = set()
    for name in ("lea", "mira", "carol"):
        with team.workspace(name) as workspace:
            masks = trace_masks(workspace.study(MAST.ref))
        assert masks is not None
        texts.add(masks.text(f"Mail {EMAIL}."))
    (text,) = texts
    assert_nothing_shown(text)
