"""Which weights a model's name stands for: a commit on the Hub, or a digest of a folder.

The local cache is asked before the network, so that a run on a machine that has the model goes on
with the very commit it began with, also when the branch has moved on or the Hub is out of reach.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from echo_hf.engines.families import family_of
from echo_hf.errors import EngineError

CONFIG = "config.json"
COMMIT = re.compile(r"[0-9a-f]{40}")
# What a tokenizer, a template and a processor are made of; a README decides no answer.
SETTINGS = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken")
WEIGHTS = ("*.safetensors", "*.gguf", "*.bin", "*.pt")
PIECES = 64
PIECE = 4096


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model whose weights cannot change any more.

    Attributes:
        source: What a library loads: the name on the Hub, or the folder.
        name: How it is called: the name on the Hub, or that of the folder without its path.
        revision: Commit on the Hub, or `sha256:` and a digest of the folder.
        family: Whose rule its pictures follow, null for none that is known.
    """

    source: str
    name: str
    revision: str
    family: str | None

    @property
    def commit(self) -> str | None:
        """The revision to load from the Hub, null for a folder."""
        return None if self.revision.startswith("sha256:") else self.revision


def find_checkpoint(
    model: str, revision: str | None = None, *, before_asking: Callable[[], None] | None = None
) -> Checkpoint:
    """Finds the commit or the folder that a name stands for; the weights are not read as a whole.

    Args:
        model: A name on the Hub, or a folder.
        revision: Branch, tag or commit on the Hub; null for the main branch.
        before_asking: Called before the Hub has to be asked; what it raises passes through.

    Returns:
        The checkpoint.

    Raises:
        EngineError: There is no such folder, repository or revision, or the Hub is out of reach
            and the cache does not hold it.
    """
    folder = Path(model)
    if folder.is_dir():
        if revision is not None:
            raise EngineError(
                f"model {model!r} is a folder, which has no revision {revision!r}: leave it out"
            )
        return Checkpoint(str(folder), folder.resolve().name, _digest(folder), family_of(model))
    return _on_hub(model, revision or "main", before_asking)


def _on_hub(model: str, revision: str, before_asking: Callable[[], None] | None) -> Checkpoint:
    settings = _cached(model, revision)
    if settings is None:
        if before_asking and is_hub_name(model) and not COMMIT.fullmatch(revision):
            before_asking()
        settings = _downloaded(model, revision)
    # By the name, if a pinned commit's answers are only read back where the model is not.
    if settings is None:
        return Checkpoint(model, model, revision, family_of(model))
    return Checkpoint(model, model, settings.parent.name, family_of(str(settings.parent)))


def _cached(model: str, revision: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    if not is_hub_name(model):
        return None
    cached = try_to_load_from_cache(model, CONFIG, revision=revision)
    return Path(cached) if isinstance(cached, str) else None


def is_hub_name(model: str) -> bool:
    """Whether a name may be one on the Hub.

    Args:
        model: A name, or a folder.

    Returns:
        False for what the Hub could not call a model, such as most paths.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return True


def _downloaded(model: str, revision: str) -> Path | None:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(model, CONFIG, revision=revision))
    except Exception as error:  # the Hub's client passes on what its own libraries raise
        if COMMIT.fullmatch(revision):
            return None
        said = " ".join(str(error).split())
        raise EngineError(
            f"no model {model!r} at revision {revision!r}: neither a folder, nor in the cache, nor "
            f"on the Hub ({type(error).__name__}: {said[:200]}): check the name, or give the "
            "commit as `revision` to read stored answers without the model"
        ) from error


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    weights = _weights(folder)
    if not (folder / CONFIG).is_file() or not weights:
        raise EngineError(
            f"folder {str(folder)!r} holds no model: expected {CONFIG!r} and weights such as "
            "'model.safetensors'"
        )
    settings = {file for pattern in SETTINGS for file in folder.glob(pattern)}
    for file in sorted(settings - set(weights)):
        digest.update(framed(file.name.encode()) + framed(file.read_bytes()))
    for file in weights:
        digest.update(framed(file.name.encode()) + b"%d:" % file.stat().st_size)
        for piece in pieces(file):
            digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _weights(folder: Path) -> list[Path]:
    found = (sorted(folder.glob(pattern)) for pattern in WEIGHTS)
    return next((files for files in found if files), [])


def pieces(file: Path) -> Iterator[bytes]:
    """Pieces from all over a file of weights, which tell two trainings of a model apart.

    Args:
        file: The weights.

    Yields:
        The same number of pieces of any file.
    """
    # Two trainings of one model differ in every layer: pieces tell them apart, and take no minutes.
    last = max(0, file.stat().st_size - PIECE)
    with file.open("rb") as weights:
        for number in range(PIECES):
            weights.seek(last * number // (PIECES - 1))
            yield weights.read(PIECE)


def framed(data: bytes) -> bytes:
    """Bytes after their own number, so that what is joined can be told apart.

    Example:
        >>> framed(b"ab") + framed(b"c")
        b'2:ab1:c'
    """
    return b"%d:" % len(data) + data
