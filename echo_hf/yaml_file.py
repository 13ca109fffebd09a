"""Read a YAML file that a user wrote: safely, and with errors that say what to mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from echo_hf.errors import ConfigError
from echo_hf.unique_keys import UniqueKeys


def read_yaml(path: Path, what: str, example: str) -> Any:
    """Reads a YAML file without running anything in it; a key given twice is an error.

    Args:
        path: The file.
        what: What it is, for messages, such as `config`.
        example: A file to look at where this one is missing.

    Returns:
        What it holds.

    Raises:
        ConfigError: It is missing, cannot be read, or is not valid YAML.
    """
    try:
        if path.exists() and not path.is_file():  # to read a pipe is to wait for ever
            raise ConfigError(f"{what} {str(path)!r} is no regular file: expected a YAML file")
        text = path.read_text("utf-8")
        return yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a SafeLoader
    except FileNotFoundError:
        raise ConfigError(
            f"no {what} {str(path)!r}: expected a YAML file, for example {example}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {what} {str(path)!r}: {error}") from error
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError) as error:
        # PyYAML lets through what its constructors raise, such as for the 30th of February.
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
