"""Accept a submission: judge its outputs within a budget, and place it among the anchors."""

from __future__ import annotations

import datetime
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.summary import SummaryMixin
from echo_hf._infra.text import escape_markdown, format_interval, format_rounded, format_table
from echo_hf.config.evaluation import EvaluationBase, EvaluationConfig
from echo_hf.config.rubrics import OVERALL
from echo_hf.errors import ConfigError, ScoreError
from echo_hf.hub.submissions import PLACEMENT_FILE, PlacedSplit, Placement, name_folder
from echo_hf.images.store import ImageStore
from echo_hf.judging.anchors import check_anchors, read_anchors
from echo_hf.judging.judge import choose_judges, find_rubric, judge
from echo_hf.judging.rate import Rate
from echo_hf.judging.results import SavedIdentity
from echo_hf.judging.score import score
from echo_hf.judging.session import write_table
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.submissions.checks import make_files_system
from echo_hf.submissions.requests import (
    CheckedSubmission,
    OpenSubmission,
    RecordedAnswer,
    SubmissionRequests,
)
from echo_hf.systems.carried import store_rows
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate_outputs
from echo_hf.systems.run_tables import Models, read_table
from echo_hf.tables import OUTPUTS, RATINGS, arrow_rows

ACCEPTED_FOLDER = "accepted"


@dataclass(frozen=True, repr=False)
class AcceptedSubmission(SummaryMixin):
    """The place of a submission, and what it cost to find."""

    number: int
    placement: Placement | None  # null where the budget ended before all was judged
    url: str
    cost_usd: float
    unread: str | None = None  # why words in its outputs were not looked at


def accept_submission(
    config: EvaluationBase,
    requests: SubmissionRequests,
    number: int,
    budget_usd: float,
    watch: ProgressListener | None = None,
) -> AcceptedSubmission:
    """Check a submission again, have the judges rate it, and write its place to its request.

    The same call goes on after a stop, or after the end of a budget; a person merges.

    Raises:
        ConfigError: No submission has this number, or the config has no board to place it on.
        JudgeError: A judge cannot be asked, or has no known price.
        ScoreError: The judges or models are not those of the release's board.
        SubmissionError: Something speaks against it.
    """
    submissions = requests.list_open()
    chosen = next((each for each in submissions if each.request.number == number), None)
    if chosen is None:
        numbers = ", ".join(str(each.request.number) for each in submissions)
        raise ConfigError(
            f"--accept is {number}: expected an open submission ({numbers or 'none'})"
        )
    if chosen.answer and chosen.answer.accepted:
        raise ConfigError(f"--accept is {number}, which is accepted: merge {chosen.request.url}")
    if config.board == "pairwise" or not config.judges:
        raise ConfigError(
            "a submission is placed by ratings of the board's judges: expected judges in the "
            "config, and board: ratings"
        )
    with requests.open_quarantine() as folder:
        checked = requests.check(chosen, folder, submissions)
        root = requests.folder.cache / ACCEPTED_FOLDER
        root /= f"{number}-{checked.submission.digest[:16]}"
        store = ImageStore(root / "submitted")
        for digest in checked.checked.images.values():
            store.take(ImageStore(Path(folder) / "checked" / "submitted"), digest)
    unread = checked.checked.speech.missing
    run = _open_run(config, checked, store, root)
    _check_board(run)
    generate_outputs(run, watch=watch)
    judged = judge(run, rubrics=[OVERALL], budget_usd=budget_usd, watch=watch)
    cost = judged.cost_usd or 0.0
    if judged.spent:
        return AcceptedSubmission(number, None, chosen.request.url, cost, unread)
    placement = _place(run, checked)
    return _write_placement(requests, chosen, placement, root, cost, unread)


def _open_run(
    config: EvaluationBase, checked: CheckedSubmission, store: ImageStore, root: Path
) -> EvaluationRun:
    submission = checked.submission
    system = make_files_system(
        submission.name, submission.developer, submission.model, checked.checked.images, store
    )
    reference = checked.release.benchmark.reference
    own = EvaluationConfig(
        name=submission.name,
        benchmark=reference,
        systems=(system,),
        judges=config.judges,
        rubrics=config.rubrics,
        protocol=config.protocol,
        anchors=reference,
        runner=config.runner,
        plugins=config.plugins,
    )
    return EvaluationRun(own, RunFolder(root))


