"""Prove checks: ask judges about the outputs in posts, blind to what people said of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from echo_hf.config.evaluation import EvaluationBase, JudgeConfig
from echo_hf.engines.base import ImageRef
from echo_hf.hub.check_changes import CheckReason
from echo_hf.images.store import ImageStore
from echo_hf.judging import judge as judging
from echo_hf.judging.applicability import Applicability, build_applicability_rows
from echo_hf.judging.complaints import CommentedSample
from echo_hf.judging.failure_rates import take_majority, vote
from echo_hf.judging.rate import TO_RATE, build_task_row, to_dataset
from echo_hf.judging.session import JudgeTask
from echo_hf.metrics.rubric import make_rubric_metric
from echo_hf.scores.certificate import KEPT_J, adjust_p_values, certify
from echo_hf.systems.base import Task
from echo_hf.systems.checks import VOTE, Check, CheckCertificate
from echo_hf.tables import DRAW, Row

# p has to be small enough to stand the correction for all checks.
MIN_DRAWS, DRAWS_PER_CHECK = 999, 40
COMPLAINT, PRAISE = "complaint", "praise"
Answers = Mapping[tuple[str, str], bool]  # by sample and output: whether a judge said yes


class CheckProof(NamedTuple):
    """Answers of judges about a check, and which samples it fits; null for one not known."""

    check: Check
    answers: Mapping[str, Answers]
    fits: Mapping[str, bool | None]
    prompts: Mapping[str, str]  # digests of instructions, by judge


def list_outputs(
    check: Check, samples: Mapping[str, CommentedSample]
) -> Iterator[tuple[CommentedSample, str, str]]:
    """Yield the outputs that a check is proven on: sample, image, and complaint or praise."""
    for each in check.evidence:
        if each.part == "proof" and each.sample_id in samples:
            for image in samples[each.sample_id].outputs:
                yield samples[each.sample_id], image, each.label


def build_questions(
    checks: Sequence[Check],
    samples: Mapping[str, CommentedSample],
    config: EvaluationBase,
    judges: Sequence[JudgeConfig],
    sent: judging.SentImages,
) -> Iterator[JudgeTask]:
    """Build a question for each judge and check, so that one model at a time is in memory."""
    proven = {check.key: list(list_outputs(check, samples)) for check in checks}
    if config.applicability is not None:
        for check in checks:
            if check.fits:
                tasks = [make_task(sample, sent.images) for sample, *_ in proven[check.key]]
                tasks = list({task.sample_id: task for task in tasks}.values())
                digests = (image.sha256 for task in tasks for image in task.inputs)
                images = sent.load(digests, "model_budget")
                asked = (make_rubric_metric(check.rubric, {}),)
                stage = Applicability(config.applicability, images, asked)
                rows = build_applicability_rows(tasks)
                yield JudgeTask(judging.APPLICABILITY, check.key, stage, rows)
    for judge in judges:
        for check in checks:
            rows = (
                {
                    **build_task_row(make_task(sample, sent.images)),
                    "system": image,
                    DRAW: 0,
                    "output": image,
                    "repeat": repeat,
                    "spared": False,
                }
                for sample, image, _ in proven[check.key]
                for repeat in range(judge.repeats)
            )
            dataset = to_dataset(TO_RATE, rows)
            yield judging.rating_question(judge, check.rubric, config.protocol, dataset, sent)


def make_task(sample: CommentedSample, images: ImageStore) -> Task:
    inputs = tuple(ImageRef(digest, images.path(digest)) for digest in sample.inputs)
    return Task(sample.sample_id, sample.digest, sample.split, sample.prompt, inputs, sample.urls)


def read_answers(rows: Sequence[Row]) -> tuple[Answers, str]:
    """Read a judge's answer to each output, of several the more frequent, and its prompt."""
    answers: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["rating"] is not None:
            answers.setdefault((row["sample_id"], row["system"]), []).append(row["rating"])
    return take_majority(answers), rows[0]["prompt_digest"] if rows else ""


