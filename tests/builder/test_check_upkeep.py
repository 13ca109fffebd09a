"""Checks are retired when nobody needs them, and lose what rests on forgotten posts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
import yaml

from echo_hf.builder.check_upkeep import drop_evidence, list_check_changes, retire_checks
from echo_hf.builder.checks import check_complaints
from echo_hf.builder.takedown import Removal, forget
from echo_hf.builder.update import BACKUP_FOLDER, update
from echo_hf.engines.base import Request
from echo_hf.errors import EngineError, JudgeError, RunError
from echo_hf.hub.diff import diff
from echo_hf.hub.release import read_release
from echo_hf.judging.complaints import Complaints
from echo_hf.judging.results import SavedResults
from echo_hf.judging.session import lock_judging
from echo_hf.systems.checks import Check, CheckCertificate, read_own_checks, write_checks
from echo_hf.tables import LABELS
from tests.builder.test_takedown import holding
from tests.complaints_corpus import DrawnEyes, write_config, write_posts
from tests.judging.test_complaints import DAY, commented
from tests.systems.test_checks import make

WINDOW = 180
RELEASED = {"sample_id": "s", "thread": 0, "label": "complaint", "part": "proof"}


def kept(**fields: Any) -> Check:
    return make(keywords=["cast"], **{"status": "kept", **fields})


def complaints(*days: int | None) -> Complaints:
    """A complaint for each number of days before the newest post; null for an unknown time."""
    samples = [
        replace(commented(number, "cast", -(day or 0)), **({} if day is not None else TIMELESS))
        for number, day in enumerate(days)
    ]
    return Complaints((*samples, commented(99, None, 0)), {})


TIMELESS: dict[str, Any] = {"time": None}


def decide(check: Check, said: Complaints, results: SavedResults | None = None) -> tuple[Any, Any]:
    (decided,) = retire_checks([check], said, results, WINDOW)
    return decided.status, decided.reason


@pytest.mark.parametrize("status", ["proposed", "kept", "fell"])
@pytest.mark.parametrize(
    ("days", "gone"),
    [([], True), ([181], True), ([180], True), ([179], False), ([400, 3], False), ([400], True)],
)
def test_a_check_is_retired_when_nobody_complained_in_the_window(
    status: str, days: list[int], gone: bool
) -> None:
    expected = ("retired", "complaint_gone") if gone else (status, None)
    assert decide(kept(status=status), complaints(*days)) == expected


def test_a_complaint_without_a_time_counts_as_recent() -> None:
    assert decide(kept(), complaints(400, None)) == ("kept", None)
    assert decide(kept(), complaints(400)) == ("retired", "complaint_gone")
    assert decide(kept(), Complaints((replace(commented(1, "cast"), time=None),), {}))[0] == "kept"


def test_the_complaints_of_another_group_keep_no_check() -> None:
    fingers = tuple(commented(number, "finger") for number in range(5))
    assert decide(kept(), Complaints(fingers, {}))[0] == "retired"
    merged = make(keywords=["casts", "fingers"], status="kept")
    assert decide(merged, Complaints(fingers, {}))[0] == "kept"


def scored(day: str | None = None, /, **splits: dict[str, float | None]) -> SavedResults:
    """Corrected rates of the check by system, in each split, and the day that it then had."""
    details = {
        split: {
            "samples": 9,
            "checks": [
                {"check": key, "system": f"{key}{number}", "value": value}
                for number, (key, value) in enumerate(
                    (name.partition(":")[0], value) for name, value in rates.items()
                )
            ],
        }
        for split, rates in splits.items()
    }
    known = {"benchmark": {}, "protocol": "corrected", "results": [], "details": details}
    keys = {rate["check"] for split in details.values() for rate in cast("Any", split["checks"])}
    known["checks"] = [
        {"check": key, "title": "t", "question": "q", "status": "kept", "day": day} for key in keys
    ]
    return SavedResults.model_validate(known)


@pytest.mark.parametrize(
    ("rates", "passed"),
    [
        ({"a": {"cast@1:x": 0.0, "cast@1:y": 0.0199}}, True),
        ({"a": {"cast@1:x": 0.0, "cast@1:y": 0.02}}, False),
        ({"a": {"cast@1:x": 0.0}, "b": {"cast@1:x": 0.3}}, False),
        ({"a": {"cast@1:x": 0.0}, "b": {}}, True),
        ({"a": {"cast@1:x": 0.0, "cast@1:y": None}}, False),
        ({"a": {"cast@1:x": None}}, False),
        ({"a": {"cast@2:x": 0.0, "other@1:x": 0.0}}, False),
        ({"a": {"cast@1:x": 0.01, "other@1:x": 0.9}}, True),
        ({}, False),
    ],
)
def test_a_kept_check_is_retired_when_all_systems_pass(
    rates: dict[str, dict[str, float | None]], passed: bool
) -> None:
    expected = ("retired", "all_pass") if passed else ("kept", None)
    day = kept().day
    assert decide(kept(), complaints(1), scored(day, **rates)) == expected
    # A score from before the check was decided on says nothing of it.
    assert decide(kept(), complaints(1), scored("2001-01-01", **rates)) == ("kept", None)
    assert decide(kept(status="fell"), complaints(1), scored(**rates)) == ("fell", None)


def test_without_a_score_nobody_is_known_to_pass() -> None:
    assert decide(kept(), complaints(1), None) == ("kept", None)


def test_a_retired_check_is_proposed_again_when_its_complaint_is_back() -> None:
    certificate = CheckCertificate(judge="mira", kept=True)
    gone = kept(status="retired", reason="complaint_gone", certificates=(certificate,))
    assert decide(gone, complaints(400)) == ("retired", "complaint_gone")
    assert decide(gone, complaints(400, 2)) == ("proposed", "complaint_back")
    (back,) = retire_checks([gone], complaints(2), None, WINDOW)
    assert (back.version, back.certificates) == (1, (certificate,))
    assert back.day == DAY.date().isoformat()


def test_a_check_that_all_passed_waits_for_a_complaint_newer_than_its_day() -> None:
    fields = {"status": "retired", "reason": "all_pass", "day": "2026-03-30"}  # 2 days before
    passed = kept(**fields, evidence=[{**RELEASED, "sample_id": "cast0"}])
    assert decide(passed, complaints(2))[0] == "retired"
    assert decide(passed, complaints(2, 1))[0] == "proposed"
    # One whose time is not known is new unless the check has seen it.
    assert decide(passed, complaints(None))[0] == "retired"
    assert decide(passed, complaints(2, None))[0] == "proposed"


def test_versions_before_and_withdrawn_checks_stay_as_they_are() -> None:
    checks = [kept(status="replaced"), kept(version=2), make("words", status="withdrawn")]
    decided = retire_checks(checks, complaints(), None, WINDOW)
    assert [check.status for check in decided] == ["replaced", "retired", "withdrawn"]


def evidence(label: str, part: str, count: int) -> list[dict[str, Any]]:
    return [
        {"sample_id": f"{label}-{part}-{number}", "thread": number, "label": label, "part": part}
        for number in range(count)
    ]


def proven(complaint: int, praise: int, **fields: Any) -> Check:
    certificate = CheckCertificate(judge="mira", j=0.8, kept=True)
    shown = [
        *evidence("complaint", "writing", 7),
        *evidence("complaint", "proof", complaint),
        *evidence("praise", "proof", praise),
    ]
    return kept(evidence=shown, certificates=(certificate,), **fields)


@pytest.mark.parametrize("status", ["proposed", "kept", "fell", "retired", "replaced"])
@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ("complaint-writing-0", "same"),
        ("complaint-proof-0", "few"),
        ("praise-proof-0", "again"),
        ("nobody", "same"),
    ],
)
def test_what_rests_on_forgotten_posts_goes(status: str, gone: str, left: str) -> None:
    """Of 15 threads with complaints and 16 with praise."""
    check = proven(15, 16, status=status)
    (after,) = drop_evidence([check], {gone}, ())
    assert gone not in {each.sample_id for each in after.evidence}
    assert bool(after.certificates) == (left == "same")
    active = status in ("proposed", "kept", "fell")
    expected = {
        "same": (status, None),
        "few": ("withdrawn", "few_left") if active or status == "retired" else (status, None),
        "again": ("proposed", "evidence_left") if active else (status, None),
    }
    assert (after.status, after.reason) == expected[left]


def test_a_thread_counts_until_its_last_sample_is_forgotten() -> None:
    twice = {"sample_id": "twin", "thread": 0, "label": "complaint", "part": "proof"}
    check = proven(15, 15)
    shown = (*(each.model_dump() for each in check.evidence), twice)
    check = Check.model_validate({**check.model_dump(), "evidence": shown})
    (after,) = drop_evidence([check], {"complaint-proof-0"}, ())
    assert (after.status, after.count_threads("complaint")) == ("proposed", 15)
    assert drop_evidence([after], {"twin"}, ())[0].status == "withdrawn"


def test_the_words_of_a_forgotten_comment_go_and_those_of_others_stay() -> None:
    check = proven(20, 20).model_copy(update={"keywords": ("cast", "tinge", "yellow soup")})
    (after,) = drop_evidence([check], {"complaint-proof-3"}, {"cast", "tinge", "hands"})
    assert after.keywords == ("cast", "tinge")
    (after,) = drop_evidence([check], {"other"}, {})
    assert after.keywords == check.keywords


CHANGES: list[tuple[Iterable[Check], Iterable[Check], list[tuple[str, str]]]] = [
    ([], [kept()], [("appeared", "cast@1 appeared and is kept")]),
    ([kept()], [], [("gone", "cast@1 is gone")]),
    ([kept()], [kept()], []),
    (
        [kept(status="proposed")],
        [kept(status="fell", reason="weak")],
        [("fell", "cast@1 fell short: J is below 0.3")],
    ),
    (
        [kept()],
        [kept(status="retired", reason="all_pass")],
        [("retired", "cast@1 is retired: each system fails in less than 2 % of its outputs")],
    ),
    (
        [kept()],
        [kept(status="withdrawn", reason="few_left")],
        [
            (
                "withdrawn",
                "cast@1 is withdrawn: posts were forgotten, and too few threads are left to prove "
                "it on",
            )
        ],
    ),
    (
        [kept(status="retired")],
        [kept(status="proposed", reason="complaint_back")],
        [("proposed", "cast@1 waits for its proof: people complain of it again")],
    ),
    (
        [kept()],
        [kept(status="replaced"), kept(version=2, origin="person")],
        [("edited", "cast@2 takes the place of version 1 and is kept")],
    ),
    (
        [kept(status="withdrawn")],
        [kept(status="withdrawn"), kept(version=2, status="fell", reason="by_chance")],
        [
            (
                "appeared",
                "cast@2 appeared and fell short: p, after all checks are counted, is above 0.05",
            )
        ],
    ),
]


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES)
def test_every_change_is_told_with_its_reason(
    before: Iterable[Check], after: Iterable[Check], expected: list[tuple[str, str]]
) -> None:
    changes = list_check_changes(before, after)
    assert [(change.event, change.sentence) for change in changes] == expected


def test_another_certificate_is_told_with_the_one_before() -> None:
    def certified(j: float, threads: int) -> Check:
        fields = {"j": j, "low": j - 0.1, "high": j + 0.1, "kept": True}
        counts = {"complaint_threads": threads, "praise_threads": 40}
        single = CheckCertificate(judge="mira", j=0.99)
        return kept(certificates=(single, CheckCertificate(judge="vote", **fields, **counts)))

    (change,) = list_check_changes([certified(0.8, 20)], [certified(0.7, 30)])
    assert change.event == "proven"
    assert change.sentence == (
        "cast@1 is kept as before: J 0.70 (0.60 to 0.80) on 30 + 40 threads, J before 0.80"
    )


@pytest.fixture
def eyes() -> DrawnEyes:
    return DrawnEyes().use()


@pytest.fixture
def config(tmp_path: Path, eyes: DrawnEyes) -> Path:
    """People complain of a cast in March; the reader has not read the posts yet."""
    posts = write_posts(tmp_path, {"colour cast": 30, "": 24})
    return write_config(tmp_path, [posts], checks={"window_days": 30})


@pytest.fixture
def more(config: Path) -> Callable[..., None]:
    """Adds a file of posts that are made so many days later."""

    def add(day: int, **threads: int) -> None:
        named = {
            name.replace("_", " ") if name != "praise" else "": n for name, n in threads.items()
        }
        name = f"posts{day}"
        path = write_posts(config.parent, named, day=day, seed=day, name=name)
        known = yaml.safe_load(config.read_text("utf-8"))
        known["posts"].append({"source": "jsonl", "path": path.name})
        config.write_text(yaml.safe_dump(known), "utf-8")

    return add


def status_of(folder: Path) -> dict[str, str]:
    return {check.key: check.status for check in read_own_checks(folder / "runs/lumen") or ()}


def test_a_complaint_appears_and_another_one_goes(
    config: Path, eyes: DrawnEyes, more: Callable[..., None]
) -> None:
    """Over two releases; the second says what became of both, and why."""
    first = update(config)
    assert first.checks is not None
    assert [change.event for change in first.checks.changes] == ["appeared"]
    assert status_of(config.parent) == {"colour_cast@1": "kept"}
    released = read_release(first.release.path).datasets["checks"].to_list()
    assert [(row["name"], row["status"]) for row in released] == [("colour_cast", "kept")]

    more(100, extra_fingers=30, praise=5)
    second = update(config)
    assert second.checks is not None
    assert status_of(config.parent) == {"colour_cast@1": "retired", "extra_fingers@1": "fell"}
    assert [change.sentence.partition(":")[0] for change in second.checks.changes] == [
        "colour_cast@1 is retired",
        "extra_fingers@1 appeared and fell short",
    ]
    files = {path.name for path in (config.parent / "runs/lumen/checks").iterdir()}
    assert files == {"extra_fingers.md"}
    # The release has them, and the one before is the one of the first update.
    assert (second.changed, second.previous) == (True, config.parent / "runs/lumen/previous")
    assert second.previous is not None
    assert diff(second.previous, second.release.path).checks == second.checks.changes

    asked = len(eyes.asked)
    third = update(config)
    assert third.checks is not None
    assert (third.changed, third.checks.changes, len(eyes.asked)) == (False, (), asked)

    more(150, colour_cast=6)
    fourth = update(config)
    assert fourth.checks is not None
    assert status_of(config.parent)["colour_cast@1"] == "kept"
    again = next(check for check in fourth.checks.checks if check.name == "colour_cast")
    assert len({each.thread for each in again.evidence if each.label == "complaint"}) == 36
    assert len([each for each in eyes.asked if each.task == "checks"]) == 2  # never written anew


def test_an_update_offline_or_without_such_a_section_leaves_checks_alone(
    config: Path, eyes: DrawnEyes
) -> None:
    update(config)
    asked = len(eyes.asked)
    assert update(config, offline=True).checks is None
    assert update(config, checks=False).checks is None
    known = yaml.safe_load(config.read_text("utf-8"))
    del known["checks"]
    config.write_text(yaml.safe_dump(known), "utf-8")
    assert update(config).checks is None
    assert len(eyes.asked) == asked
    assert status_of(config.parent) == {"colour_cast@1": "kept"}


class GoneEyes(DrawnEyes):
    """Reads posts, and is gone when a question is to be written."""

    def write(self, request: Request) -> str:
        raise EngineError(f"the writer of {request.task} has left")


def test_an_update_that_stops_at_a_check_goes_on_and_keeps_the_release_before(
    config: Path, eyes: DrawnEyes, more: Callable[..., None]
) -> None:
    first = update(config, checks=False).release.manifest
    more(20, praise=3)
    GoneEyes().use()
    with pytest.raises(JudgeError, match="has left"):
        update(config)
    eyes.use()
    assert (config.parent / "runs/lumen/cache" / BACKUP_FOLDER).exists()
    done = update(config)
    assert done.previous is not None
    assert read_release(done.previous).manifest == first
    assert "checks" in done.release.manifest.configs


def urls_of(config: Path, samples: Iterable[str]) -> list[str]:
    rows = read_release(config.parent / "runs/lumen/release").datasets["analysis"]
    return [row["post_urls"][0] for row in rows if row["id"] in samples]


def forgotten(config: Path, label: str, part: str, count: int) -> tuple[Removal, list[str]]:
    (check,) = read_own_checks(config.parent / "runs/lumen") or ()
    ids = sorted(
        each.sample_id for each in check.evidence if (each.label, each.part) == (label, part)
    )[:count]
    return forget(urls_of(config, ids), config), ids


def test_a_check_is_proven_again_without_a_forgotten_post_from_stored_answers(
    config: Path, eyes: DrawnEyes
) -> None:
    update(config)
    root = config.parent / "runs/lumen"
    (before,) = read_own_checks(root) or ()
    labels = [
        {"sample_id": each.sample_id, "system": "a", "check": "colour_cast@1", "rater": "ada"}
        for each in before.evidence
    ]
    pq.write_table(LABELS.make_empty().from_pylist(labels, LABELS.schema), root / "labels.parquet")
    edited = root / "checks/colour_cast.md"
    edited.write_text(edited.read_text("utf-8").replace("whole", "entire"), "utf-8")
    removal, ids = forgotten(config, "complaint", "proof", 2)
    (change,) = removal.checks
    assert (change.event, change.after and change.after.reason) == ("proposed", "evidence_left")
    assert holding(root, *ids) == []
    (check,) = read_own_checks(root) or ()
    assert (check.certificates, check.count_threads("complaint")) == ((), 18)
    assert pq.read_metadata(root / "labels.parquet").num_rows == len(labels) - 2
    assert "entire" in edited.read_text("utf-8")  # what a person has written stays theirs

    edited.write_text(edited.read_text("utf-8").replace("entire", "whole"), "utf-8")
    asked = len(eyes.asked)
    after = update(config).checks
    assert after is not None
    (again,) = after.checks
    assert (again.key, again.status) == ("colour_cast@1", "kept")
    assert again.certificates[0].complaint_threads == 18
    assert {each.task for each in eyes.asked[asked:]} <= {"extract", "feedback", "relevance"}
    assert holding(root, *ids) == []


def test_a_check_with_too_few_threads_left_is_withdrawn_and_leaves_its_file(
    config: Path, eyes: DrawnEyes
) -> None:
    update(config)
    root = config.parent / "runs/lumen"
    assert (root / "checks/colour_cast.md").exists()
    removal, ids = forgotten(config, "praise", "proof", 10)
    (change,) = removal.checks
    assert (change.event, change.after and change.after.reason) == ("withdrawn", "few_left")
    assert status_of(config.parent) == {"colour_cast@1": "withdrawn"}
    assert list((root / "checks").iterdir()) == []
    assert holding(root, *ids) == []
    result = update(config).checks
    assert result is not None
    assert status_of(config.parent) == {"colour_cast@1": "withdrawn"}
    assert result.groups[0].missing == (0, 1)
    # A question that is written later is another version: the first one stays withdrawn.
    write_posts(config.parent, {"": 5}, seed=9, name="late")
    known = yaml.safe_load(config.read_text("utf-8"))
    known["posts"].append({"source": "jsonl", "path": "late.jsonl"})
    config.write_text(yaml.safe_dump(known), "utf-8")
    update(config)
    assert status_of(config.parent) == {"colour_cast@1": "withdrawn", "colour_cast@2": "kept"}


def test_nothing_is_forgotten_under_the_hands_of_a_judge(config: Path) -> None:
    """Who writes answers and checks down has read the samples before."""
    update(config)
    root = config.parent / "runs/lumen"
    before = status_of(config.parent)
    with lock_judging(root), pytest.raises(RunError, match="another process is judging"):
        forgotten(config, "praise", "proof", 10)
    assert status_of(config.parent) == before


def test_evidence_of_samples_that_are_not_released_is_not_released(config: Path) -> None:
    update(config)
    root = config.parent / "runs/lumen"
    (check,) = read_own_checks(root) or ()
    stray = Check.model_validate(
        {**check.model_dump(), "evidence": [*check.model_dump()["evidence"], RELEASED]}
    )
    write_checks(root, [stray])
    release = update(config, checks=False).release
    (row,) = release.datasets["checks"].to_list()
    assert row["evidence"] == [each.model_dump() for each in check.evidence]
    assert release.stats["left_out"]["checks"] == {"not_released": 1}


def test_retiring_reads_the_last_score(config: Path, eyes: DrawnEyes) -> None:
    update(config)
    rates = {"text_to_image": {"colour_cast@1:x": 0.001}}
    (kept_check,) = check_complaints(config).checks
    scored(kept_check.day, **rates).write(config.parent / "runs/lumen/results.json")
    (check,) = check_complaints(config).checks
    assert (check.status, check.reason) == ("retired", "all_pass")
    assert json.loads((config.parent / "runs/lumen/results.json").read_text())["details"]
