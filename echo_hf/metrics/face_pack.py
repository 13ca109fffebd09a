"""Where the two networks for faces are: in a folder, or in a repository at a commit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from echo_hf.engines.checkpoint import is_hub_name
from echo_hf.errors import ScoreError, WeightsError
from echo_hf.metrics.extras import said

AURAFACE = "fal/AuraFace-v1"
# What of a pack is needed: the other networks of AuraFace are half of its bytes.
FILES = ("glintr100.onnx", "scrfd_10g_bnkps.onnx")


@dataclass(frozen=True, slots=True)
class FacePack:
    """A folder of networks that is there, and how it is called.

    Attributes:
        folder: Where it is.
        name: Its name on the Hub, or that of the folder without its path.
        commit: The commit on the Hub; null for a folder of the user's.
    """

    folder: Path
    name: str
    commit: str | None


def find_pack(pack: str | os.PathLike[str], revision: str | None = None) -> FacePack:
    """Finds the folder of a pack, and downloads what is missing of one on the Hub.

    What is no folder never gets as far as insightface, which would look for a release of its own
    by that name on the internet.

    Args:
        pack: A folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub; null for the main branch.

    Returns:
        The pack, whose folder is there.

    Raises:
        ScoreError: There is no such folder, or a folder was given a revision.
        WeightsError: There is no such repository or revision; the Hub is out of reach and
            the cache does not hold it.
    """
    folder = Path(pack).expanduser()
    if not folder.is_dir():
        return _on_hub(os.fspath(pack), revision)
    if revision is not None:
        raise ScoreError(
            f"pack {os.fspath(pack)!r} is a folder, which has no revision {revision!r}: leave it "
            "out"
        )
    return FacePack(folder.resolve(), folder.resolve().name, None)


def _on_hub(pack: str, revision: str | None) -> FacePack:
    from huggingface_hub import snapshot_download

    if "/" not in pack or not is_hub_name(pack):
        raise ScoreError(
            f"pack {pack!r} is neither a folder nor a name on the Hub: expected a folder of ONNX "
            f"files, or a name such as {AURAFACE!r}"
        )
    try:
        found = Path(snapshot_download(pack, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:  # the Hub's client passes on what its own libraries raise
        raise WeightsError(
            f"no pack {pack!r} at revision {revision or 'main'!r}: neither a folder, nor in the "
            f"cache, nor on the Hub ({said(error)}): check the name, or go online once"
        ) from error
    missing = [name for name in FILES if not (found / name).is_file()]
    if missing:
        raise WeightsError(
            f"pack {pack!r} at {found.name!r} lacks {', '.join(missing)}: expected a pack like "
            f"{AURAFACE!r}, or go online once if only a part of it is in the cache"
        )
    return FacePack(found, pack, found.name)
