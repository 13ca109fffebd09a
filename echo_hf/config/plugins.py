"""Import the modules that a config names as plug-ins, so that what they register can be used."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from echo_hf.config.checks import first_error, format_value, read_yaml
from echo_hf.config.evaluation import PluginModules
from echo_hf.config.runs import find_kept_run, read_origin
from echo_hf.errors import ConfigError, EchoError

PLUGINS, RUBRICS = "plugins", "rubrics"


def load_plugins(settings: Any, path: Path) -> None:
    """Import the plug-ins of a config before the rest of it is read.

    A run, which may have come from elsewhere, names none by itself: what it has kept counts where
    the config that it was made from is there and says the same.

    Raises:
        ConfigError: A module cannot be imported, or the config may name none.
    """
    if not isinstance(settings, dict):
        return  # which reading it says
    if run := find_kept_run(path):
        _check_kept(settings, path, run)
    try:
        plugins = PluginModules.model_validate({PLUGINS: settings.get(PLUGINS, ())})
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), PluginModules)) from None
    import_plugins(plugins.plugins, f"{path}: {PLUGINS}")


def import_plugins(modules: Sequence[str], place: str) -> None:
    for module in modules:
        try:
            import_module(module)
        except EchoError as error:
            raise ConfigError(f"{place}: {module!r}: {error}") from error
        except (Exception, SystemExit) as error:  # whatever the code of a plug-in raises
            cause = " ".join(f"{type(error).__name__}: {error}".split())
            raise ConfigError(
                f"{place}: module {module!r} cannot be imported ({cause}): install the package "
                "that it is in into this environment, or fix it"
            ) from error


def _check_kept(settings: dict[str, Any], path: Path, run: Path) -> None:
    named = [key for key in (PLUGINS, RUBRICS) if settings.get(key)]
    if not named:
        return
    origin = read_origin(run)
    own: Any = None
    if origin and origin.is_file() and not origin.is_relative_to(run.resolve()):
        own = read_yaml(origin, "config", str(origin))
    own = own if isinstance(own, dict) else {}
    for key in named:
        is_own = own.get(key) == settings[key] if key == PLUGINS else bool(own.get(key))
        if not is_own:
            raise ConfigError(
                f"{path}: has {key}: {format_value(settings[key])}, and the run may have come from "
                "elsewhere: expected the config that it was made from, which you wrote; name that "
                "one instead of the run"
            )
