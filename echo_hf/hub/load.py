"""Load a benchmark at exactly the requested revision."""

from __future__ import annotations

from pathlib import Path

from datasets import Dataset
from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from echo_hf.config.runs import find_release
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.authors_dataset import OfficialImages, read_official
from echo_hf.hub.manifest import CARD, MANIFEST, PROOFS, Manifest, read_manifest
from echo_hf.hub.release import Release, read_release, verify_release
from echo_hf.hub.remote import KIND, MAIN_BRANCH, hub_errors
from echo_hf.hub.sealed import ProofCounts, check_openings
from echo_hf.hub.submissions import SUBMISSIONS_FOLDER


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
    """Load one config of a benchmark, checked against its manifest.

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
        ReleaseError: There is no such config, a file is not the one that was published, or a
            revealed sample is not the one that was sealed.
    """
    folder, is_release = _find_folder(path_or_repo, revision, [f"{config}/*"], cache_dir, api)
    if not (folder / MANIFEST).exists() and not is_release:
        return read_official(folder, config, str(path_or_repo), images)
    try:
        verify_release(folder, config)
        release = read_release(folder, rows_cache)
        check_openings(release, [config])
    except ReleaseError as error:
        if is_release:
            raise
        # The client believes what its cache holds: only deleting it brings the file again.
        advice = f"delete {str(folder.parent.parent)!r} to download it again"
        raise ReleaseError(f"{error}; this is a cache: {advice}") from error
    return release.datasets[config]


def load_manifest(
    path_or_repo: str | Path,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    api: HfApi | None = None,
) -> Manifest:
    """Load a benchmark's manifest: target, configs with digests, funnel, provenance.

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
    return read_manifest(_find_folder(path_or_repo, revision, [], cache_dir, api)[0])


def _find_folder(
    path_or_repo: str | Path,
    revision: str | None,
    patterns: list[str],
    cache_dir: str | Path | None,
    api: HfApi | None,
) -> tuple[Path, bool]:
    """Return where the files are, and whether that is a local release."""
    if not Path(path_or_repo).is_dir():
        files = [CARD, MANIFEST, PROOFS, *patterns]
        return download_files(path_or_repo, revision, files, cache_dir=cache_dir, api=api), False
    if revision is not None:
        raise HubError(
            f"{str(path_or_repo)!r} is a folder, which has no revision {revision!r}: leave it out"
        )
    return find_release(Path(path_or_repo)), True


def download_files(
    repo: str | Path,
    revision: str | None,
    patterns: list[str] | None = None,
    *,
    cache_dir: str | Path | None = None,
    api: HfApi | None = None,
) -> Path:
    """Download files of a revision, unchecked."""
    repo_id = str(repo)
    try:
        validate_repo_id(repo_id)
    except HFValidationError:
        raise HubError(
            f"{repo_id!r} is neither a folder nor the name of a dataset on the Hub: expected the "
            "folder of a release, or a name like 'my-organization/echo'"
        ) from None
    with hub_errors(f"load {repo_id!r} at revision {revision or MAIN_BRANCH!r}"):
        path = (api or HfApi()).snapshot_download(
            repo_id,
            repo_type=KIND,
            revision=revision,
            cache_dir=cache_dir,
            allow_patterns=patterns,
            ignore_patterns=[f"{SUBMISSIONS_FOLDER}/*"],  # no part of a release
        )
    return Path(path)


def open_release(reference: Path | str, api: HfApi | None = None) -> Release:
    """Open and verify the release at a folder or NAMESPACE/NAME@TAG."""
    repo_id, mark, revision = str(reference).rpartition("@")
    is_folder = not mark or Path(reference).exists()
    folder = Path(reference) if is_folder else download_files(repo_id, revision, api=api)
    verify_release(folder)
    return read_release(folder)


def check_release(reference: Path | str, api: HfApi | None = None) -> ProofCounts:
    """Check the files of a release and its revealed samples, against the tags that sealed them.

    Those are asked for where the release is on the Hub; a folder says itself which roots they had.

    Raises:
        HubError: There is no such release, or a tag that it has revealed is gone.
        ReleaseError: A file has changed, or a sample is not the one that was sealed.
    """
    release = open_release(reference, api)
    repo_id, mark, _ = str(reference).rpartition("@")
    for tag, reveal in release.manifest.revealed.items():
        if not mark or Path(reference).exists():
            continue
        sealed = load_manifest(repo_id, revision=tag, api=api).sealed
        if sealed is None or sealed.root != reveal.root:
            raise ReleaseError(
                f"{str(reference)!r} says that tag {tag!r} was sealed with root {reveal.root!r}, "
                f"and the tag says {sealed and sealed.root!r}: ask its owner"
            )
    return check_openings(release)


def evaluate_module() -> str:
    """Return the path of the module that `evaluate.load` loads.

    Returns:
        The path of a script; the folder around it is a metric Space for the Hub.

    Examples:
        >>> evaluate_module().endswith("echo.py")
        True
    """
    return str(Path(__file__).with_name("metric_space") / "echo.py")
