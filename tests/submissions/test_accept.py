"""An accepted submission is judged within a budget, and placed where its ratings put it."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import HfApi
from scipy.optimize import brentq, minimize
from scipy.stats import norm, t
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.errors import ConfigError, HubError, ScoreError, SubmissionError
from echo_hf.hub.leaderboard import read_scored, render_leaderboard
from echo_hf.hub.load import load_manifest
from echo_hf.hub.publish import publish
from echo_hf.hub.remote import Remote
from echo_hf.judging import speaks_to_judge
from echo_hf.pipeline.progress import NullProgress
from echo_hf.schedule.lease import RunLease
from echo_hf.schedule.turn import COUNT_FILE, accept, list_submissions, open_submissions, turn
from echo_hf.submissions import accept as accepting
from echo_hf.submissions.submit import submit
from tests.errors_for_tests import said_by
from tests.hub.conftest import Command
from tests.judging.judges_for_tests import ScriptedJudge, judge_of
from tests.local_hub import STRANGER, LocalHub
from tests.local_hub_repository import StoredFile
from tests.schedule.conftest import change
from tests.submissions.conftest import (
    EDITS,
    NAMES,
    REPO,
    SYSTEMS,
    TAG,
    WORDS,
    files_in,
    folder_of,
    lack_reader,
    noise,
    propose,
    rating_of,
    sign,
)

pytestmark = pytest.mark.usefixtures("reader")
SCHEDULE = {"repo_id": REPO, "budget_usd": 10, "allow_rules": True, "allow_unscreened": True}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A benchmark of its own, whose loop keeps the board."""
    done = CliRunner().invoke(app, ["init", "benchmark", str(tmp_path / "mine")])
    assert done.exit_code == 0, done.output
    path = tmp_path / "mine" / "benchmark.yaml"
    change(path, schedule=SCHEDULE, judges=[judge_of()])
    return path


def ratings(system: str, samples: tuple[str, ...]) -> list[int]:
    return [rating_of(hashlib.sha256(noise(system, name)).hexdigest()) for name in samples]


def count_points(one: list[int], other: list[int]) -> tuple[float, float]:
    pairs = [*zip(one, other, strict=True)]
    won = sum((a > b) + 0.5 * (a == b) for a, b in pairs)
    return won, len(pairs) - won


def fit(samples: tuple[str, ...], fixed: Mapping[str, float], free: tuple[str, ...]) -> list[float]:
    """Bradley-Terry strengths by maximum likelihood, a tie as half a point each."""
    given = {system: ratings(system, samples) for system in (*fixed, *free)}

    def loss(values: np.ndarray) -> float:
        strength = {**fixed, **dict(zip(free, values, strict=True))}
        total = 0.0
        for a, b in combinations(given, 2):
            won, lost = count_points(given[a], given[b])
            lead = strength[a] - strength[b]
            total += won * np.logaddexp(0, -lead) + lost * np.logaddexp(0, lead)
        return float(total)

    return [*minimize(loss, np.zeros(len(free)), tol=1e-12).x]


def points_of(system: str, name: str, *, has_lost: bool = False) -> dict[str, float]:
    """The points of a sample against each anchor; none where there is nothing to rate."""
    if has_lost:
        return dict.fromkeys(SYSTEMS, 0.0)
    (own,) = ratings(system, (name,))
    given = {other: ratings(other, (name,))[0] for other in SYSTEMS}
    return {other: (own > rating) + 0.5 * (own == rating) for other, rating in given.items()}


def place(points: list[dict[str, float]], strengths: Mapping[str, float]) -> float:
    """The strength at which as many points are expected as there are."""

    def surplus(strength: float) -> float:
        wins = sum(1 / (1 + math.exp(value - strength)) for value in strengths.values())
        return len(points) * wins - sum(sum(each.values()) for each in points)

    return float(brentq(surplus, -15, 15))