def _check_board(run: EvaluationRun) -> None:
    """Refuse other judges, models or instructions than the board's, before any is asked."""
    config, benchmark = run.config, run.benchmark
    anchors = read_anchors(str(config.anchors), config.protocol, benchmark.cache)
    judges, identity = choose_judges(config, None), SavedIdentity(**benchmark.identity())
    models = {each.name: each.answered_by for each in judges}
    if not anchors:
        raise ScoreError(f"{config.anchors!r} has no board: expected a release with ratings")
    for split, placed in anchors.items():
        check_anchors(placed, split, identity, models, Models({}, models))
    rated = arrow_rows(benchmark.load(RATINGS.name), ["judge", "rubric", "prompt_digest"])
    rated = rated.filter(pc.equal(rated["rubric"], OVERALL))
    for each in judges:
        rubric = find_rubric(config, each, OVERALL)
        prompt = Rate(each, "model_budget", {}, OVERALL, rubric, config.protocol).prompt.text
        digests = rated.filter(pc.equal(rated["judge"], each.name))["prompt_digest"].to_pylist()
        if {*digests} - {None, hashlib.sha256(prompt.encode()).hexdigest()}:
            raise ScoreError(
                f"judge {each.name!r} has other instructions than on the release's board: expected "
                "its prompt_file or rubrics, and the version of echo-hf that judged it"
            )


def _place(run: EvaluationRun, checked: CheckedSubmission) -> Placement:
    """Score the outputs beside those of the release, whose strengths stay."""
    submission, config = checked.submission, run.config
    folder = RunFolder(run.folder.root / "board", run.folder)
    folder.root.mkdir(exist_ok=True)
    theirs = arrow_rows(run.benchmark.load(RATINGS.name), list(RATINGS.columns))
    theirs = theirs.filter(pc.equal(theirs["rubric"], OVERALL)).cast(RATINGS.schema)
    own = read_table(run.folder.root, RATINGS)
    if own is None:
        raise ScoreError(f"nobody rated submission {submission.name!r}: run it again")
    outputs = pa.Table.from_pylist(
        store_rows(run.benchmark.load(OUTPUTS.name), OUTPUTS, folder.images), OUTPUTS.schema
    )
    write_table(RATINGS, folder.root, theirs, own)
    write_table(OUTPUTS, folder.root, outputs, run.read_outputs())
    splits = dict[str, PlacedSplit]()
    for split in score(EvaluationRun(config, folder)).splits:
        fitted = split.win_rates.details.bradley_terry if split.win_rates else None
        if fitted is None:
            continue
        rated = own.filter(pc.is_valid(own["rating"]))["sample_id"]
        strengths = {name: value for name, value in fitted.strength.items() if value is not None}
        strength = strengths.get(submission.name)
        low, high = fitted.interval.get(submission.name) or (None, None)
        ids = {task.sample_id for task in run.read_tables().tasks[split.split]}
        splits[split.split] = PlacedSplit(
            strength=strength,
            low=low,
            high=high,
            rank=None
            if strength is None
            else 1 + sum(value > strength for value in strengths.values()),
            systems=len(fitted.strength),
            rated=len(ids.intersection(rated.to_pylist())),
        )
    return Placement(
        name=submission.name,
        model=submission.model,
        developer=submission.developer,
        repo_id=str(submission.repo_id),
        tag=str(submission.tag),
        manifest=submission.manifest,
        submission=submission.digest,
        protocol=config.protocol,
        judges=tuple(sorted({*own["judge"].to_pylist()})),
        splits=splits,
        day=datetime.datetime.now(datetime.UTC).date(),
    )


def _write_placement(
    requests: SubmissionRequests,
    chosen: OpenSubmission,
    placement: Placement,
    root: Path,
    cost_usd: float,
    unread: str | None,
) -> AcceptedSubmission:
    request, commit = chosen.request, chosen.changes.commit
    folder = name_folder(placement.tag, placement.name)
    path = f"{folder}/{PLACEMENT_FILE}"
    accepted = requests.remote.add_to_request(
        request, path, placement.to_text(), commit, f"Place {placement.name} on {placement.tag}"
    )
    text = describe_placement(placement, accepted)
    answer = RecordedAnswer(
        commit=commit, author=request.author, folder=folder, answer=text, accepted=accepted
    )
    requests.record(request.number, answer)
    requests.remote.comment(request, text)
    shutil.rmtree(root, ignore_errors=True)
    return AcceptedSubmission(request.number, placement, request.url, cost_usd, unread)


def describe_placement(placement: Placement, commit: str) -> str:
    """Describe a place in Markdown."""
    words = placement.name, placement.tag, ", ".join(placement.judges)
    name, tag, judges = map(escape_markdown, words)
    rows = [
        (
            escape_markdown(part),
            format_rounded(split.strength),
            format_interval(split.ends),
            "-" if split.rank is None else f"{split.rank} of {split.systems}",
            f"{split.rated:,}",
        )
        for part, split in placement.splits.items()
    ]
    return "\n\n".join(
        (
            f"Accepted: {name} is placed on {tag} among its systems, whose strengths stay, by "
            f"{judges}.",
            format_table(["split", "strength, log odds", "95 %", "place", "samples"], rows, 4),
            "Sealed samples were not asked for. A person merges this request while its last commit "
            f"is `{commit[:10]}`.",
        )
    )
