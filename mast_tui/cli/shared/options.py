"""Requests of commands: dataclasses whose fields are the options, and rules that combine options.

A command declares its options as the fields of a frozen dataclass, and receives an instance of it:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class CountRequest:
        paths: tuple[Path, ...] = options.paths(required=True)
        most: int | None = options.option("--max", type=click.IntRange(1), help="…")
        as_json: bool = options.as_json()

    @click.command()
    @options.takes(CountRequest)
    def count_command(request: CountRequest) -> int: ...

The functions of this module also declare the options that several commands share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import click
from click.core import ParameterSource

from mast_tui.cli.command_line import CommonOptions
from mast_tui.output_files import is_stdout
from mast_tui.traces.file_places import missing_file_text
from mast_tui.traces.io.named_paths import file_or_record, paths_of
from mast_tui.traces.io.remote import is_url, trace_path

Request = TypeVar("Request")
Result = TypeVar("Result")
AddParameter = Callable[[Callable[..., Any]], Callable[..., Any]]

_DECLARED: Final = "mast_tui.cli"
"""The metadata key of a field's declaration."""

_RULES: Final = "option_rules"
"""The attribute of a command's function with its option rules."""


@dataclass(frozen=True, slots=True)
class _Declaration:
    """An option or argument of a command.

    Its name is that of its field.
    """

    add: Callable[..., AddParameter]
    flags: tuple[str, ...]
    settings: Mapping[str, Any]

    def parameters(self, name: str) -> Iterator[AddParameter]:
        yield self.add(*self.flags, name, **self.settings)

    def value(self, name: str, values: dict[str, Any]) -> Any:
        return values.pop(name)

    @property
    def exposed(self) -> bool:
        """True if click passes the value on."""
        return bool(self.settings.get("expose_value", True))

    @property
    def default(self) -> Any:
        if self.settings.get("multiple") or self.settings.get("nargs") == -1:
            return ()
        return self.settings.get("default", False if self.settings.get("is_flag") else None)


@dataclass(frozen=True, slots=True)
class _DeclaredGroup:
    """A group of options that make one value."""

    make: Callable[..., Any]
    fields: Mapping[str, _Declaration | _DeclaredGroup]

    exposed = True

    def parameters(self, _name: str) -> Iterator[AddParameter]:
        for name, declaration in self.fields.items():
            yield from declaration.parameters(name)

    def value(self, _name: str, values: dict[str, Any]) -> Any:
        """Make the value of the group from the options' values."""
        return self.make(
            **{
                name: declaration.value(name, values)
                for name, declaration in self.fields.items()
                if declaration.exposed
            }
        )

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(flag for declaration in self.fields.values() for flag in declaration.flags)


def option(*flags: str, **settings: Any) -> Any:
    """Declare a field of a request as an option.

    Args:
        flags: The flags of the option.
        settings: The arguments of ``click.option``.
    """
    return _request_field(_Declaration(click.option, flags, settings))


def argument(**settings: Any) -> Any:
    """Declare a field of a request as an argument.

    ``settings`` are the arguments of ``click.argument``.
    """
    return _request_field(_Declaration(click.argument, (), settings))


def group(request_class: type) -> Any:
    """Declare a field of a request as the options of another dataclass."""
    return _group_field(request_class, _declared_fields(request_class))


def files_by_language(make: Callable[..., Any], **help_texts: str) -> Any:
    """Declare a field of a request as a group of ``--LANGUAGE OUT`` options.

    Args:
        make: Makes the value of the field from the paths by language; a missing option is None.
        help_texts: The help texts by language.
    """
    return _group_field(
        make,
        {
            language: _Declaration(
                click.option,
                (f"--{language}",),
                {"type": click.Path(path_type=Path), "metavar": "OUT", "help": text},
            )
            for language, text in help_texts.items()
        },
    )


def _group_field(
    make: Callable[..., Any], declared: Mapping[str, _Declaration | _DeclaredGroup]
) -> Any:
    return field(default_factory=make, metadata={_DECLARED: _DeclaredGroup(make, declared)})


def _request_field(declaration: _Declaration) -> Any:
    return field(default=declaration.default, metadata={_DECLARED: declaration})


def _declared_fields(request_class: type) -> dict[str, Any]:
    return {member.name: member.metadata[_DECLARED] for member in fields(request_class)}


