"""Open coding: the notes in all traces on failures that no mode describes.

An open code is a label of the mode for such failures (``OPEN_CODE_SLUG``), or a note on a span.
Open codes are grouped by their first tag (``#name`` in the text, or added later), else by the
proposal of a model, else by similar words. A group may become a mode of the next codebook.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from rapidfuzz import fuzz, process

from mast_tui.counts import counted
from mast_tui.errors import SessionError
from mast_tui.grouping import values_by_key
from mast_tui.labels import Label, Pass, SpanNote, Target, is_judge
from mast_tui.session.progress import by_trace, retests_of
from mast_tui.taxonomy.model import OPEN_CODE_SLUG, Taxonomy
from mast_tui.workspace import Workspace
from mast_tui.workspace.registers.tags import TaggedPlace, all_tags, keep_tags, tags_by

ALIKE: Final = 60.0
"""The least similarity, from 0 to 100, of texts in one group."""

NO_WORDS: Final = "no note yet"
"""The name of the group of labels without a text."""

_TAG: Final = re.compile(r"(?<![\w#])#([^\W\d_][\w-]*)")
_WORD: Final = re.compile(r"\w+")
_STEM: Final = 5
"""The number of first letters by which words are compared: ``ignored`` equals ``ignores``."""

_STOP_WORDS: Final = frozenset(
    word
    for line in (
        "a about after again all also an and any are as at be because been before but by can did",
        "do does for from had has have here how i if in into is it its just more no not of on or",
        "so than that the their them then there these they this to too was were what when where",
        "which while who why will with without",
    )
    for word in line.split()
)


@dataclass(frozen=True, slots=True)
class OpenCode:
    """The text of a label of the mode of open codes, or of a note on a span."""

    annotator: str
    trace_id: str
    target: Target
    text: str
    is_label: bool
    added_tags: tuple[str, ...] = ()
    """The tags that were added later, by any annotator."""

    @property
    def identity(self) -> TaggedPlace:
        """The fields that identify the code in every pass."""
        return self.annotator, self.trace_id, self.target, self.is_label

    @property
    def tags(self) -> tuple[str, ...]:
        """The added tags, then the tags in the text, in lower case; ``#13`` is no tag."""
        written = (tag.casefold() for tag in _TAG.findall(self.text))
        return tuple(dict.fromkeys((*self.added_tags, *written)))

    @property
    def tagged_text(self) -> str:
        """The text, followed by the added tags."""
        return " ".join((self.text, *(f"#{tag}" for tag in self.added_tags))).strip()

    @property
    def untagged_text(self) -> str:
        """The text without tags, on one line."""
        return " ".join(_TAG.sub(" ", self.text).split())


@dataclass(frozen=True, slots=True)
class CodeGroup:
    """Open codes about the same failure, in the order of their traces."""

    name: str
    codes: tuple[OpenCode, ...]
    tag: str | None = None

    @property
    def traces(self) -> int:
        """The number of traces with a code of the group."""
        return len({code.trace_id for code in self.codes})


@dataclass(frozen=True, slots=True)
class CodedTrace:
    """A finished trace, with its number of kinds of failure and the kinds that were new in it.

    A kind is a mode (by slug) or a group of open codes (by name).
    """

    trace_id: str
    kinds: int
    new: tuple[str, ...]