def certify_check(
    proof: CheckProof,
    samples: Mapping[str, CommentedSample],
    checks: int,
    models: Mapping[str, str | None],
) -> tuple[CheckCertificate, ...]:
    """Compute the certificate of each judge, and of their vote where there are several."""
    threads = {each.sample_id: str(each.thread) for each in proof.check.evidence}
    outputs = list(list_outputs(proof.check, samples))
    proven = {each.sample_id for each in proof.check.evidence if each.part == "proof"}
    unread = len(proven - {sample.sample_id for sample, *_ in outputs})  # a broken image
    fitting = [each for each in outputs if proof.fits.get(each[0].sample_id) is not False]
    by_judge = dict(proof.answers)
    # One that answered nothing has no part in the vote, which would be empty.
    if len(answered := [own for own in by_judge.values() if own]) > 1:
        by_judge[VOTE] = vote(answered)
    certificates = []
    for judge, answers in by_judge.items():
        known = [each for each in fitting if (each[0].sample_id, each[1]) in answers]
        certificate = certify(
            [answers[sample.sample_id, image] for sample, image, _ in known],
            [label == COMPLAINT for *_, label in known],
            [threads[sample.sample_id] for sample, *_ in known],
            draws=max(MIN_DRAWS, DRAWS_PER_CHECK * checks),
            checks=checks,
        )
        fields: dict[str, Any] = {"judge": judge, "model": models.get(judge)}
        fields |= {"prompt_digest": proof.prompts.get(judge)}
        fields |= {"unanswered": len(fitting) - len(known) + unread}
        fields |= {"not_fitting": len(outputs) - len(fitting)}
        certificates.append(CheckCertificate.from_certificate(certificate, **fields))
    return tuple(certificates)


def decide(
    checks: Sequence[Check],
    certificates: Mapping[str, Sequence[CheckCertificate]],
    others: Iterable[Check] = (),
) -> list[Check]:
    """Decide which checks are kept, by the vote, or by the judge where there is one.

    p values of a judge are corrected for all the checks that it answered, those of `others` too,
    which are not decided anew. A check that was kept before falls only where its J does, so that it
    is not tried until chance lets it fall.
    """
    certificates = {**{check.key: check.certificates for check in others}, **certificates}
    adjusted: dict[str, list[CheckCertificate]] = {key: [] for key in certificates}
    judges = dict.fromkeys(each.judge for rows in certificates.values() for each in rows)
    for judge in judges:
        own = {
            key: each for key, rows in certificates.items() for each in rows if each.judge == judge
        }
        p_values = adjust_p_values([each.p for each in own.values()])
        for (key, each), p in zip(own.items(), p_values, strict=True):
            is_kept = each.reason is None and each.certificate.passes(p) and p is not None
            adjusted[key].append(each.model_copy(update={"p_adjusted": p, "kept": is_kept}))
    decided = []
    for check in checks:
        rows = adjusted[check.key]
        current = check.model_copy(update={"certificates": tuple(rows)})
        status, reason = _decide_status(check, current.deciding)
        decided.append(current.model_copy(update={"status": status, "reason": reason}))
    return decided


def _decide_status(check: Check, deciding: CheckCertificate | None) -> tuple[str, str | None]:
    if deciding is None or deciding.reason is not None or deciding.j is None:
        return "proposed", CheckReason.FEW_ANSWERS.value
    before = check.find_certificate(deciding.judge)
    was_kept = check.status == "kept" and before is not None and before.model == deciding.model
    if deciding.kept or (was_kept and deciding.j >= KEPT_J):
        return "kept", None
    return "fell", (CheckReason.WEAK if deciding.j < KEPT_J else CheckReason.BY_CHANCE).value


def needs_proof(check: Check) -> bool:
    """Return whether a check is proven (again): one that fell only with the threads it lacked.

    Trying it again at every turn would keep it by chance in the end.
    """
    deciding = check.deciding
    if deciding is None or deciding.reason is not None or deciding.kept or check.status == "kept":
        return True
    lacked = min(deciding.complaint_threads, deciding.praise_threads)
    now = min(map(check.count_threads, (COMPLAINT, PRAISE)))
    return now >= lacked + (deciding.needed or lacked)
