"""What a parser of lines remembers of those it has read, so that another process can go on."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mast_tui.traces.index.lines import LineParser
    from mast_tui.traces.index.span_table import SpanTable

_TABLE: Final = "table"
_OURS: Final = "mast_tui.traces."


def state_of(parser: LineParser) -> bytes:
    """All of a parser but its table."""
    table = parser.table
    found = io.BytesIO()

    class WithoutTable(pickle.Pickler):
        def persistent_id(self, value: object, /) -> str | None:
            return _TABLE if value is table else None

    WithoutTable(found, protocol=5).dump(parser)
    return found.getvalue()


def parser_in(state: bytes, table: SpanTable) -> LineParser:
    """The parser whose state it is, at work on another table.

    Raises:
        pickle.UnpicklingError: The state names something that is no part of a parser.
    """

    class WithTable(pickle.Unpickler):
        def persistent_load(self, _name: str, /) -> SpanTable:
            return table

        def find_class(self, module: str, name: str, /) -> Any:
            if (module, name) == ("collections", "OrderedDict"):
                return OrderedDict
            if module.startswith(_OURS) and "." not in name:
                found = super().find_class(module, name)
                # What a module of ours has only imported is no part of a parser.
                if isinstance(found, type) and found.__module__ == module:
                    return found
            raise pickle.UnpicklingError(f"no part of a parser: {module}.{name}")

    parser: LineParser = WithTable(io.BytesIO(state)).load()
    return parser
