"""Pages and exports with masks: no secrets, and labels on the same spans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mast_tui.taxonomy
from mast_tui.exchange.registry import EXPORT_FORMATS
from tests.cli.conftest import Cli

MAIL = "ada.lovelace@example.org"
CARD = "4111 1111 1111 1111"
HEADING = (
    "trace_id,annotator,mode,value,span_first,span_last,quote,char_start,char_end,severity,note\n"
)


@pytest.fixture
def labelled(tmp_path: Path, cli: Cli) -> Path:
    """A trace with secrets, and labels of two annotators with secrets in quotes and notes."""
    messages = [
        {"role": "user", "content": f"Refund {MAIL}, card {CARD}, and tell me when it is done."},
        {"role": "assistant", "content": f"I have asked {MAIL} for it."},
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(messages), "utf-8")
    listed = cli.json("inspect", path, "--spans")
    (trace,) = listed["files"][0]["traces"]
    keys = [span["key"] for span in trace["span_list"]]
    text = messages[0]["content"]
    quotes = (f"{MAIL}, card", "lovelace@example", "tell me when")
    rows = []
    for name in ("mira", "tomas"):
        for mode, quote in zip(("1.1", "1.2", "1.3"), quotes, strict=True):
            start = text.index(quote)
            target = f'{keys[0]},{keys[0]},"{quote}",{start},{start + len(quote)},fatal'
            rows.append(f'{trace["id"]},{name},{mode},present,{target},"ask {MAIL}"')
        place = f'{keys[name == "mira"]},{keys[name == "mira"]},"lovelace@example"'
        rows.append(f"{trace['id']},{name},2.3,present,{place},,,,")
        rows.append(f"{trace['id']},{name},,note,{keys[1]},,,,,,{CARD}")
        rows.append(f"{trace['id']},{name},,finished,,,,,,,")
    (tmp_path / "labels.csv").write_text(HEADING + "\n".join(rows) + "\n", "utf-8")
    cli.ok("judge", path, "--judge", "rules", "--quiet")
    cli.ok("import", "labels.csv", "--format", "csv-long", "--allow-new")
    return path


def check_no_secrets(text: str) -> None:
    for part in (MAIL, "lovelace", CARD, "1111 1111"):
        assert part not in text


@pytest.mark.parametrize("is_moved", [False, True])
def test_quotes_without_offsets_have_no_part_of_a_secret(
    cli: Cli, tmp_path: Path, labelled: Path, is_moved: bool
) -> None:
    (row,) = cli.json("inspect", labelled, "--spans")["files"][0]["traces"]
    key = row["span_list"][0]["key"]
    quotes = ("lovelace@example.org, card", "1111 1111", "tell me when")
    rows = [
        f'{row["id"]},ann,{mode},present,{key},{key},"{quote}",,,fatal,'
        for mode, quote in zip(("1.1", "1.2", "1.3"), quotes, strict=True)
    ]
    (tmp_path / "more.csv").write_text(HEADING + "\n".join(rows) + "\n", "utf-8")
    if is_moved:
        labelled.rename(tmp_path / "elsewhere.txt")
    cli.ok("import", "more.csv", "--format", "csv-long", "--allow-new")
    target = tmp_path / "out.csv"
    export = ("export", "--format", "csv-long", "--labels", "ann", "-o", target, "--redact")
    cli.ok(*export)
    text = target.read_text("utf-8")
    check_no_secrets(text)
    # A quote stays if the text of the trace is available and shows no secret in it.
    assert ("tell me when" in text) is not is_moved


def test_no_secret_is_left_in_any_export(cli: Cli, tmp_path: Path, labelled: Path) -> None:
    codebook = Path(mast_tui.taxonomy.__file__).with_name("mast.toml").read_text("utf-8")
    codebook = codebook.replace('id = "mast"', 'id = "own"')
    codebook = codebook.replace('difference = "', f'difference = "{MAIL} ')
    own = tmp_path / "own.toml"
    own.write_text(codebook.replace('definition = """', f'definition = """{MAIL} '), "utf-8")
    cli.ok("import", "labels.csv", "--format", "csv-long", "--taxonomy", own)
    for file_format in (name for name in EXPORT_FORMATS if name != "jsonl"):
        target = tmp_path / file_format
        target.mkdir()
        output = target if file_format == "huggingface" else target / "out.json"
        options: list[object] = ["--format", file_format, "-o", output, "--redact"]
        options += ["--taxonomy", own]
        if file_format not in ("gold", "huggingface", "codebook"):
            options += ["--labels", "all"]
        cli.ok("export", *options)
        files = [file for file in target.rglob("*") if file.is_file()]
        assert files
        check_no_secrets("".join(file.read_text("utf-8") for file in files))


def test_quotes_without_a_secret_keep_their_offsets(cli: Cli, labelled: Path) -> None:
    plain = cli.rows(labels="mira")
    masked = cli.rows("--redact", labels="mira")
    for original, redacted in zip(plain, masked, strict=True):
        if original["quote"] == "tell me when":
            assert redacted["quote"] == original["quote"]
            assert redacted["char_start"] == original["char_start"]
        elif original["quote"]:
            assert redacted["quote"].startswith(("[email ", "[quote]"))
            assert redacted["char_start"] == ""
    cli.ok("judge", labelled, "--judge", "rules", "--quiet", "--workspace", "w.db")
    cli.ok("import", "exported", "--format", "csv-long", "--workspace", "w.db", "--allow-new")


def test_a_page_shows_masks_and_highlights_quotes_in_them(cli: Cli, labelled: Path) -> None:
    for name in ("run.html", "run.md"):
        options = ["--markdown"] if name.endswith("md") else []
        cli.ok("page", labelled, "-o", name, "--redact", *options)
        content = Path(name).read_text("utf-8")
        check_no_secrets(content)
        assert "[email " in content
    page = Path("run.html").read_text("utf-8")
    assert ">tell me when</mark>" in page
    cli.ok("convert", labelled, "-o", "run.jsonl", "--redact")
    converted = Path("run.jsonl").read_text("utf-8")
    assert converted[converted.index("[email ") :].partition("]")[0] in page
    cli.ok("import", "run.html", "--format", "page", "--workspace", "w.db")


def test_matches_of_the_users_patterns_are_masked(cli: Cli, labelled: Path) -> None:
    Path("patterns.txt").write_text("verb = Refund\n", "utf-8")
    options = ("page", labelled, "-o", "run.html", "--redact-file", "patterns.txt")
    cli.ok(*options)
    content = Path("run.html").read_text("utf-8")
    assert "[verb " in content
    assert MAIL in content
    cli.ok(*options, "--redact")
    check_no_secrets(Path("run.html").read_text("utf-8"))
