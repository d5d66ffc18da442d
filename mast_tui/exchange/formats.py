"""The record of a format of labels, and the requests to read and to write labels.

The table of all formats is ``mast_tui/exchange/registry.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mast_tui.exchange.import_batch import Incoming
    from mast_tui.gold import GoldKind
    from mast_tui.labels import Which
    from mast_tui.output_files import Outputs
    from mast_tui.parallel import Workers
    from mast_tui.redaction.masked_trace import Masks
    from mast_tui.session import Viewer
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.registers.pseudonyms import Pseudonyms

Counts = dict[str, Any]
"""The numbers of traces, labels and so on in an export, under the names that ``--json`` prints."""

Reporter = Callable[[str], None]


class FormatContent(Enum):
    """The content of a format, on which its options depend."""

    LABELS = auto()
    """The labels, with their places in the trace, and the verdicts of any annotators."""
    VERDICTS = auto()
    """The verdicts of any annotators, for which the order of spans does not matter."""
    GOLD = auto()
    """The gold with its sides, its protocol and its figures."""
    CODEBOOK = auto()
    """The modes of a taxonomy with guidelines and cases, without labels."""
    WORKSPACE = auto()
    """A whole workspace. Export and import of it have functions of their own, because it is
    merged event by event: ``exporters.files.add_workspace`` and ``jsonl.read_jsonl``."""


@dataclass(frozen=True, slots=True)
class Format:
    """A file format in which labels are exported or imported.

    Attributes:
        title: A description of the contents.
        file_name: The suggested name of an export. Without a suffix it is the name of a folder.
        companion: The ending of the second file that an export writes; empty for no such file.
        reads: The importer, None if there is none.
        writes: The exporter, None if there is none.
        first_passes: True if an export usually holds finished first passes.
        uses_workers: True if the importer can read files in several processes.
        holds_texts: True if an export holds the texts of traces.
    """

    name: str
    title: str
    content: FormatContent
    file_name: str = ""
    companion: str = ""
    reads: Callable[[ImportRequest], Incoming] | None = None
    writes: Callable[[ExportRequest, Outputs], Counts] | None = None
    first_passes: bool = False
    uses_workers: bool = False
    holds_texts: bool = False

    @property
    def can_be_imported(self) -> bool:
        """True if ``import`` accepts the format."""
        return self.reads is not None or self.is_workspace

    @property
    def can_be_exported(self) -> bool:
        """True if ``export`` offers the format."""
        return self.writes is not None or self.is_workspace

    @property
    def is_workspace(self) -> bool:
        """True if a file holds a whole workspace."""
        return self.content is FormatContent.WORKSPACE

    @property
    def is_folder(self) -> bool:
        """True if an export is a folder of files."""
        return not Path(self.file_name).suffix

    def companion_path(self, output: Path, ending: str) -> Path:
        """Return the path of a second file that is written beside an export.

        Args:
            output: The path of the export.
            ending: The ending of the second file.
        """
        # Exports named gold.v1 and gold.v2 would share a second file gold.ENDING.
        is_usual = output.suffix == Path(self.file_name).suffix
        return output.with_name(f"{output.stem if is_usual else output.name}.{ending}")

    @property
    def usual_pass(self) -> Which:
        """The pass that an export holds unless another one is requested."""
        return "first" if self.first_passes else "last"


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The files of an import, and what their importer may need to know.

    ``taxonomy`` is that of rows without one. ``annotator`` names the one author of all rows.
    ``judges_finished`` declares that each judge in a table looked for all modes in each of its
    traces. ``workers`` read several files at once.
    """

    files: Sequence[Path]
    workspace: Workspace
    taxonomy: Taxonomy
    annotator: str | None = None
    judges_finished: bool = False
    workers: Workers | None = None

    @property
    def known_taxonomies(self) -> dict[str, Taxonomy]:
        """The taxonomies of the workspace by ``id@version``."""
        return {taxonomy.ref: taxonomy for taxonomy in self.workspace.taxonomies()}


def _discard_message(_text: str) -> None:
    """Discard a message."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """An export of labels under one taxonomy, its destination, and the viewer who asks for it.

    ``labels`` selects the author: ``gold``, ``all`` or a name; None: the gold. ``which`` is the
    pass, None: the usual one of the format. ``annotators`` are the sides of the gold, None: all
    people. With ``allow_unordered`` gold is written although the order of labelled spans is
    unknown. ``masks`` hide personal data and secrets, None: nothing is hidden. ``say`` receives
    remarks for the user, ``stage`` the current step of the work; it may raise an error to stop.
    """

    workspace: Workspace
    taxonomy: Taxonomy
    viewer: Viewer
    format: Format
    output: Path
    labels: str | None = None
    which: Which | None = None
    annotators: Sequence[str] | None = None
    majority: bool = False
    gold: GoldKind | None = None
    datasheet: Path | None = None
    pseudonyms: Pseudonyms | None = None
    masks: Masks | None = None
    allow_unordered: bool = False
    say: Reporter = _discard_message
    stage: Reporter = _discard_message

    @property
    def counted_pass(self) -> Which:
        """The pass that is exported."""
        return self.format.usual_pass if self.which is None else self.which