def draw_interval(
    points: list[dict[str, float]], strengths: Mapping[str, float]
) -> tuple[float, float]:
    """Percentiles of places of samples drawn anew, cut off by Student's t as samples are few."""
    rng, n = np.random.default_rng(7), len(points)
    drawn = [place([points[at] for at in rng.integers(0, n, n)], strengths) for _ in range(2000)]
    tail = norm.cdf(math.sqrt(n / (n - 1)) * t.ppf(0.025, n - 1))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def test_samples_without_an_output_of_its_own_have_lost(
    board: LocalHub, config: Path, eyes: ScriptedJudge, tmp_path: Path
) -> None:
    """Left out, refused or copied: whoever leaves out the worst falls behind."""
    worst = sorted(WORDS, key=lambda name: sum(points_of("fern", name).values()))
    copied, refused, lost = worst[:2], worst[2], set(worst[:6])
    folder = folder_of(
        tmp_path / "images",
        draw=lambda system, name: noise("ash" if name in copied else system, name),
        samples=[name for name in NAMES if name in copied or name not in lost],
    )
    line = {"sample_id": refused, "outcome": "refused"}
    (folder / "manifest.jsonl").write_text(json.dumps(line))
    submit(f"{REPO}@{TAG}", f"fern={folder}", api=board.api())
    done = accept(config, 1, api=board.api())
    assert done.placement is not None
    placed = done.placement.splits["text_to_image"]
    assert (placed.rated, placed.asked) == (14, 20)
    assert len(eyes.asked) == len(NAMES) - len(lost)
    anchors = np.array(fit(WORDS, {}, SYSTEMS))
    strengths = dict(zip(SYSTEMS, anchors - anchors.mean(), strict=True))
    points = [points_of("fern", name, has_lost=name in lost) for name in WORDS]
    assert placed.strength == pytest.approx(place(points, strengths), abs=1e-3)
    everything = place([points_of("fern", name) for name in WORDS], strengths)
    assert placed.strength < everything
    (comment,) = board.repositories[REPO].pulls[1].said[1:]
    assert "14 of 20" in comment
    board.repositories[REPO].merge(1)
    page = render_leaderboard(read_scored(REPO, api=board.api()), TAG, "text_to_image")
    assert "<td>14 of 20</td>" in page


def test_nobody_is_asked_before_words_in_outputs_are_looked_at(
    board: LocalHub,
    bundle: Path,
    config: Path,
    eyes: ScriptedJudge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speaks_to_judge, "TextReader", lack_reader)
    propose(board, files_in(bundle))
    assert 'pip install "echo-hf[ocr]"' in said_by(ConfigError, accept, config, 1, api=board.api())
    assert eyes.asked == []


def test_what_was_paid_goes_along_with_the_state(
    board: LocalHub, bundle: Path, config: Path, eyes: ScriptedJudge, tmp_path: Path
) -> None:
    """Whichever machine goes on."""
    propose(board, files_in(bundle))
    state = tmp_path / "state"
    state.mkdir()
    for machine, budget in (("first", 2.0), ("second", 10.0)):
        done = accept(
            config, 1, budget_usd=budget, runs=tmp_path / machine, state=state, api=board.api()
        )
    assert done.placement is not None
    assert len(eyes.asked) == len(NAMES)
    assert not [path for path in state.rglob("accepted/**/*") if path.is_file()]


