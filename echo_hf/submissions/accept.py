"""Accept a submission: judge its outputs within a budget, and place it among the anchors."""

from __future__ import annotations

import datetime
import hashlib
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.summary import SummaryMixin
from echo_hf._infra.text import escape_markdown
from echo_hf.config.evaluation import EvaluationBase, EvaluationConfig
from echo_hf.config.rubrics import OVERALL
from echo_hf.errors import ConfigError, ScoreError, SubmissionError, describe_install
from echo_hf.hub.submissions import PLACEMENT_FILE, PlacedSplit, Placement, name_folder
from echo_hf.images.store import ImageStore
from echo_hf.judging.anchors import Anchors, check_anchors, read_anchors
from echo_hf.judging.judge import choose_judges, find_rubric, judge
from echo_hf.judging.rate import Rate
from echo_hf.judging.results import SavedIdentity
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.scores.bradley_terry import bradley_terry
from echo_hf.scores.rating_table import DIGEST, OPTIONAL, OUTCOME, REQUIRED
from echo_hf.submissions.checks import make_files_system
from echo_hf.submissions.described import list_places
from echo_hf.submissions.requests import (
    CheckedSubmission,
    OpenSubmission,
    RecordedAnswer,
    SubmissionRequests,
)
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate_outputs
from echo_hf.systems.run_tables import Models, read_table
from echo_hf.tables import OUTPUTS, RATINGS, Table, arrow_rows, fill_draws

ACCEPTED_FOLDER = "accepted"


@dataclass(frozen=True, repr=False)
class AcceptedSubmission(SummaryMixin):
    """The place of a submission, and what its ratings cost, also those of earlier calls."""

    number: int
    placement: Placement | None  # null where the budget ended before all was judged
    url: str
    cost_usd: float


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
    answer = chosen.answer
    if answer and answer.accepted:
        requests.remote.comment(chosen.request, answer.answer)  # if it was stopped before that
        raise ConfigError(f"--accept is {number}, which is accepted: merge {chosen.request.url}")
    if config.board == "pairwise" or not config.judges:
        raise ConfigError(
            "a submission is placed by ratings of the board's judges: expected judges in the "
            "config, and board: ratings"
        )
    with requests.open_quarantine() as quarantine:
        checked = requests.check(chosen, quarantine, submissions)
        if missing := checked.checked.speech.missing:
            raise ConfigError(
                f"words in the outputs cannot be looked at ({missing}), and no judge is asked "
                f"before they are: {describe_install('ocr')}"
            )
        watch = watch or NullProgress()
        try:
            requests.check_quota(chosen.request, submissions)
        except SubmissionError as error:  # a maintainer may accept it all the same
            watch.report_notice(f"beyond its quota: {error}")
        submission = checked.submission
        place = f"{ACCEPTED_FOLDER}/{number}-{submission.digest[:16]}"
        store = ImageStore(requests.folder.cache / place)
        for digest in checked.checked.images.values():
            store.take(ImageStore(Path(quarantine) / "checked" / "submitted"), digest)
    # Beside the cache, so that what was paid is kept wherever the run is.
    folder = RunFolder(requests.folder.root / place)
    folder.cache = store.root / "cache"
    content = requests.read_place(chosen.changes, answer)
    placement = Placement.model_validate_json(content) if content else None
    if placement and placement.submission == submission.digest:  # it was stopped after that
        _finish(requests, chosen, placement, chosen.changes.commit)
    else:
        run = _open_run(config, checked, store, folder)
        anchors = _read_board(run)
        generate_outputs(run, watch=watch)
        judged = judge(run, rubrics=[OVERALL], budget_usd=budget_usd, watch=watch)
        if judged.spent:
            return AcceptedSubmission(number, None, chosen.request.url, _sum_costs(folder))
        placement = _place(run, checked, anchors)
        _write_placement(requests, chosen, placement, watch)
    cost = _sum_costs(folder)
    for path in (folder.root, store.root):
        shutil.rmtree(path, ignore_errors=True)
    return AcceptedSubmission(number, placement, chosen.request.url, cost)


def _sum_costs(folder: RunFolder) -> float:
    ratings = read_table(folder.root, RATINGS)
    return (ratings and pc.sum(ratings["cost_usd"]).as_py()) or 0.0


def _open_run(
    config: EvaluationBase, checked: CheckedSubmission, store: ImageStore, folder: RunFolder
) -> EvaluationRun:
    submission, outputs = checked.submission, checked.checked
    about = submission.name, submission.developer, submission.model
    system = make_files_system(*about, outputs.images, store, outputs.lost)
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
    run = EvaluationRun(own, folder)
    run.benchmark = checked.release.benchmark
    return run


