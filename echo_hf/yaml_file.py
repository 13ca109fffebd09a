"""Read YAML that a user wrote: plain values only, and with errors that say what to mend."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import yaml

from echo_hf.errors import ConfigError

MOST_BYTES = 1_000_000
MOST_VALUES = 100_000
LARGEST = 2**63 - 1  # what a table can hold
LONGEST_NUMBER = 100
STANDARD = "tag:yaml.org,2002:"


def read_yaml(path: Path, what: str, example: str) -> Any:
    """Reads a YAML file without running anything in it; a key given twice is an error.

    Args:
        path: The file.
        what: What it is, for messages, such as `config`.
        example: A file to look at where this one is missing.

    Returns:
        What it holds.

    Raises:
        ConfigError: It is missing, cannot be read, is too large, or is not valid YAML.
    """
    try:
        if path.exists() and not path.is_file():  # to read a pipe is to wait for ever
            raise ConfigError(f"{what} {str(path)!r} is no regular file: expected a YAML file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ConfigError(
                f"{what} {str(path)!r} has more than {MOST_BYTES:,} bytes: expected a YAML file, "
                f"such as {example}"
            )
        return parse_yaml(content.decode())
    except FileNotFoundError:
        raise ConfigError(
            f"no {what} {str(path)!r}: expected a YAML file, for example {example}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {what} {str(path)!r}: {error}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error


def parse_yaml(text: str) -> Any:
    """Reads YAML text.

    Args:
        text: The text.

    Returns:
        What it holds.

    Raises:
        yaml.YAMLError: It is not valid, holds a key twice or what is no plain value, or says by
            its aliases more than anybody would write.
        ValueError: It holds a character that there is none of.
    """
    try:
        return yaml.load(text, Loader=_PlainValues)  # noqa: S506 - a SafeLoader
    except RecursionError as error:
        raise yaml.YAMLError("expected values that are nested less deeply") from error


class _PlainValues(yaml.SafeLoader):
    yaml_constructors: ClassVar[dict[Any, Any]] = {
        tag: constructor
        for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
        if str(tag).removeprefix(STANDARD) not in ("binary", "set", "omap", "pairs")
    }

    def construct_document(self, node: yaml.Node) -> Any:
        if _values(node, {}) > MOST_VALUES:
            raise yaml.YAMLError(f"expected at most {MOST_VALUES:,} values, aliases written out")
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # PyYAML lets through what its constructors raise, such as for the 30th of February.
            said = f"{repr(node.value)[:LONGEST_NUMBER]} is no {node.tag.removeprefix(STANDARD)}"
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: {said}") from error

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        value = super().construct_yaml_int(node) if len(node.value) < LONGEST_NUMBER else None
        if value is None or abs(value) > LARGEST:
            raise ValueError
        return value

    def construct_yaml_str(self, node: yaml.ScalarNode) -> str:
        text = super().construct_yaml_str(node)
        text.encode()  # half a character cannot be written anywhere
        return text

    def construct_unique_map(self, node: yaml.MappingNode) -> dict[Any, Any]:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        own = [key for key, _ in pairs if key.tag != f"{STANDARD}merge"]
        names = [self.construct_object(key, deep=True) for key in own]
        made = self.construct_mapping(node, deep=True)
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: key {twice!r} is given twice")
        return made


_PlainValues.add_constructor(f"{STANDARD}map", _PlainValues.construct_unique_map)
_PlainValues.add_constructor(f"{STANDARD}int", _PlainValues.construct_yaml_int)
_PlainValues.add_constructor(f"{STANDARD}str", _PlainValues.construct_yaml_str)


def _values(node: yaml.Node, known: dict[yaml.Node, int]) -> int:
    """How many values there are, an alias counted like what it stands for."""
    if node not in known:
        known[node] = 1  # in a circle, which is refused where it is read
        inner = node.value if isinstance(node, yaml.CollectionNode) else []
        every = [one for item in inner for one in (item if isinstance(item, tuple) else (item,))]
        known[node] += sum(_values(one, known) for one in every)
    return known[node]
