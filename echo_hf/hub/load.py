"""Load a benchmark, and be sure that it is the revision that was asked for."""

from __future__ import annotations

from pathlib import Path

from datasets import Dataset
from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.manifest import CARD, MANIFEST, Manifest, read_manifest
from echo_hf.hub.official import OfficialImages, read_official
from echo_hf.hub.release import Release, read_release, verify_release
from echo_hf.hub.remote import KIND, MAIN, hub_errors


def load_benchmark(
    path_or_repo: str | Path,
    config: str = "image_to_image",
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    rows_cache: Path | None = None,
    images: OfficialImages | None = None,
    api: HfApi | None = None,
) -> Dataset:
    """Loads one config of a benchmark, checked against its manifest.

    Args:
        path_or_repo: Folder of a release, or a dataset repository, `NAMESPACE/NAME`; one in the
            layout of the ECHO authors' dataset, which has no manifest and no images, as well.
        config: Name of the config.
        revision: Tag, branch or commit of a repository; null for its main branch, as it was when
            it was last seen where the Hub is out of reach.
        cache_dir: Where downloads are kept; null for huggingface_hub's own cache.
        rows_cache: Where rows are copied to when they are read; null for the cache of datasets.
        images: How the images of a dataset in the authors' layout are fetched, and where they
            are kept; null for the usual limits, and a folder in huggingface_hub's cache.
        api: The Hub's client; null for one with huggingface_hub's own address and token.

    Returns:
        Its rows, with images decoded when they are looked at.

    Raises:
        HubError: There is no such repository or revision; or the Hub is out of reach, and the
            cache does not hold that very revision.
        ReleaseError: There is no such config, or a file is not the one that was published.
    """
    folder = _folder(path_or_repo, revision, [f"{config}/*"], cache_dir, api)
    if not (folder / MANIFEST).exists() and not _is_folder(path_or_repo, revision):
        return read_official(folder, config, str(path_or_repo), images)
    try:
        verify_release(folder, config)
    except ReleaseError as error:
        if _is_folder(path_or_repo, revision):
            raise
        # The client believes what its cache holds: only deleting it brings the file again.
        mend = f"delete {str(folder.parent.parent)!r} to download it again"
        raise ReleaseError(f"{error}; this is a cache: {mend}") from error
    return read_release(folder, rows_cache).datasets[config]


def load_manifest(
    path_or_repo: str | Path,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    api: HfApi | None = None,
) -> Manifest:
    """Loads what a benchmark says of itself: target, configs with digests, funnel, provenance.

    Args:
        path_or_repo: Folder of a release, or a dataset repository, `NAMESPACE/NAME`.
        revision: As for `load_benchmark`.
        cache_dir: As for `load_benchmark`.
        api: As for `load_benchmark`.

    Returns:
        The manifest.

    Raises:
        HubError: As for `load_benchmark`.
        ReleaseError: There is no manifest, or it is not understood.
    """
    return read_manifest(_folder(path_or_repo, revision, [], cache_dir, api))


def _folder(
    path_or_repo: str | Path,
    revision: str | None,
    patterns: list[str],
    cache_dir: str | Path | None,
    api: HfApi | None,
) -> Path:
    """Where the files are: a release on disk, or what was downloaded of a revision."""
    if _is_folder(path_or_repo, revision):
        return Path(path_or_repo)
    wanted = [CARD, MANIFEST, *patterns]
    return downloaded(path_or_repo, revision, wanted, cache_dir=cache_dir, api=api)


def downloaded(
    repo: str | Path,
    revision: str | None,
    patterns: list[str] | None = None,
    *,
    cache_dir: str | Path | None = None,
    api: HfApi | None = None,
) -> Path:
    """Downloads files of a revision; nothing is checked yet."""
    repo_id = _repository(repo)
    with hub_errors(f"load {repo_id!r} at revision {revision or MAIN!r}"):
        return Path(
            (api or HfApi()).snapshot_download(
                repo_id,
                repo_type=KIND,
                revision=revision,
                cache_dir=cache_dir,
                allow_patterns=patterns,
            )
        )


def _is_folder(path_or_repo: str | Path, revision: str | None) -> bool:
    if not Path(path_or_repo).is_dir():
        return False
    if revision is not None:
        raise HubError(
            f"{str(path_or_repo)!r} is a folder, which has no revision {revision!r}: leave it out"
        )
    return True


def _repository(path_or_repo: str | Path) -> str:
    try:
        validate_repo_id(str(path_or_repo))
    except HFValidationError:
        raise HubError(
            f"{str(path_or_repo)!r} is neither a folder nor the name of a dataset on the Hub: "
            "expected the folder of a release, or a name like 'my-organization/echo'"
        ) from None
    return str(path_or_repo)


def release_at(reference: Path | str, api: HfApi | None = None) -> Release:
    """Opens the release that a name stands for."""
    repo_id, at, revision = str(reference).rpartition("@")
    if not at or Path(reference).exists():
        return read_release(Path(reference))
    folder = downloaded(repo_id, revision, api=api)
    verify_release(folder)
    return read_release(folder)