LAST_TRACES: Final = 10
"""The number of last traces whose new kinds of failure are counted."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """The kinds of failure that were new in each trace, in the order of coding."""

    traces: tuple[CodedTrace, ...]

    @property
    def summary(self) -> str:
        """The number of different failures, and how many of them the last traces added."""
        trace_count = len(self.traces)
        text = (
            f"{counted(self.kinds, 'different failure')} (modes and groups of notes) in "
            f"{counted(trace_count, 'trace')}"
        )
        if self.since_last_new:
            quiet_text = counted(self.since_last_new, "trace").removeprefix("1 ")
            return f"{text}; no new failure in the last {quiet_text}"
        if trace_count > LAST_TRACES:
            return f"{text}; {self.new_in_last(LAST_TRACES)} new in the last {LAST_TRACES} traces"
        return text

    @property
    def kinds(self) -> int:
        """The number of all kinds."""
        return sum(len(trace.new) for trace in self.traces)

    @property
    def since_last_new(self) -> int:
        """The number of traces after the last one with a new kind of failure."""
        from_last = enumerate(reversed(self.traces))
        return next((count for count, trace in from_last if trace.new), len(self.traces))

    def new_in_last(self, count: int) -> int:
        """Count the kinds that were new in the last ``count`` traces."""
        return sum(len(trace.new) for trace in self.traces[-count:])


@dataclass(frozen=True, slots=True)
class OpenCoding:
    """All open codes that an annotator may see, in groups, the largest group first."""

    groups: tuple[CodeGroup, ...]
    saturation: Saturation
    revealed_traces: frozenset[str] = frozenset()
    """The traces with a visible open code of another annotator."""
    model: str | None = None
    """The model that proposed groups; None if codes are grouped by words."""

    @property
    def codes(self) -> tuple[OpenCode, ...]:
        """The open codes of all groups."""
        return tuple(code for group in self.groups for code in group.codes)

    @property
    def texts_to_group(self) -> tuple[str, ...]:
        """The different texts of open codes without a tag, for a model to group."""
        texts = (
            code.untagged_text for group in self.groups if group.tag is None for code in group.codes
        )
        return tuple(dict.fromkeys(text for text in texts if text))

    def matching(self, query: str) -> OpenCoding:
        """Select the open codes that contain all words of a query, in any case."""
        terms = query.casefold().split()
        return self.keeping(lambda code: all(term in code.tagged_text.casefold() for term in terms))

    def keeping(self, condition: Callable[[OpenCode], bool]) -> OpenCoding:
        """Select the open codes that meet a condition, in their groups."""
        filtered = (
            replace(group, codes=tuple(filter(condition, group.codes))) for group in self.groups
        )
        return replace(self, groups=tuple(group for group in filtered if group.codes))


_Row = TypeVar("_Row", Label, SpanNote, Pass)


def open_coding(
    workspace: Workspace,
    taxonomy: Taxonomy,
    reader: str | None,
    visible_traces: Collection[str] | None,
) -> OpenCoding:
    """Group the open codes that an annotator may see, and compute the saturation of the groups.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels and notes.
        reader: The annotator who asks, or None. The reader's own codes are included, except on
            traces that the reader must label again.
        visible_traces: The traces on which the reader may see others' codes; None for all.
    """
    ref = taxonomy.ref
    may_see = _visibility_test(workspace, ref, reader, visible_traces)

    def visible(rows: Iterable[_Row]) -> list[_Row]:
        return [row for row in rows if may_see(row.annotator, row.trace_id)]

    labels = visible(workspace.labels(taxonomy=ref))
    notes = visible(workspace.span_notes(taxonomy=ref))
    passes = visible(workspace.passes(taxonomy=ref))
    # Adjudications and retests are left out.
    labelling_passes = [trace_pass for trace_pass in passes if trace_pass.kind.is_labelling]
    added_tags = _added_tags(workspace, taxonomy.id, may_see)
    codes = _codes_in_order(labels, notes, added_tags, _traces_in_coding_order(labelling_passes))
    proposal = _proposed_groups(workspace, _groups_setting(ref, reader, visible_traces))
    groups = grouped(codes, proposal.groups)
    modes_by_trace = values_by_key(
        (label.trace_id, label.mode) for label in labels if label.mode != OPEN_CODE_SLUG
    )
    finished_traces = _traces_in_coding_order(
        trace_pass for trace_pass in labelling_passes if trace_pass.finished
    )
    return OpenCoding(
        groups,
        saturation(finished_traces, groups, modes_by_trace),
        frozenset(code.trace_id for code in codes if code.annotator != reader),
        proposal.model,
    )


def _visibility_test(
    workspace: Workspace,
    taxonomy: str,
    reader: str | None,
    visible_traces: Collection[str] | None,
) -> Callable[[str, str], bool]:
    """Return a function that tells whether the reader may see an annotator's codes on a trace."""
    retests = frozenset[str]()
    if reader is not None:
        passes_by_trace = by_trace(workspace.passes(annotator=reader, taxonomy=taxonomy))
        retests = retests_of(workspace.study(taxonomy), reader, passes_by_trace).current

    def may_see(annotator: str, trace_id: str) -> bool:
        if is_judge(annotator):
            return False
        if annotator == reader:
            return trace_id not in retests
        return visible_traces is None or trace_id in visible_traces

    return may_see


