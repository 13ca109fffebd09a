"""Read YAML that a user wrote, and say in one line what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import one_line, without_folders
from echo_hf.errors import ConfigError, unknown

LONGEST_VALUE = 200
NO_MAPPING = frozenset({"model_type", "dict_type", "mapping_type"})
# What a check says that found a secret: the value is not repeated.
CENSORED = "no secret"
MOST_TELLING = {"extra_forbidden": 0, "missing": 2, "too_short": 3}
SECRET = re.compile(
    r"(?:^|_)(?:(?:api_?)?key|secret|password|bearer|authorization|auth|cookie)$"
    r"|(?:^|(?:access|auth|hf|api|refresh)_)token$",
    re.IGNORECASE,
)
CREDENTIALS = re.compile(r"://[^/@\s]+@")
# As providers make them, whatever the option is called that holds one.
KEY_FORM = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|[rs]k_(?:live|test)_|gsk_|xai-|nvapi-|hf_|gh[oprsu]_|github_pat_|glpat-"
    r"|AIza|AKIA|ASIA|r8_|xox[abeprs]-|npm_|pypi-|SG\.|\d{8,10}:AA|eyJ[\w-]{8,}\.eyJ)"
    r"[A-Za-z0-9_-]{12,}(?:\.[A-Za-z0-9_-]{12,})?"
)


def secrets_in(options: Mapping[Any, Any], inside: str = "") -> Iterator[str]:
    """Names of options that hold credentials: by their names, in addresses, or by their form."""
    for name, value in options.items():
        if SECRET.search(str(name).replace("-", "_")):
            yield f"{inside}{name}"
        elif isinstance(value, Mapping):
            yield from secrets_in(value, f"{inside}{name}.")
        elif isinstance(value, list | tuple):
            yield from secrets_in(dict(enumerate(value)), f"{inside}{name}.")
        elif isinstance(value, str) and CREDENTIALS.search(value):
            yield f"{inside}{name} with a name and password in it"
        elif isinstance(value, str) and KEY_FORM.search(value):
            yield f"{inside}{name} with a key in it"


def first_error(error: ValidationError, place: str, root: type[BaseModel]) -> str:
    """The most telling of the errors in one line."""
    every = error.errors(include_url=False, include_context=False)
    # A misspelt key is also a missing one, and an item that cannot be read is also missing from
    # its list; its own message says more.
    first = min(every, key=lambda one: MOST_TELLING.get(one["type"], 1))
    # The part that is empty tells one of several kinds of value, and is no key.
    where = ".".join(str(part) for part in first["loc"] if part != "")
    if first["type"] == "extra_forbidden":
        parent, _, key = where.rpartition(".")
        kind = f"key in {parent}" if parent else "key"
        return unknown(kind, key, _known_keys(root, first["loc"][:-1]), place)
    if first["type"] == "missing":
        return f"{place}: {_missing(every)}"
    said = _expected(first["type"], first["msg"])
    shown = first["input"]
    if not where:
        return f"{place}: {said}"
    is_secret = CENSORED in said or any(secrets_in({where: shown}))
    # What several keys contradict each other in says so itself: the whole of them says less.
    is_whole = first["type"] == "value_error" and len(repr(shown)) > LONGEST_VALUE
    value = "" if is_secret or is_whole else f" is {shown_value(shown)}"
    return f"{place}: {where}{value}: {said}"


def _missing(errors: Sequence[Any]) -> str:
    """All keys that are missing, since who adds one of them has to add the others too."""
    keys = (error["loc"] for error in errors if error["type"] == "missing")
    names = [".".join(str(part) for part in key if part != "") for key in keys]
    *others, last = dict.fromkeys(names)
    if others:
        return f"{', '.join(others)} and {last} are missing: fields required"
    return f"{last} is missing: field required"


def shown_value(value: Any) -> str:
    """A value as a message shows it, no longer than a line holds; never one with a secret."""
    if isinstance(value, Mapping) and any(secrets_in(value)):
        return "a mapping that is not shown"
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def _expected(kind: str, said: str) -> str:
    if kind in NO_MAPPING:
        return "expected a mapping, such as {key: value}"
    said = said.removeprefix("Value error, ")
    said = said.replace("valid tuple", "list").replace("Tuple should", "list should")
    return said[:1].lower() + said[1:]


def _known_keys(root: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    section: Any = root
    for part in location:
        if isinstance(part, int) or part == "":
            continue
        annotation = section.model_fields[part].annotation
        section = next(iter(sections_of(annotation)), BaseModel)
    return list(section.model_fields)


def sections_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a value of a type may be, or hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from sections_of(inner)


def matching(form: str | re.Pattern[str], expected: str) -> AfterValidator:
    """A check that the whole of a text has a form; the JSON Schema does not repeat it."""

    def check(text: str) -> str:
        if not re.fullmatch(form, text):
            raise ValueError(f"expected {expected}")
        return text

    return AfterValidator(check)


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected words without control or formatting characters")
    return text


def _printable_lines(text: str) -> str:
    return "\n".join(map(_printable, text.splitlines()))


def _openable(path: Path) -> Path:
    if not str(path).isprintable() or path == Path():
        raise ValueError("expected the name of a file")
    return path


def distinct(named: Sequence[Any], ours: Sequence[str] = ()) -> Any:
    """Checks that no two items have one name, and none has one of ours."""
    names = [*ours, *(one.name for one in named)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the name {twice!r} is taken: expected another one for each")
    return named


FOLDER_AND_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
NAMEABLE = matching(
    FOLDER_AND_TAG,
    "at most 96 letters from a to z, digits, '.', '_' or '-', a letter or digit first: it names a "
    "folder and a tag",
)
FORM = {"pattern": f"^{FOLDER_AND_TAG.pattern}$"}
Name = Annotated[str, NAMEABLE, Field(json_schema_extra=FORM)]
STRIPPED = StringConstraints(min_length=1, strip_whitespace=True)
Words = Annotated[str, STRIPPED, Field(max_length=200), AfterValidator(_printable)]
Statement = Annotated[str, STRIPPED, Field(max_length=1000), AfterValidator(_printable)]
# Several lines: Markdown of the card, or BibTeX.
Prose = Annotated[str, STRIPPED, Field(max_length=5000), AfterValidator(_printable_lines)]
File = Annotated[Path, AfterValidator(_openable)]
Whole = Annotated[int, Field(strict=True)]


def one_of(expected: str) -> WrapValidator:
    """Says in one sentence what is expected where a value is none of several kinds."""

    def check(given: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(given)
        except ValidationError:
            raise ValueError(f"expected {expected}") from None

    return WrapValidator(check)


def different(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Checks that no value is there twice."""
    twice = next((value for at, value in enumerate(values) if value in values[:at]), None)
    if twice is not None:
        raise ValueError(f"expected each once, {twice!r} is there twice")
    return values


