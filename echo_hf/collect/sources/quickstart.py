"""The bundled corpus: invented posts in our own format."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from echo_hf.collect.sources.base import register
from echo_hf.collect.sources.jsonl import JsonLines


@register("quickstart")
class Quickstart(JsonLines):
    """The posts that come with the package; they need no path."""

    @property
    def bundled(self) -> Path:
        """The file of the bundled posts."""
        return Path(str(files("echo_hf.quickstart").joinpath("posts.jsonl")))