def _codes_in_order(
    labels: Iterable[Label],
    notes: Iterable[SpanNote],
    added_tags: Mapping[TaggedPlace, tuple[str, ...]],
    traces_in_order: Sequence[str],
) -> list[OpenCode]:
    """Return open codes with their added tags, in the order of their traces."""
    codes = [
        replace(code, added_tags=added_tags.get(code.identity, ()))
        for code in _open_codes(labels, notes)
    ]
    positions = {trace_id: number for number, trace_id in enumerate(traces_in_order)}
    return sorted(codes, key=lambda code: positions.get(code.trace_id, len(positions)))


def _open_codes(labels: Iterable[Label], notes: Iterable[SpanNote]) -> Iterator[OpenCode]:
    """Yield the open codes, first those of labels and then those of notes, without added tags."""
    for label in labels:
        if label.mode == OPEN_CODE_SLUG:
            yield OpenCode(label.annotator, label.trace_id, label.target, label.note, is_label=True)
    for note in notes:
        target = Target(note.key, note.key)
        yield OpenCode(note.annotator, note.trace_id, target, note.text, is_label=False)


def _groups_setting(
    taxonomy: str, reader: str | None, visible_traces: Collection[str] | None
) -> str:
    """Return the name of the setting that stores the proposed groups for a reader."""
    # The name of a group may quote any text that the model has read. If some traces are hidden from
    # a reader, the reader's groups are made from the visible traces only.
    owner = "" if visible_traces is None or reader is None else reader
    return f"open_codes.groups:{taxonomy}:{owner}"


@dataclass(frozen=True, slots=True)
class _ProposedGroups:
    """The groups that a model has proposed: the name of the group for each text."""

    model: str | None
    groups: Mapping[str, str]


def _proposed_groups(workspace: Workspace, setting: str) -> _ProposedGroups:
    """Read the proposed groups from a setting; empty if no model proposed any."""
    stored = workspace.get_setting(setting)
    proposal = json.loads(stored) if stored else {"model": None, "groups": {}}
    return _ProposedGroups(proposal["model"], proposal["groups"])


def keep_groups(
    workspace: Workspace,
    taxonomy: str,
    reader: str | None,
    visible_traces: Collection[str] | None,
    model: str | None,
    groups: Mapping[str, str],
) -> None:
    """Store the groups that a model has proposed for a reader.

    Args:
        workspace: The workspace.
        taxonomy: The ref of the taxonomy.
        reader: The annotator who looks at the codes, or None.
        visible_traces: The traces on which the reader may see others' codes; None for all.
        model: The name of the model; None to group by words again.
        groups: The name of the group by text.
    """
    proposal = json.dumps({"model": model, "groups": dict(groups)}, ensure_ascii=False)
    workspace.set_setting(_groups_setting(taxonomy, reader, visible_traces), proposal)


