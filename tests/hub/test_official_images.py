"""Where images that are only named come from, and where they are kept."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from echo_hf.hub.official import OfficialImages
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Unfetched


def test_tokens_are_asked_for_where_x_keeps_media(tmp_path: Path) -> None:
    """Both addresses of a token, and an address as it stands; nobody else's machine."""
    asked: list[tuple[str, int]] = []

    async def nobody(host: str, port: int) -> Sequence[Any]:
        asked.append((host, port))
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    images = OfficialImages(ImageStore(tmp_path / "pictures"), resolve=nobody)
    found = images.fetch(["Gabc_1-x", "https://media.example/a.png", "Gabc_1-x"])

    assert sorted(set(asked)) == [("media.example", 443), ("pbs.twimg.com", 443)]
    assert {name: result.reason for name, result in found.items()} == {
        "Gabc_1-x": Unfetched.UNREACHABLE,
        "https://media.example/a.png": Unfetched.UNREACHABLE,
    }
    assert found["Gabc_1-x"].url == "https://pbs.twimg.com/media/Gabc_1-x"


def test_nothing_is_asked_for_nothing(tmp_path: Path) -> None:
    """A dataset that names no images leaves no trace."""
    assert OfficialImages(ImageStore(tmp_path / "pictures")).fetch([]) == {}
    assert list(tmp_path.iterdir()) == []


def test_they_are_kept_in_huggingface_hubs_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its part for what other libraries make, so that one folder holds all that was fetched."""
    monkeypatch.setattr(huggingface_hub.utils._cache_assets, "HF_ASSETS_CACHE", str(tmp_path))
    assert OfficialImages().store.root.is_relative_to(tmp_path / "echo-hf")