def _read_board(run: EvaluationRun) -> Mapping[str, Anchors]:
    """Read the board's strengths; other judges, models or instructions are refused unasked."""
    config, benchmark = run.config, run.benchmark
    anchors = read_anchors(str(config.anchors), config.protocol, benchmark)
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
    return anchors


def _place(
    run: EvaluationRun, checked: CheckedSubmission, anchors: Mapping[str, Anchors]
) -> Placement:
    """Place the outputs among those of the release, whose strengths stay; what is lost loses."""
    submission, config = checked.submission, run.config
    own = read_table(run.folder.root, RATINGS)
    if own is None:
        raise ScoreError(f"nobody rated submission {submission.name!r}: run it again")
    ratings = _join(run, RATINGS, own, (*REQUIRED, *OPTIONAL))
    outputs = _join(run, OUTPUTS, run.read_outputs(), (*OUTPUTS.key, DIGEST, OUTCOME))
    rated = own.filter(pc.is_valid(own["rating"]))["sample_id"].to_pylist()
    splits = dict[str, PlacedSplit]()
    for split, placed in anchors.items():
        ids = {task.sample_id for task in run.read_tasks().tasks if task.split == split}
        fitted = bradley_terry(
            *(
                rows.filter(pc.is_in(rows["sample_id"], pa.array(ids)))
                for rows in (ratings, outputs)
            ),
            anchors={name: anchor.strength for name, anchor in placed.items()},
            protocol=config.protocol,
            missing="loss",
        )
        strengths = {name: value for name, value in fitted.strength.items() if value is not None}
        strength = strengths.get(submission.name)
        low, high = fitted.interval.get(submission.name) or (None, None)
        splits[split] = PlacedSplit(
            strength=strength,
            low=low,
            high=high,
            rank=None
            if strength is None
            else 1 + sum(value > strength for value in strengths.values()),
            systems=len(fitted.strength),
            rated=len(ids.intersection(rated)),
            asked=len(ids),
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


def _join(run: EvaluationRun, table: Table, own: pa.Table, columns: Collection[str]) -> pa.Table:
    """Join rows of the submission to those of the release, in the columns that scores read."""
    released = run.benchmark.load(table.name)
    rows = arrow_rows(released, [name for name in columns if name in released.column_names])
    names = [name for name in columns if name in own.column_names]
    rows = pa.concat_tables([rows, own.select(names)], promote_options="permissive")
    if "rubric" in names:
        rows = rows.filter(pc.equal(rows["rubric"], OVERALL))
    return fill_draws(rows, table)


def _write_placement(
    requests: SubmissionRequests,
    chosen: OpenSubmission,
    placement: Placement,
    watch: ProgressListener,
) -> None:
    request, commit, text = chosen.request, chosen.changes.commit, placement.to_text()
    folder = name_folder(placement.tag, placement.name)
    # Before it is added: a place that nobody has recorded is anybody's.
    intended = RecordedAnswer(
        commit=commit,
        author=request.author,
        folder=folder,
        placement=hashlib.sha256(text.encode()).hexdigest(),
        seen=chosen.answer.seen if chosen.answer else 0,
    )
    requests.record(request.number, intended)
    watch.report_result(f"{placement.name} has a place, which goes to {request.url}")
    accepted = requests.remote.add_to_request(
        request,
        f"{folder}/{PLACEMENT_FILE}",
        text,
        commit,
        f"Place {placement.name} on {placement.tag}",
    )
    _finish(requests, chosen, placement, accepted)


def _finish(
    requests: SubmissionRequests, chosen: OpenSubmission, placement: Placement, commit: str
) -> None:
    """Record the commit that has a place, and tell the request."""
    request, text = chosen.request, describe_placement(placement, commit)
    intended = requests.read_record().requests[request.number]
    answer = intended.model_copy(update={"answer": text, "accepted": commit})
    requests.record(request.number, answer)
    requests.remote.comment(request, text)


def describe_placement(placement: Placement, commit: str) -> str:
    """Describe a place in Markdown."""
    words = placement.name, placement.tag, ", ".join(placement.judges)
    name, tag, judges = map(escape_markdown, words)
    return "\n\n".join(
        (
            f"Accepted: {name} is placed on {tag} among its systems, whose strengths stay, by "
            f"{judges}. A sample without an output of its own has lost.",
            list_places(placement).to_markdown(),
            "Sealed samples were not asked for. A person merges this request while its last commit "
            f"is `{commit[:10]}`.",
        )
    )
