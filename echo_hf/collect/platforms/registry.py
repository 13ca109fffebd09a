"""How platforms are found by name; none is imported before it is asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from echo_hf.collect.platforms.base import Platform
from echo_hf.errors import ConfigError, unknown

ENTRY_POINTS = "echo_hf.platforms"
# By name, the module and the class in it.
OURS = {
    "bluesky": ("echo_hf.collect.platforms.bluesky", "Bluesky"),
    "mastodon": ("echo_hf.collect.platforms.mastodon", "Mastodon"),
    "x": ("echo_hf.collect.platforms.x", "X"),
}


def platform_names() -> list[str]:
    """The names that `make_platform` understands, in order."""
    return sorted({*OURS, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def check_platform(name: str, place: str = "") -> None:
    """Checks that there is a platform of a name, without importing it.

    Args:
        name: The name.
        place: Where it stands, for the message.

    Raises:
        ConfigError: There is none.
    """
    if name not in platform_names():
        raise ConfigError(unknown("platform", name, platform_names(), place))


def make_platform(name: str) -> Platform:
    """The platform of a name, not yet connected.

    Args:
        name: A registered name; other packages register a class that takes no arguments under the
            entry points `echo_hf.platforms`.

    Returns:
        The platform.

    Raises:
        ConfigError: There is no platform of this name.
        MissingExtraError: Its packages are not installed.
    """
    check_platform(name)
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            made: Platform = point.load()()
            return made
    module, member = OURS[name]
    own: Platform = getattr(import_module(module), member)()
    return own