Devices = Annotated[
    Literal["all"]
    | Annotated[Whole, Field(ge=1, le=256)]
    | Annotated[
        tuple[Annotated[Whole, Field(ge=0, le=255)], ...],
        Field(min_length=1),
        AfterValidator(different),
    ],
    one_of("all, a number of processes such as 2, or GPUs such as [0, 1]"),
]
License = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]


class Section(BaseModel):
    """A part of a config: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Coordinates = Literal["abs_resized", "rel_1000", "rel_1", "rel_1000_yx"]


class EngineChoice(BaseModel):
    """Who answers: a kind of engine and its options, which the engine itself checks.

    Attributes:
        kind: Name of the engine; `echo-hf engines` lists them.
        coordinates: What the numbers of its model's boxes mean, where that is not known;
            `echo-hf check-engine --boxes` tells it.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str
    coordinates: Coordinates | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The keys beside `kind`."""
        return dict(self.model_extra or {})


def without_secrets(options: Mapping[str, Any]) -> None:
    """Refuses options of which one holds a secret, and does not repeat it."""
    secret = next(secrets_in(options), None)
    if secret is not None:
        raise ValueError(
            f"has {secret!r}, expected {CENSORED}: a config is kept beside its results; put the "
            "secret into an environment variable"
        )


def _stored(engine: EngineChoice) -> EngineChoice:
    without_secrets(engine.options)
    return engine


StoredEngine = Annotated[EngineChoice, AfterValidator(_stored)]


SUBSTITUTE = "substitute"
UNKNOWN = "unknown"  # the developer of whom nobody said who it is
ANSWERED_BY = "answered_by"  # in the provenance of outputs and ratings
IMPORTED = "imported"  # the status of what was not asked here


class AnsweredBy(BaseModel):
    """The model that answers to the name of a system or judge, and what of the paper it is."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: Annotated[str, AfterValidator(without_folders)] | None = None
    developer: str | None = None
    status: str | None = None
    stands_for: str | None = None

    @property
    def maker(self) -> str | None:
        """Who made it, null where nobody says."""
        return None if (self.developer or UNKNOWN).casefold() == UNKNOWN else self.developer

    @property
    def in_place_of(self) -> str | None:
        """The part of the paper whose place it takes, and which it is not."""
        return self.stands_for if self.status == SUBSTITUTE else None