@dataclass(frozen=True)
class OptionRule(Generic[Request]):
    """A combination of options that a command refuses as wrong usage.

    The command line is refused if all conditions of the rule are met.

    Attributes:
        message: The problem and its solution. ``{option}`` is the typed option, ``{other}`` the
            excluded one, and ``{request.NAME}`` a value.
        options: One of these options is typed; empty for no condition.
        needs: None of these options is typed.
        excludes: One of these options is typed; empty for no condition.
        when: This is true of the request; None for no condition.
    """

    message: str
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    when: Callable[[Request], object] | None = None

    def refusal(self, request: Request, typed: Sequence[str]) -> str | None:
        """Return the message if the rule refuses the command line; None if it does not.

        Args:
            request: The values of all options.
            typed: The typed options.
        """
        option = _first_typed(self.options, typed)
        excluded = _first_typed(self.excludes, typed)
        # Empty ``options`` or ``excludes`` are no condition.
        applies = bool(option or not self.options) and bool(excluded or not self.excludes)
        has_needed = bool(_first_typed(self.needs, typed))
        if not applies or has_needed or (self.when is not None and not self.when(request)):
            return None
        return self.message.format(option=option, other=excluded, request=request)


def _first_typed(names: Sequence[str], typed: Sequence[str]) -> str:
    """Return the first of the names that was typed; empty if there is none."""
    return next((name for name in names if name in typed), "")


ONE_OUTPUT_ON_STDOUT: Final = OptionRule[Any](
    "--json prints its document on stdout; give a file for --output",
    options=("--output",),
    excludes=("--json",),
    when=lambda request: is_stdout(request.output),
)
"""The rule of commands that write a file and print a JSON document."""

_BLIND_OR_ASSISTED: Final = OptionRule[Any](
    "--blind and --assisted exclude each other; give one of them",
    options=("--blind",),
    excludes=("--assisted",),
)


def takes(
    request_class: type[Request], rules: Sequence[OptionRule[Request]] = ()
) -> Callable[[Callable[[Request], Result]], Callable[..., Result]]:
    """Create a decorator that adds a request's options to a command, and passes the request.

    Args:
        request_class: The dataclass of the request.
        rules: The rules. The first one that refuses is shown as wrong usage.
    """
    declared = _DeclaredGroup(request_class, _declared_fields(request_class))
    declared_names = {*declared.flags, *declared.fields}
    for rule in rules:
        unknown = {*rule.options, *rule.needs, *rule.excludes} - declared_names
        assert not unknown, f"{rule.message!r} names unknown options: {unknown}"

    def decorate(command: Callable[[Request], Result]) -> Callable[..., Result]:
        @wraps(command)
        def with_request(**values: Any) -> Result:
            typed_options = typed_names()
            # The request is not a field, so it has no name.
            request: Request = declared.value("", values)
            for rule in (_BLIND_OR_ASSISTED, *rules):
                refusal = rule.refusal(request, typed_options)
                if refusal is not None:
                    raise click.UsageError(refusal)
            return command(request)

        setattr(with_request, _RULES, tuple(rules))
        decorated: Callable[..., Result] = with_request
        # Click's help lists the last added option first.
        for add in reversed([*declared.parameters("")]):
            decorated = add(decorated)
        return decorated

    return decorate


def rules_of(command: click.Command) -> tuple[OptionRule[Any], ...]:
    """Return the option rules of a command."""
    rules: tuple[OptionRule[Any], ...] = getattr(command.callback, _RULES, ())
    return rules


def typed_names() -> list[str]:
    """Return the flags and argument names that the user has typed."""
    context = click.get_current_context()
    # Click counts an argument without values as typed.
    return [
        name
        for parameter in context.command.params
        if context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        and context.params.get(parameter.name or "") != ()
        for name in (*parameter.opts, *parameter.secondary_opts)
    ]


