"""Read YAML that users wrote, validate it, and describe errors in one line."""

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
from echo_hf._infra.text import one_line, remove_folders
from echo_hf.errors import ConfigError, unknown

MAX_SHOWN_CHARACTERS = 200
MAPPING_ERRORS = frozenset({"model_type", "dict_type", "mapping_type"})
# What a check says that found a secret: the value is not repeated.
CENSORED = "no secret"
ERROR_ORDER = {"extra_forbidden": 0, "missing": 2, "too_short": 3}
SECRET_NAME = re.compile(
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


def find_secrets(options: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    """Yield names of options that hold credentials, by name, address or form."""
    for name, value in options.items():
        if SECRET_NAME.search(str(name).replace("-", "_")):
            yield f"{prefix}{name}"
        elif isinstance(value, Mapping):
            yield from find_secrets(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield from find_secrets(dict(enumerate(value)), f"{prefix}{name}.")
        elif isinstance(value, str) and CREDENTIALS.search(value):
            yield f"{prefix}{name} with a name and password in it"
        elif isinstance(value, str) and KEY_FORM.search(value):
            yield f"{prefix}{name} with a key in it"


def first_error(error: ValidationError, place: str, root: type[BaseModel]) -> str:
    """Describe the most telling validation error in one line."""
    errors = error.errors(include_url=False, include_context=False)
    # A misspelt key is also a missing one, and an item that cannot be read is also missing from
    # its list; its own message says more.
    first = min(errors, key=lambda candidate: ERROR_ORDER.get(candidate["type"], 1))
    # The part that is empty tells one of several kinds of value, and is no key.
    location = ".".join(str(part) for part in first["loc"] if part != "")
    if first["type"] == "extra_forbidden":
        parent, _, key = location.rpartition(".")
        kind = f"key in {parent}" if parent else "key"
        return unknown(kind, key, _known_keys(root, first["loc"][:-1]), place)
    if first["type"] == "missing":
        return f"{place}: {_missing(errors)}"
    expected = _simplify_message(first["type"], first["msg"])
    given_input = first["input"]
    if not location:
        return f"{place}: {expected}"
    is_secret = CENSORED in expected or any(find_secrets({location: given_input}))
    # What several keys contradict each other in says so itself: the whole of them says less.
    is_long = first["type"] == "value_error" and len(repr(given_input)) > MAX_SHOWN_CHARACTERS
    value = "" if is_secret or is_long else f" is {format_value(given_input)}"
    return f"{place}: {location}{value}: {expected}"


def _missing(errors: Sequence[Any]) -> str:
    """Name all missing keys, since who adds one has to add the others too."""
    keys = (error["loc"] for error in errors if error["type"] == "missing")
    names = [".".join(str(part) for part in key if part != "") for key in keys]
    *others, last = dict.fromkeys(names)
    if others:
        return f"{', '.join(others)} and {last} are missing: fields required"
    return f"{last} is missing: field required"


def format_value(value: Any) -> str:
    """Format a value for a message: short, and never a secret."""
    if isinstance(value, Mapping) and any(find_secrets(value)):
        return "a mapping that is not shown"
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 3] + "..."


def _simplify_message(kind: str, message: str) -> str:
    if kind in MAPPING_ERRORS:
        return "expected a mapping, such as {key: value}"
    message = message.removeprefix("Value error, ")
    message = message.replace("valid tuple", "list").replace("Tuple should", "list should")
    return message[:1].lower() + message[1:]


def _known_keys(root: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    section: Any = root
    for part in location:
        if isinstance(part, int) or part == "":
            continue
        annotation = section.model_fields[part].annotation
        section = next(iter(find_sections(annotation)), BaseModel)
    return list(section.model_fields)


def find_sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a type may be, or hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from find_sections(inner)


def match_pattern(pattern: str | re.Pattern[str], expected: str) -> AfterValidator:
    """Return a validator that a text matches a pattern; the JSON Schema omits it."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {expected}")
        return text

    return AfterValidator(check)


def _check_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected words without control or formatting characters")
    return text


def check_printable_lines(text: str) -> str:
    return "\n".join(map(_check_printable, text.splitlines()))


def _check_path(path: Path) -> Path:
    if not str(path).isprintable() or path == Path():
        raise ValueError("expected the name of a file")
    return path


def check_distinct(members: Sequence[Any], reserved: Sequence[str] = ()) -> Any:
    """Check that names are unique, and none of them reserved."""
    names = [*reserved, *(member.name for member in members)]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(f"the name {duplicate!r} is taken: expected another one for each")
    return members


FOLDER_AND_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
NameRule = match_pattern(
    FOLDER_AND_TAG,
    "at most 96 letters from a to z, digits, '.', '_' or '-', a letter or digit first: it names a "
    "folder and a tag",
)
NAME_SCHEMA = {"pattern": f"^{FOLDER_AND_TAG.pattern}$"}
Name = Annotated[str, NameRule, Field(json_schema_extra=NAME_SCHEMA)]
Stripped = StringConstraints(min_length=1, strip_whitespace=True)
Words = Annotated[str, Stripped, Field(max_length=200), AfterValidator(_check_printable)]
Statement = Annotated[str, Stripped, Field(max_length=1000), AfterValidator(_check_printable)]
# Several lines: Markdown of the card, or BibTeX.
LongText = Annotated[str, Stripped, Field(max_length=5000), AfterValidator(check_printable_lines)]
ReadablePath = Annotated[Path, AfterValidator(_check_path)]
StrictInt = Annotated[int, Field(strict=True)]


def expect_one_of(expected: str) -> WrapValidator:
    """Return a validator with one message for a value that fits none of several types."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(f"expected {expected}") from None

    return WrapValidator(check)


def check_unequal(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check that no value occurs twice."""
    duplicate = next(
        (value for position, value in enumerate(values) if value in values[:position]), None
    )
    if duplicate is not None:
        raise ValueError(f"expected each once, {duplicate!r} is there twice")
    return values


Devices = Annotated[
    Literal["all"]
    | Annotated[StrictInt, Field(ge=1, le=256)]
    | Annotated[
        tuple[Annotated[StrictInt, Field(ge=0, le=255)], ...],
        Field(min_length=1),
        AfterValidator(check_unequal),
    ],
    expect_one_of("all, a number of processes such as 2, or GPUs such as [0, 1]"),
]
License = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]


class Section(BaseModel):
    """A part of a config, or of a file: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Coordinates = Literal["abs_resized", "rel_1000", "rel_1", "rel_1000_yx"]


class EngineChoice(BaseModel):
    """A kind of engine and its options, which the engine itself checks.

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


def refuse_secrets(options: Mapping[str, Any]) -> None:
    """Refuse options that hold a secret, without repeating it."""
    secret = next(find_secrets(options), None)
    if secret is not None:
        raise ValueError(
            f"has {secret!r}, expected {CENSORED}: a config is kept beside its results; put the "
            "secret into an environment variable"
        )


def _check_stored(engine: EngineChoice) -> EngineChoice:
    refuse_secrets(engine.options)
    return engine


StoredEngine = Annotated[EngineChoice, AfterValidator(_check_stored)]


SUBSTITUTE = "substitute"
UNKNOWN = "unknown"  # the developer of whom nobody said who it is
ANSWERED_BY = "answered_by"  # in the provenance of outputs and ratings
IMPORTED = "imported"  # the status of what was not asked here


class ModelIdentity(BaseModel):
    """The model behind the name of a system or judge, and its role in the paper."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: Annotated[str, AfterValidator(remove_folders)] | None = None
    developer: str | None = None
    status: str | None = None
    stands_for: str | None = None

    @property
    def maker(self) -> str | None:
        """Its developer, null where unknown."""
        return None if (self.developer or UNKNOWN).casefold() == UNKNOWN else self.developer

    @property
    def in_place_of(self) -> str | None:
        """The part of the paper that it substitutes for."""
        return self.stands_for if self.status == SUBSTITUTE else None


def reduce_to_letters(name: str) -> str:
    """Reduce a name to its letters and digits, to compare spellings."""
    return re.sub(r"[\W_]", "", name.casefold())


def check_stand_in(name: str, answered_by: ModelIdentity, note: str | None, expected: str) -> None:
    """Check what a config says of the part of the paper that it stands for."""
    status, stands_for = answered_by.status, answered_by.stands_for
    if status == "current" and stands_for is not None:
        raise ValueError(
            f"stands_for is {stands_for!r} and status is 'current': expected {expected}"
        )
    if status != SUBSTITUTE:
        return
    if stands_for is None or note is None:
        raise ValueError("expected stands_for and a note, which say what stands in for what")
    if reduce_to_letters(name) == reduce_to_letters(stands_for):
        raise ValueError(
            f"name is {name!r} and stands_for {stands_for!r}: expected a substitute to be named "
            "after the model that answers"
        )


MERGE_TAG = "tag:yaml.org,2002:merge"
INTEGER_TAG = "tag:yaml.org,2002:int"
MAX_INTEGER_BITS = 1024  # of an integer: Python refuses to print very long ones


MAX_YAML_BYTES = 1 << 24


def read_yaml(path: Path, kind: str, example: str) -> Any:
    """Read a YAML file without running anything in it; a repeated key is an error."""
    try:
        return parse_yaml(read_regular(path, max_bytes=MAX_YAML_BYTES).decode())
    except FileNotFoundError:
        raise ConfigError(
            f"no {kind} {str(path)!r}: expected a YAML file, for example {example}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read {kind} {str(path)!r} ({one_line(error)}): expected a YAML file"
        raise ConfigError(message) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error


def parse_yaml(text: str) -> Any:
    try:
        value = yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - a SafeLoader
        json.dumps(value, default=str, skipkeys=True)  # which refuses what holds itself
        return value
    # PyYAML lets through what its constructors raise, such as for the 30th of February.
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error


class _UniqueKeyLoader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [repr(key.value) for key, _ in node.value if key.tag != MERGE_TAG]
        duplicate = next((key for key in keys if keys.count(key) > 1), None)
        if duplicate is not None:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: key {duplicate} is given twice")
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge as YAML says: the earlier of a list wins, unlike in PyYAML 6.0.4."""
        merges = [value for key, value in node.value if key.tag == MERGE_TAG]
        node.value = [pair for pair in node.value if pair[0].tag != MERGE_TAG]
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
        if value.bit_length() > MAX_INTEGER_BITS:
            line, digits = node.start_mark.line + 1, f"{node.value[:20]}..."
            raise yaml.YAMLError(
                f"line {line}: {digits!r} is an integer of {value.bit_length():,} bits, expected "
                f"at most {MAX_INTEGER_BITS:,}: write text in quotation marks"
            )
        return value


_UniqueKeyLoader.add_constructor(INTEGER_TAG, _UniqueKeyLoader.construct_yaml_int)