@pytest.fixture
def stopped(
    board: LocalHub, bundle: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> LocalHub:
    """A machine that is switched off right after a place was added to its request."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    propose(board, files_in(bundle))
    with monkeypatch.context() as patch:
        patch.setattr(accepting, "_finish", stop)
        with pytest.raises(KeyboardInterrupt):
            accept(config, 1, api=board.api())
    assert "submissions/v1/fern/result.json" in board.files(REPO, "refs/pr/1")
    return board


def test_a_place_that_was_added_and_not_recorded_is_known_again(
    stopped: LocalHub, config: Path, eyes: ScriptedJudge
) -> None:
    """By its very bytes: the author is not told that a stranger's file is there."""
    repository = stopped.repositories[REPO]
    head, text = repository.branches["refs/pr/1"], stopped.files(REPO, "refs/pr/1")
    with open_submissions(config, api=stopped.api()) as (_, requests):
        (state,) = [each.state for each in requests.answer_open()]
    assert state == "stopped while it was accepted: repeat --accept"
    assert len(repository.pulls[1].said) == 1
    done = accept(config, 1, api=stopped.api())
    assert done.placement is not None
    assert done.placement.to_text().encode() == text["submissions/v1/fern/result.json"]
    assert (done.cost_usd, len(eyes.asked)) == (0.25 * len(NAMES), len(NAMES))
    assert repository.branches["refs/pr/1"] == head
    assert head[:10] in repository.pulls[1].said[-1]
    assert [each.state for each in list_submissions(config, api=stopped.api())[0]] == [
        "accepted: merge it"
    ]


def test_a_place_beside_other_outputs_is_not_theirs(
    stopped: LocalHub, bundle: Path, config: Path, eyes: ScriptedJudge
) -> None:
    """The author changes them while the machine is off."""
    repository = stopped.repositories[REPO]
    sign(bundle, model="another")
    head = repository.commits[repository.branches["refs/pr/1"]]
    data = StoredFile((bundle / "submission.json").read_bytes())
    files = {**head.files, "submissions/v1/fern/submission.json": data}
    repository.branches["refs/pr/1"] = repository.add("Mine", head.oid, files)
    done = accept(config, 1, api=stopped.api())
    assert done.placement is not None
    assert done.placement.model == "another"
    assert len(eyes.asked) == 2 * len(NAMES)
    told = json.loads(stopped.files(REPO, "refs/pr/1")["submissions/v1/fern/result.json"])
    assert told["submission"] == done.placement.submission


def test_a_comment_that_failed_is_made_by_the_next_call(
    board: LocalHub, bundle: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise HubError("the Hub does not answer")

    propose(board, files_in(bundle))
    with monkeypatch.context() as patch:
        patch.setattr(Remote, "comment", fail)
        said_by(HubError, accept, config, 1, api=board.api())
    comments = board.repositories[REPO].pulls[1].said
    assert len(comments) == 1
    for _ in range(2):
        assert "is accepted: merge" in said_by(ConfigError, accept, config, 1, api=board.api())
    assert len(comments) == 2
    assert "is placed on v1" in comments[-1]


@pytest.mark.parametrize(
    ("split", "samples"), [("text_to_image", WORDS), ("image_to_image", EDITS)]
)
def test_a_submission_from_the_command_line_to_a_placed_board(
    board: LocalHub,
    bundle: Path,
    config: Path,
    eyes: ScriptedJudge,
    split: str,
    samples: tuple[str, ...],
) -> None:
    """Its strength is that of greatest likelihood among strengths that stay; only it is judged."""
    propose(board, files_in(bundle))
    done = accept(config, 1, api=board.api())
    assert done.placement is not None
    assert (done.cost_usd, len(eyes.asked)) == (0.25 * len(NAMES), len(NAMES))
    placed = done.placement.splits[split]
    anchors = np.array(fit(samples, {}, SYSTEMS))
    strengths = dict(zip(SYSTEMS, anchors - anchors.mean(), strict=True))
    (expected,) = fit(samples, strengths, ("fern",))
    assert placed.strength == pytest.approx(expected, abs=1e-3)
    assert placed.rank == 1 + sum(value > expected for value in strengths.values())
    assert (placed.systems, placed.rated, placed.asked) == (4, len(samples), len(samples))
    assert (placed.ends is None) == (len(samples) < 10)
    if placed.ends:
        points = [points_of("fern", name) for name in samples]
        assert placed.ends == pytest.approx(draw_interval(points, strengths), abs=0.1)


def test_from_a_process_of_its_own_into_the_request_and_then_on_the_leaderboard(
    board: LocalHub, config: Path, command: Command, tmp_path: Path
) -> None:
    given = ["--images", f"fern={folder_of(tmp_path / 'images')}", "--model", "<b>fern</b>"]
    sent = subprocess.run(
        [sys.executable, "-m", "echo_hf", "submit", f"{REPO}@{TAG}", *given],
        env=board.environment(tmp_path / "home", STRANGER),
        check=True,
        capture_output=True,
    )
    assert sent.stderr == b""  # no bar for each file that is looked at
    repository, before = board.repositories[REPO], board.files(REPO, "refs/pr/1")
    done = command("schedule", config, "--accept", "1", hub=board)
    assert (done.code, done.errors.replace("\r", "").count("echo-hf:")) == (0, 0)
    assert "merge it by hand" in done.output
    after = board.files(REPO, "refs/pr/1")
    assert after.keys() - before.keys() == {"submissions/v1/fern/result.json"}
    told = json.loads(after["submissions/v1/fern/result.json"])
    submitted = json.loads(before["submissions/v1/fern/submission.json"])
    assert told["submission"] == submitted["digest"]
    comment = repository.pulls[1].said[-1]
    assert "Sealed samples were not asked for" in comment
    assert repository.branches["refs/pr/1"][:10] in comment
    assert "submissions/v1/fern/result.json" not in board.files(REPO)
    assert [one.state for one in list_submissions(config, api=board.api())[0]] == [
        "accepted: merge it"
    ]
    assert "is accepted: merge" in said_by(ConfigError, accept, config, 1, api=board.api())

    repository.merge(1)
    page = render_leaderboard(read_scored(REPO, api=board.api()), TAG, "text_to_image")
    row = next(line for line in page.splitlines() if "<td>fern<br>" in line)
    placed = told["splits"]["text_to_image"]
    assert f"<td>{placed['strength']:.3f}</td>" in row
    assert f"<td>{placed['rank']} of 4</td><td>20 of 20</td>" in row
    assert "&lt;b&gt;fern&lt;/b&gt;" in row
    assert "Sealed samples were not asked for" in page
    assert load_manifest(REPO, revision="main", api=board.api()).name == "lumen"


def test_a_budget_that_ends_places_nobody_and_goes_on(
    board: LocalHub, bundle: Path, config: Path, eyes: ScriptedJudge
) -> None:
    propose(board, files_in(bundle))
    done = accept(config, 1, budget_usd=2.0, api=board.api())
    assert done.placement is None
    assert len(eyes.asked) < len(NAMES)
    assert done.cost_usd == 0.25 * len(eyes.asked)
    assert len(board.repositories[REPO].pulls[1].said) == 1
    done = accept(config, 1, budget_usd=10.0, api=board.api())
    assert done.placement is not None
    assert (done.cost_usd, len(eyes.asked)) == (0.25 * len(NAMES), len(NAMES))


def test_what_is_changed_after_it_was_accepted_is_not_merged_unseen(
    board: LocalHub, bundle: Path, config: Path
) -> None:
    propose(board, files_in(bundle))
    accept(config, 1, api=board.api())
    repository = board.repositories[REPO]
    head = repository.commits[repository.branches["refs/pr/1"]]
    stolen = {**head.files, "submissions/v1/fern/submission.json": head.files["README.md"]}
    repository.branches["refs/pr/1"] = repository.add("Mine", head.oid, stolen)
    with open_submissions(config, api=board.api()) as (_, requests):
        assert [one.state for one in requests.answer_open()] == ["refused: other_files"]


def test_a_turn_looks_at_submissions_after_it_has_proposed_its_own_release(
    board: LocalHub, bundle: Path, config: Path, eyes: ScriptedJudge
) -> None:
    propose(board, files_in(bundle))
    propose(board, files_in(bundle), "sora")
    for _ in range(2):
        done = turn(config, api=board.api())
        assert done.held == ()
        assert [*done.steps][-2:] == ["propose", "submissions"]
        assert done.steps["submissions"] == "1 refused: name_taken, 1 waits for --accept"
    repository = board.repositories[REPO]
    assert [len(pull.said) for pull in repository.pulls.values()] == [2, 2, 1]
    assert repository.open_pulls[3] == "Publish mine"
    assert eyes.asked == []


RELEASE_TITLE = "Publish mine.7"  # as the loop of the config `mine` names its own


def test_a_title_makes_no_request_one_of_the_loop(
    board: LocalHub, bundle: Path, config: Path
) -> None:
    """Whoever opened a request may call it a release: neither hidden, closed nor tagged."""
    repository, number = board.repositories[REPO], propose(board, files_in(bundle))
    repository.pulls[number].title = RELEASE_TITLE
    assert [one.state for one in list_submissions(config, api=board.api())[0]] == [
        "not looked at yet"
    ]
    assert turn(config, api=board.api()).steps["submissions"] == "1 waits for --accept"
    assert repository.pulls[number].status == "open"
    repository.merge(number)
    assert turn(config, api=board.api()).tagged == ()
    assert [*repository.tags] == [TAG]


def test_a_merge_that_adds_a_submission_is_no_release(
    board: LocalHub, bundle: Path, config: Path
) -> None:
    """Even where the account of the loop has submitted it."""
    repository, number = board.repositories[REPO], propose(board, files_in(bundle), "mira")
    repository.pulls[number].title = RELEASE_TITLE
    repository.merge(number)
    done = turn(config, api=board.api())
    assert "discussions/1 adds a submission, and is no release" in done.steps["settle"]
    assert [*repository.tags] == [TAG]


def test_a_name_is_held_by_the_request_that_was_accepted(
    board: LocalHub, bundle: Path, config: Path, eyes: ScriptedJudge, tmp_path: Path
) -> None:
    """Or else by the earlier one: nobody pays for two, of which one can be merged."""
    propose(board, files_in(bundle))
    folder = folder_of(tmp_path / "moss", "moss")
    submit(f"{REPO}@{TAG}", f"fern={folder}", api=board.api(STRANGER))
    assert accept(config, 2, api=board.api()).placement is not None
    asked = len(eyes.asked)
    said = said_by(SubmissionError, accept, config, 1, api=board.api())
    assert "an earlier request has 'submissions/v1/fern'" in said
    assert len(eyes.asked) == asked
    with open_submissions(config, api=board.api()) as (_, requests):
        states = [one.state for one in requests.answer_open()]
    assert states == ["refused: name_taken", "accepted: merge it"]


def test_a_model_enters_a_further_release_under_its_name(
    board: LocalHub, bundle: Path, config: Path, release: Path, tmp_path: Path
) -> None:
    """With the same outputs, which are copies where another account submits them."""
    repository = board.repositories[REPO]
    propose(board, files_in(bundle))
    accept(config, 1, api=board.api())
    repository.merge(1)
    publish(release, REPO, "v2", api=board.api(), allow_unscreened=True)
    folder = folder_of(tmp_path / "fern")
    submit(f"{REPO}@v2", f"fern={folder}", api=board.api(STRANGER))
    proposed = board.files(REPO, "refs/pr/2")
    again = {path: data for path, data in proposed.items() if path not in board.files(REPO)}
    assert {path.rpartition("/")[0] for path in again} == {"submissions/v2/fern"}
    with open_submissions(config, api=board.api()) as (_, requests):
        assert [one.state for one in requests.answer_open()] == ["waits for --accept"]
        repository.pulls[2].status = "closed"
        propose(board, again, "sora")
        assert [one.state for one in requests.answer_open()] == ["refused: flawed"]
    assert "submission 'fern' to 'v1'" in repository.pulls[3].said[-1]


def test_submissions_are_listed_while_a_turn_works_elsewhere(
    board: LocalHub, bundle: Path, config: Path, tmp_path: Path
) -> None:
    """Of what is kept between turns they are only read."""
    state, api = tmp_path / "state", board.api()
    state.mkdir()
    propose(board, files_in(bundle))
    with open_submissions(config, runs=tmp_path / "one", state=state, api=api) as (_, requests):
        requests.answer_open()
    kept = (state / "mine" / COUNT_FILE).read_bytes()
    with RunLease(state / ".mine.lease").hold():
        listed, _ = list_submissions(config, runs=tmp_path / "two", state=state, api=api)
    assert [one.state for one in listed] == ["waits for --accept"]
    assert (state / "mine" / COUNT_FILE).read_bytes() == kept
    assert not (tmp_path / "two").exists()


def other_judge(config: Path) -> None:
    change(config, judges=[judge_of("kite")])


def other_words(config: Path) -> None:
    (config.parent / "mine.md").write_text("Rate what you see.\n\n{form}\n", "utf-8")
    change(config, judges=[judge_of(prompt_file="mine.md")])


def pairwise(config: Path) -> None:
    change(config, board="pairwise")


def nobody(config: Path) -> None:
    change(config, judges=[])


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (other_judge, ScoreError, "was judged by ['mira'], here it is by ['kite']"),
        (other_words, ScoreError, "judge 'mira' has other instructions than on the release's"),
        (pairwise, ConfigError, "expected judges in the config, and board: ratings"),
        (nobody, ConfigError, "expected judges in the config, and board: ratings"),
    ],
)
def test_another_board_is_found_before_anybody_is_asked(
    board: LocalHub,
    bundle: Path,
    config: Path,
    eyes: ScriptedJudge,
    spoil: Callable[[Path], None],
    error: type[Exception],
    said: str,
) -> None:
    propose(board, files_in(bundle))
    spoil(config)
    assert said in said_by(error, accept, config, 1, api=board.api())
    assert eyes.asked == []


