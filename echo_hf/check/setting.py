"""What is checked against what: from a config, an engine and a gold folder, or some of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from echo_hf.check.gold_folder import POSTS_FILE
from echo_hf.config import Config, load_config
from echo_hf.config_check import secrets_in, shown_value
from echo_hf.config_fields import EngineChoice
from echo_hf.config_sections import Posts
from echo_hf.engines.base import engine_names
from echo_hf.errors import ConfigError, unknown
from echo_hf.quickstart.show import shipped_config
from echo_hf.yaml_file import parse_yaml

TWO_WAYS = (
    "say which engine: echo-hf check-engine CONFIG checks those of a config, "
    "echo-hf check-engine --engine KIND --model ID one without it"
)
OPTION = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Setting:
    """What is checked against what.

    Attributes:
        config: Target, engines and options of the stages.
        gold: Folder of the gold.
        posts: Where its posts are.
        where: What to call that.
    """

    config: Config
    gold: Path
    posts: tuple[Posts, ...]
    where: str


def setting_of(
    config: Config | Path | str | None, engine: EngineChoice | None, gold: Path | str | None
) -> Setting:
    """Puts together what is checked against what.

    Args:
        config: Names the engines, the stages' options and, for gold of its own, target and posts.
        engine: Takes the place of all engines of the config.
        gold: A folder of gold about the config's target; the bundled one when null, whose target
            is its own.

    Returns:
        The setting.

    Raises:
        ConfigError: There is neither a config nor an engine, or no config for the gold.
    """
    if config is None and engine is None:
        raise ConfigError(TWO_WAYS)
    if config is None and gold is not None:
        raise ConfigError(
            f"gold {str(gold)!r} is about a target that only a config can name: "
            "echo-hf check-engine CONFIG --gold DIR, with --engine to try another one"
        )
    bundled = load_config(shipped_config())
    given = config if isinstance(config, Config) else load_config(config or shipped_config())
    if engine is not None:
        engines = dict.fromkeys(given.engines, engine)
        given = given.model_copy(update={"engines": engines})
    if gold is None:
        given = given.model_copy(update={"target": bundled.target})
        folder = Path(str(files("echo_hf.quickstart").joinpath("gold")))
        return Setting(given, folder, bundled.posts, "the bundled posts")
    own = Path(gold) / POSTS_FILE
    if own.exists():
        return Setting(given, Path(gold), (Posts(source="jsonl", path=own),), str(own))
    return Setting(given, Path(gold), given.posts, _named(given.posts))


def engine_choice(
    kind: str | None, model: str | None = None, options: Sequence[str] = ()
) -> EngineChoice | None:
    """An engine as the command line names it.

    Args:
        kind: Its kind; null when none is named.
        model: Its model.
        options: Further options, `KEY=VALUE` each; values are read as in a config.

    Returns:
        The engine, if one is named.

    Raises:
        ConfigError: There is no such kind, or an option is none, names it, is given twice, or is a
            secret.

    Example:
        >>> engine_choice("auto", "org/model", ["temperature=0.5"])
        EngineChoice(kind='auto', model='org/model', temperature=0.5)
    """
    if kind is None:
        if model is not None or options:
            raise ConfigError(f"a model or an option without an engine: {TWO_WAYS}")
        return None
    if kind not in engine_names():
        raise ConfigError(unknown("engine", kind, engine_names(), "--engine"))
    every: list[tuple[str, Any]] = [("model", model)] if model is not None else []
    every += map(_option, options)
    names = [name for name, _ in every]
    if "kind" in names:
        raise ConfigError("--option 'kind': the kind of the engine is what --engine names")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"--option {twice!r} is given twice: give it once")
    secret = next(secrets_in(dict(every)), None)
    if secret is not None:
        raise ConfigError(
            f"--option has {secret!r}, and what was typed stays in the shell's history: put the "
            "secret into an environment variable"
        )
    return EngineChoice(kind=kind, **dict(every))


def _option(text: str) -> tuple[str, Any]:
    found = OPTION.fullmatch(text)
    if found is None:
        # It may be a secret that was meant for something else.
        raise ConfigError(f"--option of {len(text)} characters: expected KEY=VALUE")
    try:
        return found[1], parse_yaml(found[2])
    except (yaml.YAMLError, ValueError):
        raise ConfigError(
            f"--option {found[1]!r} has a value that is no YAML: expected one as in a config, "
            "for example 0.5, true or [1, 2]"
        ) from None


def _named(entries: Iterable[Posts]) -> str:
    return shown_value(", ".join(str(entry.path or entry.source) for entry in entries))[1:-1]
