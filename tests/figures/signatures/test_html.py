"""The report as a page: what stands on it, and that nothing foreign is more than words."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.cli.dispatch import run
from mast_tui.cli.words import split_words
from mast_tui.figures.signatures.model import (
    ABSENT,
    OPEN,
    PRESENT,
    UNSURE,
    ModeInfo,
    Places,
    SignatureInput,
    Whole,
)
from mast_tui.figures.signatures.report import Report, signature_report
from mast_tui.reports.render.svg import standalone_svg
from mast_tui.signatures.figure_set import report_figures
from mast_tui.signatures.html_extras import Extras
from mast_tui.signatures.html_help import decided_modes
from mast_tui.signatures.html_page import report_html
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.samples import samples_folder
from tests.figures.signatures.small_report import (
    HOSTILE,
    PLAIN,
    small_extras,
    small_input,
    small_report,
)

names = st.text(min_size=1, max_size=30)


class Read(HTMLParser):
    """A page taken apart: its elements, the words of each kind of them, and its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.words: dict[str, list[str]] = {}
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in {*self.open}:
            self.words.setdefault(tag, []).append(data)

    def said(self, tag: str = "body") -> str:
        return " ".join("".join(self.words.get(tag, [])).split())


@pytest.fixture(scope="module")
def page() -> str:
    return report_html(small_report(), extras=small_extras())


@pytest.fixture(scope="module")
def read(page: str) -> Read:
    return Read(page)


def test_every_element_is_closed_and_only_one_script_stands_there(read: Read) -> None:
    assert read.open == []
    assert read.tags["script"] == 1
    assert read.tags["img"] == 0
    assert read.tags["link"] == 0


def test_nothing_foreign_is_an_element_an_attribute_or_an_address(read: Read) -> None:
    for tag, name, value in read.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "style", "xlink:href")
        if name == "href":
            assert value.startswith("#")
    assert "window.hacked=3" in read.said("article")
    assert "window.hacked" not in read.said("script")


def test_control_characters_are_to_be_seen(page: str) -> None:
    assert not set(page) & {chr(n) for n in range(0x20) if chr(n) != "\n"}
    assert "\u202e" not in page
    assert "⟨U+202E⟩" in page
    assert "␛" in page


def test_the_policy_lets_only_this_script_run(page: str, read: Read) -> None:
    (policy,) = [v for tag, name, v in read.attributes if name == "content" and "default-src" in v]
    script = page.split("<script>")[1].split("</script>")[0]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy


def test_links_lead_to_places_of_the_page(read: Read) -> None:
    there = [value for _, name, value in read.attributes if name == "id"]
    assert len(there) == len(set(there))
    links = {value for _, name, value in read.attributes if name == "href"}
    assert {link.removeprefix("#") for link in links} <= set(there)
    assert "#example-1" in links


def test_what_helps_stands_in_the_order_of_the_traces_decided(read: Read) -> None:
    group = small_report()["groups"][PLAIN]
    by_labels = decided_modes(group, {"3.1": 2, "1.3": 5})
    assert [one.code for one in by_labels[:2]] == ["1.3", "3.1"]
    assert all(one.showing for one in by_labels)
    by_class = decided_modes(group, None)
    for one in by_class:
        fatal = group["modes"][one.code]["severity"] == "fatal"
        assert one.traces == (one.showing if fatal else 0)
    assert [one.traces for one in by_class] == sorted((o.traces for o in by_class), reverse=True)
    for fix in load_mast().mode("premature_termination").fixes:
        assert " ".join(fix.split()) in read.said()


def test_the_page_says_whose_labels_and_what_it_cannot_say() -> None:
    read = Read(report_html(small_report(outcomes=False, places=False)))
    assert "Labels:" in read.said("p")
    assert "mast@3" in read.said("p")
    assert "No trace is known to have failed" in read.said("ul")
    assert "Examples" not in read.said("h2")


def test_what_a_judge_says_stands_beside_what_is_left_of_it_after_correction() -> None:
    said = {"value": 0.5, "ci": [0.4, 0.6]}
    known = {"n_unlabelled": 120, "apparent": said, "corrected": {"value": 0.31, "ci": [0.2, 0.4]}}
    missing = {"value": None, "undefined": "no_positives"}
    report = signature_report(
        small_input(),
        rounds=0,
        corrected={PLAIN: {"1.1": known, "1.2": {**known, "corrected": missing}}},
    )
    page = report_html(report)
    start = page.index("<table", page.index("Corrected for the judge"))
    table = Read(page[start : page.index("</table>", start)] + "</table>")
    assert "120 50 % 40 to 60 31 % 20 to 40" in " ".join(table.words["td"])
    assert "gold: never present" in table.said("td")
    assert page.count("Corrected for the judge") == 1