def toggle_tag(
    workspace: Workspace, taxonomy: str, annotator: str, codes: Iterable[OpenCode], tag: str
) -> bool:
    """Add a tag to open codes, or remove it if the annotator has added it to all of them.

    Args:
        workspace: The workspace.
        taxonomy: The id of the taxonomy; tags stay from version to version.
        annotator: The annotator who tags.
        codes: The open codes, by any annotator.
        tag: The tag, with or without ``#``.

    Returns:
        True if the codes have the tag now.

    Raises:
        SessionError: The text cannot be a tag.
    """
    tag = checked_tag(tag)
    tags_by_code = dict(tags_by(workspace, taxonomy, annotator))
    identities = [code.identity for code in codes]
    is_added = not all(tag in tags_by_code.get(identity, ()) for identity in identities)
    for identity in identities:
        other_tags = tuple(other for other in tags_by_code.get(identity, ()) if other != tag)
        tags_by_code[identity] = (*other_tags, tag) if is_added else other_tags
    keep_tags(workspace, taxonomy, annotator, tags_by_code)
    return is_added


def checked_tag(text: str) -> str:
    """Return a tag in lower case and without ``#``.

    Raises:
        SessionError: The text cannot be a tag.
    """
    match = _TAG.fullmatch(f"#{text.strip().removeprefix('#')}")
    if match is None:
        raise SessionError("a tag is one word that begins with a letter, such as #retry")
    return match[1].casefold()


def _added_tags(
    workspace: Workspace, taxonomy: str, may_see: Callable[[str, str], bool]
) -> Mapping[TaggedPlace, tuple[str, ...]]:
    """Return the added tags of each open code.

    ``may_see`` tells whether the tags of an annotator on a trace may be shown.
    """
    added_tags: dict[TaggedPlace, tuple[str, ...]] = {}
    for _, annotator, tags_of_places in all_tags(workspace, [taxonomy]):
        for tagged_place, tags in tags_of_places.items():
            _, trace_id, _, _ = tagged_place
            if may_see(annotator, trace_id):
                previous_tags = added_tags.get(tagged_place, ())
                added_tags[tagged_place] = tuple(dict.fromkeys((*previous_tags, *tags)))
    return added_tags


def _traces_in_coding_order(passes: Iterable[Pass]) -> list[str]:
    """Return the ids of the traces of passes, sorted by the start of the first pass."""
    start_times: dict[str, str] = {}
    for trace_pass in passes:
        earliest = start_times.get(trace_pass.trace_id, trace_pass.started_at)
        start_times[trace_pass.trace_id] = min(trace_pass.started_at, earliest)
    return sorted(start_times, key=lambda trace_id: (start_times[trace_id], trace_id))


def grouped(
    codes: Sequence[OpenCode], proposed: Mapping[str, str] = MappingProxyType({})
) -> tuple[CodeGroup, ...]:
    """Group open codes about the same failure, the largest group first.

    - A code with tags is in the group of its first tag.
    - A code without tags is in the proposed group of its text, if there is one.
    - Each other code joins the group with the highest mean similarity, or begins a group. Codes are
      added in order, so that later codes never move earlier codes.

    Args:
        codes: The open codes in the order of coding.
        proposed: The name of the proposed group of each text.
    """
    codes_by_tag: dict[str, list[OpenCode]] = defaultdict(list)
    codes_by_name: dict[str, list[OpenCode]] = defaultdict(list)
    ungrouped_codes: list[OpenCode] = []
    for code in codes:
        if code.tags:
            codes_by_tag[code.tags[0]].append(code)
        elif code.untagged_text in proposed:
            codes_by_name[proposed[code.untagged_text]].append(code)
        else:
            ungrouped_codes.append(code)
    groups = [CodeGroup(f"#{tag}", tuple(members), tag) for tag, members in codes_by_tag.items()]
    for group in _groups_by_words(ungrouped_codes):
        codes_by_name[group.name] += group.codes
    groups += [CodeGroup(name, tuple(members)) for name, members in codes_by_name.items()]
    return tuple(sorted(groups, key=lambda group: -len(group.codes)))


