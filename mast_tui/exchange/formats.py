"""The record of a format of labels, and the requests of imports and exports.

All formats are in ``mast_tui/exchange/registry.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mast_tui.taxonomy.loader import load_mast

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
"""The counts of an export, such as traces and labels, by their name in ``--json``."""

Reporter = Callable[[str], None]


class FormatContent(Enum):
    """The content of a format."""

    LABELS = auto()
    """Labels with their positions, and verdicts."""
    VERDICTS = auto()
    """Verdicts. The order of spans does not matter."""
    GOLD = auto()
    """The gold with its sides, protocol and figures."""
    CODEBOOK = auto()
    """The modes of a taxonomy with guidelines and cases, without labels."""
    WORKSPACE = auto()
    """A whole workspace. It is merged event by event, so it has functions of its own:
    ``exporters.files.add_workspace`` and ``jsonl.read_jsonl``."""


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of labels.

    Attributes:
        title: The description of the contents.
        file_name: The suggested name of an export. A name without a suffix is a folder.
        companion: The end of the second file's name; empty for no such file.
        reads: The importer; None if there is none.
        writes: The exporter; None if there is none.
        first_passes: True if an export has finished first passes by default.
        uses_workers: True if the importer can read files in several processes.
        holds_texts: True if an export has the texts of traces.
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
        """Return the path of a second file beside an export.

        Args:
            output: The path of the export.
            ending: The end of the second file's name.
        """
        # Exports named gold.v1 and gold.v2 would share a second file gold.ENDING.
        is_usual = output.suffix == Path(self.file_name).suffix
        return output.with_name(f"{output.stem if is_usual else output.name}.{ending}")

    @property
    def usual_pass(self) -> Which:
        """The default pass of an export."""
        return "first" if self.first_passes else "last"


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The files and options of an import.

    ``taxonomy`` is for rows without a taxonomy. ``annotator`` is the author of all rows. With
    ``judges_finished``, judges have looked for all modes in all traces of their tables.
    """

    files: Sequence[Path]
    workspace: Workspace
    taxonomy: Taxonomy
    annotator: str | None = None
    judges_finished: bool = False
    workers: Workers | None = None

    @property
    def known_taxonomies(self) -> dict[str, Taxonomy]:
        """MAST and the taxonomies of the workspace by ``id@version``."""
        taxonomies = (load_mast(), *self.workspace.taxonomies())
        return {taxonomy.ref: taxonomy for taxonomy in taxonomies}


def _discard_message(_text: str) -> None:
    """Ignore a message."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """An export of labels under one taxonomy.

    ``labels`` is ``gold``, ``all`` or a name; None for gold. ``which`` is the pass; None for the
    format's default. ``annotators`` are the sides of the gold; None for all people.
    ``allow_unordered`` permits gold with spans in unknown order. ``say`` receives messages, and
    ``stage`` the current step. ``stage`` may raise an error to stop the export.
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
        """The pass to export."""
        return self.format.usual_pass if self.which is None else self.which