def test_a_request_that_cannot_be_read_is_listed_as_such(
    board: LocalHub, bundle: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise HubError("the Hub does not answer")

    propose(board, files_in(bundle))
    monkeypatch.setattr(Remote, "read_changes", fail)
    assert list_submissions(config, api=board.api()) == ([], ["the Hub does not answer"])


def test_a_maintainer_hears_that_an_account_is_over_its_quota(
    board: LocalHub, bundle: Path, config: Path
) -> None:
    """And may accept it all the same."""
    notices = list[str]()

    class Watch(NullProgress):
        def report_notice(self, notice: str) -> None:
            notices.append(notice)

    change(config, schedule={**SCHEDULE, "submissions": {"open": 0}})
    propose(board, files_in(bundle))
    assert accept(config, 1, api=board.api(), watch=Watch()).placement is not None
    assert "'tofu' has 0 submissions open: expected at most 0 with this one" in notices[0]


def test_a_refused_submission_is_not_judged(
    board: LocalHub, bundle: Path, config: Path, eyes: ScriptedJudge
) -> None:
    sign(bundle, samples=99)
    propose(board, files_in(bundle))
    assert "samples is 99, and it is 24" in said_by(
        SubmissionError, accept, config, 1, api=board.api()
    )
    assert "(1)" in said_by(ConfigError, accept, config, 2, api=board.api())
    assert eyes.asked == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--accept", "1", "--once"], "go with --state and --runs alone"),
        (["--submissions", "--accept", "1"], "go with --state and --runs alone"),
        (["--once", "--budget", "2"], "--budget goes with --accept"),
    ],
)
def test_choices_that_do_not_go_together(config: Path, arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["schedule", str(config), *arguments])
    assert said in str(result.exception)


def test_a_config_may_take_none(config: Path) -> None:
    change(config, schedule={**SCHEDULE, "submissions": None})
    assert "takes no submissions" in said_by(ConfigError, list_submissions, config, api=HfApi())
