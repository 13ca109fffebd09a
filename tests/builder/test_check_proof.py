"""What is decided of checks that are proposed together, on boards whose truth is planted."""

from __future__ import annotations

import numpy as np
import pytest

from echo_hf.builder.check_proof import CheckProof, certify_check, decide
from echo_hf.judging.complaints import CommentedSample
from echo_hf.systems.checks import Check, Evidence
from tests.scores.certificates_for_tests import Answered, answer_threads
from tests.systems.test_checks import make

GOOD, WEAK, USELESS = [(0.8, 0.85)] * 4, [(0.4, 0.75)] * 2, [(0.3, 0.7)] * 3 + [(0.5, 0.5)] * 3
THREADS, BOARDS = 32, 60  # threads left for proof: 16 with complaints and 16 with praise


def prove(number: int, answered: Answered) -> tuple[CheckProof, dict[str, CommentedSample]]:
    """A check that a judge answered so: a sample is an output, and a thread has several."""
    samples, evidence, answers = {}, [], {}
    for at, (yes, complained, thread) in enumerate(zip(*answered, strict=True)):
        name = f"s{at}"
        label = "complaint" if complained else "praise"
        fields = {"sample_id": name, "thread": int(thread[1:]), "label": label, "part": "proof"}
        evidence.append(Evidence.model_validate(fields))
        answers[name, "o"] = bool(yes)
        samples[name] = CommentedSample(name, thread, "draw", "d", (), (), ("o",), (), False)
    check = make(f"check_{number}", evidence=evidence)
    return CheckProof(check, {"mira": answers}, {}, {}), samples


def decide_board(rng: np.random.Generator) -> list[Check]:
    kinds = GOOD + WEAK + USELESS
    checks, certificates = [], {}
    for number, kind in enumerate(kinds):
        proof, samples = prove(number, answer_threads(rng, THREADS, *kind))
        certificates[proof.check.key] = certify_check(proof, samples, len(kinds), {})
        checks.append(proof.check)
    return decide(checks, certificates)


@pytest.fixture(scope="module")
def kept() -> np.ndarray:
    """Whether each check of each board is kept: [board, check]."""
    rng = np.random.default_rng(4646)
    boards = [decide_board(rng) for _ in range(BOARDS)]
    return np.array([[check.status == "kept" for check in board] for board in boards])


def test_few_boards_keep_a_useless_check(kept: np.ndarray) -> None:
    assert kept[:, 6:].any(axis=1).mean() <= 0.05


def test_good_checks_are_kept_on_the_fewest_threads_that_are_asked_for(kept: np.ndarray) -> None:
    assert kept[:, :4].mean() >= 0.9


def test_a_kept_check_falls_by_its_j_and_not_by_chance() -> None:
    rng = np.random.default_rng(4647)
    proof, samples = prove(0, answer_threads(rng, THREADS, 0.6, 0.75))
    (certificate,) = certify_check(proof, samples, 1, {"mira": "org/eyes"})
    unlucky = certificate.model_copy(update={"p": 0.4, "j": 0.31})
    weak = certificate.model_copy(update={"p": 0.001, "j": 0.29})
    before = proof.check.model_copy(update={"status": "kept", "certificates": (certificate,)})

    def status_of(check: Check, **update: object) -> str:
        (decided,) = decide([check], {check.key: [unlucky.model_copy(update=update)]})
        return decided.status

    assert status_of(before) == "kept"
    assert status_of(proof.check) == "fell"
    # What was kept by one judge and model says nothing of another.
    assert status_of(before, model="org/other") == "fell"
    assert status_of(before, judge="noor") == "fell"
    (decided,) = decide([before], {before.key: [weak]})
    assert (decided.status, decided.reason) == ("fell", "weak")


def test_earlier_wordings_count_in_the_correction() -> None:
    rng = np.random.default_rng(4648)
    proof, samples = prove(0, answer_threads(rng, THREADS, 0.8, 0.85))
    (certificate,) = certify_check(proof, samples, 1, {})
    lucky = certificate.model_copy(update={"p": 0.02})
    failed = make(
        "cast", status="replaced", certificates=(certificate.model_copy(update={"p": 0.5}),)
    )
    alone = decide([proof.check], {proof.check.key: [lucky]})
    after_others = decide(
        [proof.check],
        {proof.check.key: [lucky]},
        [failed.model_copy(update={"version": version}) for version in range(1, 4)],
    )
    assert [check.status for check in (*alone, *after_others)] == ["kept", "fell"]


def test_more_than_fifty_checks_can_still_be_kept() -> None:
    rng = np.random.default_rng(4649)
    proof, samples = prove(0, answer_threads(rng, 60, 0.95, 0.97))
    (certificate,) = certify_check(proof, samples, 80, {})
    others = [
        make("other", version=version, certificates=(certificate.model_copy(update={"p": 0.9}),))
        for version in range(1, 80)
    ]
    (decided,) = decide([proof.check], {proof.check.key: [certificate]}, others)
    assert decided.status == "kept"