def test_a_report_of_nothing_is_a_page_all_the_same() -> None:
    read = Read(report_html(small_report(traces=0), extras=Extras(load_mast())))
    assert read.open == []
    assert read.tags["svg"] == 0
    assert "there is no figure" in read.said("ul")


@st.composite
def any_reports(draw: st.DrawFn) -> Report:
    """Reports on few traces of any kind: open verdicts, unknown outcomes, odd codes and names."""
    traces, codes = draw(st.integers(1, 6)), draw(st.lists(names, min_size=1, unique=True))
    cells = st.sampled_from([OPEN, PRESENT, PRESENT, ABSENT, UNSURE])
    rows = st.lists(cells, min_size=len(codes), max_size=len(codes))
    verdicts = draw(st.lists(rows, min_size=traces, max_size=traces))
    groups = tuple(draw(st.lists(names, min_size=1, max_size=3, unique=True)))
    shown = [(i, j) for i, row in enumerate(verdicts) for j, v in enumerate(row) if v == PRESENT]
    placed = draw(st.lists(st.sampled_from(shown), max_size=8)) if shown else []
    columns = np.array(placed, dtype=np.int64).reshape(-1, 2)
    spots = st.lists(st.integers(0, 9), min_size=len(placed), max_size=len(placed))
    first = np.array(draw(spots), dtype=np.int64)

    def column(values: st.SearchStrategy[int]) -> Whole:
        """A value for each trace."""
        lists = st.lists(values, min_size=traces, max_size=traces)
        return np.array(draw(lists), dtype=np.int64)

    made = SignatureInput(
        taxonomy_ref=draw(st.sampled_from(["mast@3", "<own>@1"])),
        modes=tuple(ModeInfo(f"slug-{i}", code, code * 3, "c") for i, code in enumerate(codes)),
        categories=(("c", draw(names)),),
        by=draw(st.sampled_from(["model", "all"])),
        labels=draw(names),
        labels_kind="human",
        traces=tuple(f"t{i}" for i in range(traces)),
        group_names=groups,
        group=np.array(
            draw(st.lists(st.integers(0, len(groups) - 1), min_size=traces, max_size=traces)),
            dtype=np.int64,
        ),
        outcome=np.array(
            draw(st.lists(st.integers(0, 2), min_size=traces, max_size=traces)), dtype=np.int8
        ),
        score=np.full(traces, np.nan),
        verdicts=np.array(verdicts, dtype=np.uint8),
        spans=np.array(
            draw(st.lists(st.sampled_from([-1, 10]), min_size=traces, max_size=traces)),
            dtype=np.int64,
        ),
        places=Places(columns[:, 0], columns[:, 1], first, first, first > 5),
    )
    pair = (groups[0], groups[1]) if len(groups) > 1 else None
    return signature_report(made, rounds=20, compare=pair)


@given(any_reports())
@settings(max_examples=25)
def test_a_report_that_can_say_little_is_a_sound_page_with_sound_figures(report: Report) -> None:
    read = Read(report_html(report))
    assert read.open == []
    assert "nan" not in {value for _, _, value in read.attributes}
    there = [value for _, name, value in read.attributes if name == "id"]
    assert len(there) == len(set(there))
    for one in report_figures(report):
        ElementTree.fromstring(standalone_svg(one.chart()))


def test_the_same_report_gives_the_same_page(page: str) -> None:
    assert report_html(small_report(), extras=small_extras()) == page
    assert HOSTILE not in page


def test_the_command_writes_the_page_and_figures_of_the_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--workspace", str(tmp_path / "workspace.db")]
    samples = str(samples_folder() / "workspace.jsonl")
    assert run(split_words([*place, "import", samples, "--format", "jsonl"])) == 0
    capsys.readouterr()
    html, folder = tmp_path / "report.html", tmp_path / "figures"
    words = ["report", "--by", "all", "--rounds", "50", "--html", str(html)]
    assert run(split_words([*place, *words, "--figures", str(folder)])) == 0
    said = capsys.readouterr().out
    assert str(html) in said
    read = Read(html.read_text("utf-8"))
    assert read.tags["svg"] == len(list(folder.glob("*.svg"))) > 4
    assert "decided" in read.said("ol")
    assert read.tags["blockquote"] > 0
    assert run(split_words([*place, *words[:-1], str(tmp_path / "none" / "report.html")])) == 1
    assert "no such folder" in capsys.readouterr().err
