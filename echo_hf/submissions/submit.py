"""Submit outputs to the board of a release: check and measure them, and open a pull request."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import CommitOperationAdd, HfApi
from pydantic import ValidationError

from echo_hf._infra.atomic import replace_folder
from echo_hf._infra.summary import SummaryMixin
from echo_hf._infra.text import escape_markdown
from echo_hf.config.checks import find_secrets, first_error
from echo_hf.config.systems import SystemConfig
from echo_hf.errors import ConfigError, HubError, SubmissionError
from echo_hf.hub.manifest import get_version
from echo_hf.hub.release import read_config_rows, read_release
from echo_hf.hub.remote import Remote
from echo_hf.hub.submissions import (
    SHARD_NAME,
    SUBMISSION_FILE,
    SUBMITTED_PATH,
    Refusal,
    Submission,
    SubmittedImage,
    check_submission_name,
    name_folder,
    write_outputs,
)
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.submissions.checks import (
    CheckedOutputs,
    KnownFile,
    KnownOutputs,
    check_count,
    check_outputs,
    is_other_draw,
)
from echo_hf.submissions.described import Cells, list_counts, list_figures
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import ON_HUB, Benchmark, find_release_folder
from echo_hf.systems.files import NO_FILE, FilesSystem, parse_source
from echo_hf.tables import OUTPUTS, Outcome

LEAVES = ("sample_id", "system", "image.path")
MAX_KNOWN_BYTES = 1 << 32  # of outputs of others that are fetched and looked at


@dataclass(frozen=True)
class SubmittedTo:
    """The release that outputs are submitted to, and its place on the Hub if it has one."""

    benchmark: Benchmark
    manifest: str
    repo_id: str | None = None
    tag: str | None = None
    commit: str | None = None


def open_submitted_to(reference: str, api: HfApi) -> SubmittedTo:
    """Open a release by its folder or ORGANISATION/NAME@TAG."""
    repo_id, _, tag = reference.rpartition("@")
    place: dict[str, str] = {}
    if Path(reference).exists():
        reference = str(find_release_folder(reference))
    elif not (repo_id and tag and ON_HUB.fullmatch(reference)):
        raise ConfigError(
            f"RELEASE is {reference!r}: expected ORGANISATION/NAME@TAG, or the folder of a release"
        )
    else:
        commit = Remote(api, repo_id).find_commit(tag)
        place = {"repo_id": repo_id, "tag": tag, "commit": commit}
    benchmark = Benchmark(reference, api=api)
    return SubmittedTo(benchmark, benchmark.read_manifest().compute_digest(), **place)


def find_known(
    release: SubmittedTo,
    remote: Remote | None,
    own: Collection[str],
    others: Mapping[str, str] | None = None,
) -> KnownOutputs:
    """Find the outputs in all tags of a repository, and in submissions that were merged.

    `own` are folders of the same model's submissions to other tags, which are left out; `others`
    are those of further submissions, by the commits that have them.
    """
    origins, files = dict[str, str](), dict[str, tuple[int, KnownFile]]()  # by content
    if remote is None:
        folder = read_release(Path(release.benchmark.reference))
        if OUTPUTS.name in folder.manifest.configs:
            for output in read_config_rows(folder, OUTPUTS.name):
                origins[output["image"] or ""] = repr(output["system"])
        return KnownOutputs(origins, release.benchmark)
    state = remote.require_state()
    for commit, only in {state.head: "", **(others or {})}.items():
        for path, file in sorted(remote.list_files(commit).items()):
            match = SUBMITTED_PATH.fullmatch(path)
            if not match or not SHARD_NAME.fullmatch(match[4]) or match[1] in own:
                continue
            if only in ("", match[1]):
                files[file.blob_id] = file.size, KnownFile(commit, path)
                for row in remote.read_leaves(commit, path, ("sha256",)):
                    origins[row["sha256"]] = f"submission {match[3]!r} to {match[2]!r}"
    local = set[str]()  # what the release itself has is here
    for tag, commit in state.tags.items():
        for path, file in sorted(remote.list_files(commit).items()):
            if path.startswith(f"{OUTPUTS.name}/") and path.endswith(".parquet"):
                files[file.blob_id] = file.size, KnownFile(commit, path)
                local |= {file.blob_id} if tag == release.tag else set()
                for row in remote.read_leaves(commit, path, LEAVES):
                    digest = str((row["image"] or {}).get("path")).partition(".")[0]
                    origins[digest] = f"{row['system']!r} of {tag}"
    others_files = [entry for content, entry in files.items() if content not in local]
    totals = accumulate(size for size, _ in others_files)
    count = sum(total <= MAX_KNOWN_BYTES for total in totals)
    near = tuple(file for _, file in others_files[:count])
    return KnownOutputs(origins, release.benchmark, remote, near, len(others_files) - count)


@dataclass(frozen=True, repr=False)
class SubmitResult(SummaryMixin):
    """A submission, and the folder or pull request that it went to, if any."""

    submission: Submission
    checked: CheckedOutputs
    path: Path | None = None
    url: str | None = None


def submit(
    release: str,
    images: str,
    *,
    model: str | None = None,
    developer: str = "unknown",
    code: str | None = None,
    to: Path | None = None,
    dry_run: bool = False,
    api: HfApi | None = None,
    watch: ProgressListener | None = None,
) -> SubmitResult:
    """Check outputs of a release's samples, measure them, and propose them for its board.

    Args:
        release: `ORGANISATION/NAME@TAG`; with `to` or `dry_run` also the folder of a release.
        images: NAME=FOLDER with an image for each sample, named by its id; or NAME=FILE.csv with
            the columns id and path.
        model: Repository or name of the model; null for the name.
        developer: The maker of the model.
        code: Address of the code that made the outputs.
        to: Folder to write the submission into, in place of a pull request.
        dry_run: Only check and measure.
        api: The Hub's client; null for one with huggingface_hub's own address and token.
        watch: Is told of progress.

    Returns:
        The submission, and where it went.

    Raises:
        ConfigError: An argument is not what was expected.
        HubError: The Hub knows no such release, or refuses the request.
        SubmissionError: The outputs are no submission to this release; its `reason` says why.
    """
    system, api = parse_source(images), api or HfApi()
    name = check_submission_name(system.name)
    stated = {"model": model or name, "developer": developer, "code": code}
    if secret := next(find_secrets(stated), None):
        raise ConfigError(f"a submission is public, and has {secret}: leave it out")
    place = open_submitted_to(release, api)
    sends = to is None and not dry_run
    if sends and place.repo_id is None:
        raise ConfigError(
            f"{release!r} is a folder, which takes no submission: name ORGANISATION/NAME@TAG, or "
            "add --to FOLDER or --dry-run"
        )
    remote, own = Remote(api, place.repo_id) if place.repo_id else None, set[str]()
    if remote is not None:
        state = remote.require_state()
        own = {name_folder(tag, name) for tag in state.tags if tag != place.tag}
        if sends:
            remote.check_token()
            check_free(remote, name_folder(place.tag, name), state.head)
    files = FilesSystem(system)
    files.preflight()
    with TemporaryDirectory(prefix="echo-hf-") as temporary:
        root = Path(temporary)
        known = find_known(place, remote, own)
        checked = check_outputs(name, _read_outputs(files, system, known), known, root, watch)
        store, folder = ImageStore(root / "submitted"), root / "bundle" / name
        outputs = (
            SubmittedImage(sample, store.open(digest), digest, checked.sizes[sample])
            for sample, digest in sorted(checked.images.items())
        )
        try:
            submission = Submission(
                name=name,
                **stated,
                repo_id=place.repo_id,
                tag=place.tag,
                commit=place.commit,
                manifest=place.manifest,
                echo_hf=get_version(),
                samples=checked.asked,
                counts=checked.counts,
                figures=checked.figures,
                files=write_outputs(folder, outputs),
            )
        except ValidationError as error:
            raise ConfigError(first_error(error, "submission", Submission)) from None
        submission = submission.model_copy(update={"digest": submission.compute_digest()})
        text = submission.model_dump_json(indent=2) + "\n"
        (folder / SUBMISSION_FILE).write_text(text, "utf-8")
        if dry_run:
            return SubmitResult(submission, checked)
        if to is not None or remote is None:
            target = (to or Path()).resolve() / name
            earlier = {path.name for path in target.glob("outputs-*.parquet")}
            with replace_folder(target, {SUBMISSION_FILE, *earlier}) as partial:
                shutil.copytree(folder, partial, dirs_exist_ok=True)
            return SubmitResult(submission, checked, path=target)
        url = _propose(remote, submission, folder)
        return SubmitResult(submission, checked, url=url)


def check_free(remote: Remote, folder: str, commit: str) -> None:
    """Refuse a folder that a merged submission has."""
    if any(path.startswith(f"{folder}/") for path in remote.list_files(commit)):
        message = f"{remote.repo_id!r} has {folder!r} already: choose another name"
        raise SubmissionError(Refusal.NAME_TAKEN, message)


def _read_outputs(
    files: FilesSystem, system: SystemConfig, known: KnownOutputs
) -> Iterator[tuple[str, bytes | str]]:
    """Yield the output of each sample, and an empty one for each other file that is there."""
    tasks, named = known.benchmark.tasks(None).tasks, files.list_samples()
    asked = {task.sample_id for task in tasks}
    firsts = sum(not is_other_draw(name, asked) for name in named)
    check_count(system.name, firsts, known.count_samples())
    for name in sorted(named - asked):
        yield name, ""
    for task in tasks:
        output = files.draw(Task(task.sample_id, "", task.split, ""))
        is_broken = output.outcome is Outcome.FAILED and output.code != NO_FILE
        if output.image is not None or is_broken:
            yield task.sample_id, output.image or output.text or str(output.outcome)


def _propose(remote: Remote, submission: Submission, folder: Path) -> str:
    place = name_folder(submission.tag, submission.name)
    operations = [
        CommitOperationAdd(f"{place}/{path.name}", str(path)) for path in sorted(folder.iterdir())
    ]
    title = make_title(submission)
    head = remote.require_state().head
    info = remote.commit(
        operations, title, head, description=describe_submission(submission), create_pr=True
    )
    if info.pr_url is None:
        raise HubError(f"{remote.repo_id!r} opened no pull request: try again later")
    return str(info.pr_url)


def make_title(submission: Submission) -> str:
    return f"Submit {submission.name} to {submission.tag}"


def describe_submission(submission: Submission) -> str:
    """Describe a submission in Markdown, with all that is its author's own escaped."""
    facts = {
        "model": submission.model,
        "developer": submission.developer,
        "code": submission.code or "not given",
        "release": f"{submission.repo_id}@{submission.tag}",
        "samples asked for": f"{submission.samples:,}, no sealed ones",
        "digest": submission.digest,
    }
    tables = (
        Cells(("about", "this submission"), 2, [*facts.items()]),
        list_counts(submission.counts),
        list_figures(submission.figures),
    )
    return "\n\n".join(
        (
            f"Outputs of {escape_markdown(submission.name)}, checked and measured without a judge.",
            *(table.to_markdown() for table in tables if table.rows),
            "Nothing is judged before a maintainer accepts it.",
        )
    )