def flags_of(request_class: type, *, without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the flags of the options of a request.

    Args:
        request_class: The dataclass of the request.
        without: The flags to leave out.
    """
    return tuple(
        flag
        for flag in _DeclaredGroup(request_class, _declared_fields(request_class)).flags
        if flag not in without
    )


_COMMON: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "workspace": {
            "metavar": "PATH-or-URL",
            "help": "Where labels are saved: a file, or postgresql://USER@HOST/DATABASE. Default: "
            ".mast-tui/workspace.db in this folder or the nearest parent folder that has one.",
        },
        "annotator": {"metavar": "NAME", "help": "Your name, or the annotator whose work to show."},
        "taxonomy": {
            "type": click.Path(path_type=Path),
            "metavar": "FILE",
            "help": "Your own failure taxonomy (TOML). Default: MAST. For status, agree and export "
            "also the name id@version of one in the workspace.",
        },
        "blind": {
            "is_flag": True,
            "help": "Hide suggestions, outcomes and labels in files until you finish the trace.",
        },
        "assisted": {"is_flag": True, "help": "Show suggestions (opposite of --blind)."},
    }
)


NO_LABELS: Final = "it reads traces, not labels"
"""The reason of a command to refuse ``--taxonomy``."""


def common(**refused: str) -> Any:
    """Declare the common options of all commands as one field.

    The field has the type ``CommonOptions``.

    Args:
        refused: The reasons to refuse an option, by its name.
    """
    declared = {}
    for name, settings in _COMMON.items():
        if name in refused:
            settings = {
                "is_flag": settings.get("is_flag", False),
                "hidden": True,
                "expose_value": False,
                "callback": _refusing_callback(f"--{name}", refused[name]),
            }
        declared[name] = _Declaration(click.option, (f"--{name}",), settings)
    return _group_field(CommonOptions, declared)


_OF_STUDY: Final = "the study and the annotators choose who works blind"
"""The reason of a study command to refuse ``--blind`` and ``--assisted``."""

common_of_study: Final = partial(common, blind=_OF_STUDY, assisted=_OF_STUDY)


def _refusing_callback(
    flag: str, reason: str
) -> Callable[[click.Context, click.Parameter, object], None]:
    """Return an option's callback that refuses every value."""

    def refuse(context: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value:
            raise click.UsageError(f"{context.info_name} does not accept {flag}: {reason}")

    return refuse


gold: Final = partial(
    option,
    "--gold",
    type=click.Choice(["all", "settled"]),
    help="The part of the gold labels to use: all (the default), or only verdicts that two "
    "annotators agreed on or an adjudicator decided.",
)
pseudonyms: Final = partial(
    option,
    "--pseudonyms",
    is_flag=True,
    help="Replace people's names with letters, the same in every export and report of this "
    "workspace.",
)
force: Final = partial(
    option,
    "--force",
    is_flag=True,
    help="Also replace files that look like a trace, a labelled set or a database, and files of "
    "other programs in a folder. The workspace in use and its traces are never replaced.",
)
redact: Final = partial(
    option,
    "--redact",
    is_flag=True,
    help="Mask personal data (e-mail addresses, telephone and card numbers, IBANs, IP addresses) "
    "and keys, tokens and passwords. Needs mast-tui[redact].",
)
redact_file: Final = partial(
    option,
    "--redact-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also mask what these patterns match, one per line (docs/exchange.md).",
)
seed: Final = partial(option, "--seed", type=click.IntRange(0), default=0, show_default=True)
rounds: Final = partial(option, "--rounds", type=click.IntRange(0), default=2000, show_default=True)
report_file: Final = partial(option, type=click.Path(path_type=Path), metavar="OUT")
input_file: Final = partial(option, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
output: Final = partial(option, "-o", "--output", type=click.Path(path_type=Path), metavar="OUT")
WHICH_PASS: Final = (
    "The labels of the first finish, before others' labels were visible, or of the last."
)
which_pass: Final = partial(
    option,
    "--pass",
    type=click.Choice(["1", "last"]),
    help=WHICH_PASS,
    show_default=True,
    callback=lambda _context, _parameter, value: "first" if value == "1" else value,
)
"""The option ``--pass``, with the value ``first``, ``last`` or None."""

as_json: Final = partial(
    option, "--json", is_flag=True, help="Print one JSON document on stdout and nothing else."
)
workers: Final = partial(
    option,
    "--workers",
    metavar="auto|N|tcp://HOST:PORT",
    help="Read traces with N processes, with one for each core, or with a Dask cluster, which "
    "needs mast-tui[cluster] (docs/scale.md). Default: in this process alone.",
)


def _checked_trace_path(_context: click.Context, parameter: click.Parameter, value: str) -> Path:
    """Return the path of a trace, record, folder or URL, if it exists."""
    path = trace_path(value) if is_url(value) else file_or_record(value)
    if not path.exists():
        raise click.BadParameter(f"{path}: {missing_file_text(path)}", param=parameter)
    return path


existing_path: Final = partial(argument, type=click.Path(), callback=_checked_trace_path)
"""The argument PATH: one existing file or folder."""


def paths(*, required: bool = False, exist: bool = False) -> Any:
    """Declare the argument PATH …: files and folders.

    Args:
        required: Refuse an empty list of paths.
        exist: Refuse a missing path.
    """

    def expand(
        _context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
    ) -> tuple[Path, ...]:
        """Replace lists and patterns by the paths that they name."""
        expanded_paths = tuple(paths_of(*values))
        for path in expanded_paths:
            if exist and not path.exists():
                raise click.BadParameter(f"{path}: {missing_file_text(path)}", param=parameter)
        return expanded_paths

    return argument(
        nargs=-1,
        required=required,
        type=click.Path(),
        callback=expand,
        metavar="PATH …" if required else "[PATH …]",
    )