def _groups_by_words(codes: Sequence[OpenCode]) -> list[CodeGroup]:
    """Group codes with similar words; the shortest text is the name of the group.

    Codes without words form the last group.
    """
    texts: list[str] = []
    group_of_text: list[int] = []
    groups: list[list[OpenCode]] = []
    for code in codes:
        if not code.untagged_text:
            continue
        text = _stemmed_text(code.untagged_text)
        group_number = _most_similar_group(text, texts, group_of_text)
        if group_number is None:
            group_number = len(groups)
            groups.append([])
        groups[group_number].append(code)
        texts.append(text)
        group_of_text.append(group_number)
    named_groups = [
        CodeGroup(min((code.untagged_text for code in group), key=len), tuple(group))
        for group in groups
    ]
    wordless = tuple(code for code in codes if not code.untagged_text)
    return [*named_groups, CodeGroup(NO_WORDS, wordless)] if wordless else named_groups


def _most_similar_group(
    text: str, texts: Sequence[str], group_of_text: Sequence[int]
) -> int | None:
    """Return the number of the group with the highest mean similarity; None if all are too low.

    ``group_of_text`` has the number of the group for each of ``texts``.
    """
    totals: dict[int, float] = defaultdict(float)
    for text_index, score in _text_similarities(text, texts):
        totals[group_of_text[text_index]] += score
    means = {group: totals[group] / size for group, size in Counter(group_of_text).items()}
    best_group = max(means, key=means.__getitem__, default=None)
    return best_group if best_group is not None and means[best_group] >= ALIKE else None


def _stemmed_text(text: str) -> str:
    """Return the stems of a text's words, each once; stop words only if there are no others."""
    all_words = _WORD.findall(text.casefold())
    content_words = [word for word in all_words if word not in _STOP_WORDS] or all_words
    return " ".join(dict.fromkeys(word[:_STEM] for word in content_words))


def _text_similarities(text: str, texts: Sequence[str]) -> list[tuple[int, float]]:
    """Return the index of each of ``texts`` and its similarity to ``text``, from 0 to 100.

    The similarity is the mean of two scores: one compares all words, the other is 100 if one text
    contains all words of the other.
    """
    all_word_scores = process.extract(text, texts, scorer=fuzz.token_sort_ratio, limit=None)
    subset_scores = {
        index: score
        for _, score, index in process.extract(text, texts, scorer=fuzz.token_set_ratio, limit=None)
    }
    return [(index, (score + subset_scores[index]) / 2) for _, score, index in all_word_scores]


def saturation(
    finished: Sequence[str], groups: Iterable[CodeGroup], modes: Mapping[str, Collection[str]]
) -> Saturation:
    """Find the kinds of failure in each trace that no earlier trace had.

    The method is from Guest, Namey and Chen, "A simple method to assess and report thematic
    saturation in qualitative research", PLoS ONE 15(5), 2020.

    Args:
        finished: The ids of the finished traces, in the order of coding.
        groups: The groups of open codes; labels without a text are no kind.
        modes: The slugs of the modes that were labelled, by trace id.
    """
    kinds_by_trace: dict[str, dict[str, None]] = {
        trace_id: dict.fromkeys(sorted(modes.get(trace_id, ()))) for trace_id in finished
    }
    for group in groups:
        if group.name == NO_WORDS and group.tag is None:
            continue
        for code in group.codes:
            if code.trace_id in kinds_by_trace:
                kinds_by_trace[code.trace_id][group.name] = None
    known_kinds: set[str] = set()
    coded_traces = []
    for trace_id, kinds in kinds_by_trace.items():
        new_kinds = tuple(kind for kind in kinds if kind not in known_kinds)
        coded_traces.append(CodedTrace(trace_id, len(kinds), new_kinds))
        known_kinds.update(kinds)
    return Saturation(tuple(coded_traces))