def letters(name: str) -> str:
    """A name without what is written in one way here and in another there."""
    return re.sub(r"[\W_]", "", name.casefold())


def check_stand_in(name: str, answered_by: AnsweredBy, note: str | None, expected: str) -> None:
    """Checks what a config says of the part of the paper that it stands for."""
    status, stands_for = answered_by.status, answered_by.stands_for
    if status == "current" and stands_for is not None:
        raise ValueError(
            f"stands_for is {stands_for!r} and status is 'current': expected {expected}"
        )
    if status != SUBSTITUTE:
        return
    if stands_for is None or note is None:
        raise ValueError("expected stands_for and a note, which say what stands in for what")
    if letters(name) == letters(stands_for):
        raise ValueError(
            f"name is {name!r} and stands_for {stands_for!r}: expected a substitute to be named "
            "after the model that answers"
        )


MERGE = "tag:yaml.org,2002:merge"
INTEGER = "tag:yaml.org,2002:int"
MOST_BITS = 1024  # of an integer: Python refuses to print very long ones


MOST_YAML_BYTES = 1 << 24


def read_yaml(path: Path, what: str, example: str) -> Any:
    """Reads a YAML file without running anything in it; a key given twice is an error."""
    try:
        return parse_yaml(read_regular(path, most_bytes=MOST_YAML_BYTES).decode())
    except FileNotFoundError:
        raise ConfigError(
            f"no {what} {str(path)!r}: expected a YAML file, for example {example}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        said = f"cannot read {what} {str(path)!r} ({one_line(error)}): expected a YAML file"
        raise ConfigError(said) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error


def parse_yaml(text: str) -> Any:
    """Reads YAML text."""
    try:
        value = yaml.load(text, Loader=_UniqueKeys)  # noqa: S506 - a SafeLoader
        json.dumps(value, default=str, skipkeys=True)  # which refuses what holds itself
        return value
    # PyYAML lets through what its constructors raise, such as for the 30th of February.
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error


class _UniqueKeys(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [repr(key.value) for key, _ in node.value if key.tag != MERGE]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: key {twice} is given twice")
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merges as YAML says: of a list the earlier wins, not the later as in PyYAML 6.0.4."""
        merges = [value for key, value in node.value if key.tag == MERGE]
        node.value = [pair for pair in node.value if pair[0].tag != MERGE]
        merged = dict[tuple[str, str], Any]()
        for merge in merges:
            mappings = merge.value if isinstance(merge, yaml.SequenceNode) else [merge]
            for mapping in reversed(mappings):
                if not isinstance(mapping, yaml.MappingNode):
                    line = mapping.start_mark.line + 1
                    raise yaml.YAMLError(f"line {line}: << takes a mapping or a list of mappings")
                self.flatten_mapping(mapping)
                merged |= {(key.tag, repr(key.value)): (key, value) for key, value in mapping.value}
        node.value = [*merged.values(), *node.value]
        super().flatten_mapping(node)

    def construct_yaml_int(self, node: Any) -> int:
        value: int = super().construct_yaml_int(node)
        if value.bit_length() > MOST_BITS:
            line, shown = node.start_mark.line + 1, f"{node.value[:20]}..."
            raise yaml.YAMLError(
                f"line {line}: {shown!r} is an integer of {value.bit_length():,} bits, expected at "
                f"most {MOST_BITS:,}: write text in quotation marks"
            )
        return value


_UniqueKeys.add_constructor(INTEGER, _UniqueKeys.construct_yaml_int)
