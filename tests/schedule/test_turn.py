"""A turn proposes what is new, tags what was merged, or says why; its run is kept in between."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.builder.build import build
from echo_hf.cli import app
from echo_hf.collect.takedown import TOMBSTONES_FILE, add_tombstones, hash_url
from echo_hf.engines.base import Completion, Request
from echo_hf.errors import RunError
from echo_hf.hub.release import read_release
from echo_hf.judging.results import SavedResults
from echo_hf.schedule.turn import COUNT_FILE, STEPS, UNFINISHED_FILE, SyncedRun, Turn, turn
from tests.complaints_corpus import DrawnEyes, draw, write_config, write_posts
from tests.errors_for_tests import said_by
from tests.local_hub import LocalHub
from tests.schedule.conftest import NAME, REPO, SCHEDULE, Take, change
from tests.sealed_for_tests import KEY, holding, released, words_of


def posted(config: Path, words: str) -> None:
    """Adds a post with a prompt to the file of posts."""
    posts = config.parent / "posts.jsonl"
    lines = posts.read_text("utf-8").splitlines()
    url = f"https://x.com/nina_notes/status/{9900316480999000000 + len(lines)}"
    prompt = f"love what lumen image made of this today\n\nPrompt: {words}"
    one = {
        **json.loads(lines[0]),
        "url": url,
        "author": "nina_notes",
        "text": prompt,
        "pictures": [],
    }
    posts.write_text("\n".join([*lines, json.dumps(one)]) + "\n", "utf-8")


def test_what_was_merged_is_tagged_and_what_is_new_is_proposed(
    hub: LocalHub, take: Take, config: Path
) -> None:
    """A person merges; the loop alone never writes to the main branch."""
    first = take()
    repository = hub.repositories[REPO]
    assert list(first.steps) == list(STEPS)
    assert (first.held, first.tagged) == ((), ())
    assert first.request == f"{hub.url}/datasets/{REPO}/discussions/1"
    assert repository.open_pulls == {1: f"Publish {NAME}"}
    assert [one.title for one in repository.history] == ["initial commit"]

    merged = repository.merge(1)
    posted(config, "a tin robot that waters tulips, watercolor")
    second = take()
    assert (second.tagged, repository.tags) == ((NAME,), {NAME: merged})
    assert repository.open_pulls == {2: f"Publish {NAME}.1"}
    assert "1 added, 0 removed, 0 changed" in repository.pulls[2].said[0]
    assert repository.head == merged

    repository.merge(2)
    third = take()
    assert third.tagged == (f"{NAME}.1",)
    assert (third.request, repository.open_pulls) == (None, {})
    assert third.steps["propose"].startswith("nothing changed since")


def test_a_newer_proposal_takes_the_place_of_one_that_nobody_merged(
    hub: LocalHub, take: Take, config: Path
) -> None:
    take()
    repository = hub.repositories[REPO]
    assert take().request == f"{hub.url}/datasets/{REPO}/discussions/1"
    assert repository.open_pulls == {1: f"Publish {NAME}"}
    posted(config, "a lighthouse made of books, ink drawing")
    done = take()
    assert repository.open_pulls == {2: f"Publish {NAME}"}
    assert repository.pulls[1].status == "closed"
    assert repository.pulls[1].said[1:] == [f"Newer: {done.request}"]


def test_a_copy_by_another_account_takes_the_place_of_no_proposal(
    hub: LocalHub, take: Take
) -> None:
    take()
    repository = hub.repositories[REPO]
    repository.pulls[1].author = "sora"
    assert take().request == f"{hub.url}/datasets/{REPO}/discussions/2"
    assert repository.open_pulls == {1: f"Publish {NAME}", 2: f"Publish {NAME}"}
    repository.merge(1)
    assert take().tagged == ()


def test_a_request_says_once_why_nothing_is_proposed(
    hub: LocalHub, take: Take, config: Path
) -> None:
    take()
    repository = hub.repositories[REPO]
    posts = config.parent / "posts.jsonl"
    aside = posts.rename(posts.with_name("aside"))
    for _ in range(2):
        done = take()
        assert [one.partition(" stopped")[0] for one in done.held] == ["collect"]
        assert done.request == f"{hub.url}/datasets/{REPO}/discussions/2"
        assert not {"refresh", "update", "eval"} & done.steps.keys()
    assert repository.pulls[2].status == "draft"
    assert len(repository.pulls[2].said) == 1
    assert "posts.jsonl" in repository.pulls[2].said[0]
    assert repository.open_pulls == {1: f"Publish {NAME}"}

    aside.rename(posts)
    assert take().held == ()
    assert [one.status for one in repository.pulls.values()] == ["open", "closed"]


def test_requests_of_others_are_left_alone(hub: LocalHub, take: Take) -> None:
    take()
    repository = hub.repositories[REPO]
    titles = (f"Publish {NAME}.0", f"Publish {NAME}x", "Publish other", f"publish {NAME}", "Hello")
    for title in titles:
        repository.propose(title, "by somebody", repository.head)
    for number in (2, 3, 4):
        repository.merge(number)
    done = take()
    assert done.tagged == ()
    assert [one.status for one in repository.pulls.values()][1:] == [*["merged"] * 3, *["open"] * 2]


def test_a_hub_out_of_reach_does_not_keep_posts_from_being_read(hub: LocalHub, take: Take) -> None:
    hub.dead = True
    done = take()
    assert {"collect", "update"} <= done.steps.keys()
    stopped = [why.partition(" stopped")[0] for why in done.held]
    assert stopped == ["settle", "propose", "submissions"]


def test_another_machine_goes_on_where_the_last_one_ended(
    hub: LocalHub, take: Take, config: Path, tmp_path: Path
) -> None:
    state = tmp_path / "mount"
    state.mkdir()
    take(runs=tmp_path / "one", state=state)
    done = take(runs=tmp_path / "other", state=state)
    assert done.steps["fetch"].endswith("files fetched")
    assert done.steps["update"].startswith("0 calls made, 0 answers")
    assert hub.repositories[REPO].open_pulls == {1: f"Publish {NAME}"}


def list_modes(folder: Path) -> dict[bool, set[int]]:
    """The modes of folders, and of files."""
    modes: dict[bool, set[int]] = {True: set(), False: set()}
    for path in (folder, *folder.rglob("*")):
        modes[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))
    return modes


def test_sealed_samples_go_from_turn_to_turn_and_into_no_proposal(
    hub: LocalHub, take: Take, config: Path, tmp_path: Path
) -> None:
    change(config, splits={"sealed": 0.5})
    state = tmp_path / "mount"
    state.mkdir()
    first = tmp_path / "one" / NAME / "sealed"
    first.mkdir(parents=True)  # with a key that draws some of its few posts
    (first / "key").write_text(KEY.hex())
    take(runs=tmp_path / "one", state=state)
    sealed = released(first / "release")
    assert sealed
    take(runs=tmp_path / "other", state=state)
    place = tmp_path / "other" / NAME / "sealed"
    assert released(place / "release").keys() == sealed.keys()
    for name in ("key", "drawn.json"):
        assert (place / name).read_bytes() == (first / name).read_bytes()
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o600
    for own in (place, state / NAME / "sealed"):
        assert list_modes(own) == {True: {0o700}, False: {0o600}}
    request = hub.repositories[REPO].pulls[1]
    proposal = tmp_path / "proposal"
    hub.api().snapshot_download(REPO, repo_type="dataset", revision="refs/pr/1", local_dir=proposal)
    (proposal / "words.txt").write_text("\n".join([request.title, *request.said]), "utf-8")
    assert read_release(proposal).manifest.sealed
    words = {word for row in sealed.values() for word in words_of(row)}
    assert holding(words, state)
    assert holding(words, proposal) == set()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected --on github, --on hf, or --once"),
        (["--on", "gitlab"], "gitlab"),
        (["--on", "hf", "--dry-run"], "go with --once"),
        (["--once", "--to", "x"], "--to goes with --on"),
        (["--once", "--state", "no/such"], "expected a folder"),
        (["--once"], "schedule: {repo_id"),
    ],
)
def test_choices_that_do_not_go_together_are_one_line(
    config: Path, arguments: list[str], said: str
) -> None:
    if said.startswith("schedule: "):
        change(config, schedule=None)
    result = CliRunner().invoke(app, ["schedule", str(config), *arguments])
    assert said in str(result.exception)


def test_a_dry_run_shows_every_step_and_asks_nobody(config: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    arguments = ["schedule", str(config), "--once", "--dry-run", "--runs", str(runs)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    for step, about in STEPS.items():
        assert f"{step}: {about}" in result.output
    assert SCHEDULE["repo_id"] in result.output
    assert not runs.exists()


def test_a_turn_without_checks_says_so_in_a_word(take: Take) -> None:
    assert take().steps["checks"] == "none"


@dataclass
class PaidEyes(DrawnEyes):
    """Sees what is drawn, at a dollar a call."""

    usd_per_million_prompt_tokens: float = 1.0

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, completion in super().stream(requests):
            yield number, replace(completion, cost_usd=1.0)


@pytest.fixture
def complained(tmp_path: Path) -> Path:
    """A config with checks, on posts that complain of a cast."""
    DrawnEyes().use()
    posts = write_posts(tmp_path, {"colour cast": 30, "": 24})
    sections = {"schedule": SCHEDULE, "checks": {"window_days": 30}}
    return write_config(tmp_path, [posts], **sections)


def test_a_dry_run_plans_what_would_be_asked_for_checks(complained: Path) -> None:
    eyes = DrawnEyes().use()
    arguments = ["schedule", str(complained), "--once", "--dry-run", "--json"]
    told = json.loads(CliRunner().invoke(app, arguments).stdout)["plan"]["checks"]
    assert "run `echo-hf build` with this config first" in told["unknown"]
    build(complained)
    del eyes.asked[:]
    told = json.loads(CliRunner().invoke(app, arguments).stdout)["plan"]["checks"]
    assert {plan["rubric"]: plan["calls"] for plan in told["plans"]} == {
        "checks": 1,
        "colour_cast@1": 20 + 24,
    }
    assert not eyes.asked


def say_more(config: Path, day: int, **threads: int) -> None:
    named = {name.replace("_", " "): count for name, count in threads.items()}
    path = write_posts(config.parent, named, day=day, seed=day, name=f"posts{day}")
    posts = yaml.safe_load(config.read_text("utf-8"))["posts"]
    change(config, posts=[*posts, {"source": "jsonl", "path": path.name}])


def test_a_proposal_says_what_became_of_checks_and_why(hub: LocalHub, complained: Path) -> None:
    """A complaint that appears, and one that goes; each release has the checks of its turn."""

    def take() -> Turn:
        return turn(complained, api=hub.api())

    first = take()
    repository = hub.repositories[REPO]
    assert (first.held, first.steps["checks"]) == ((), "1 appeared, $0.00")
    assert r"- colour\_cast@1 appeared and is kept: J 1.00" in repository.pulls[1].said[0]
    assert "checks/test-00000-of-00001.parquet" in repository.commits[repository.merge(1)].files

    say_more(complained, 100, extra_fingers=30)
    second = take()
    assert (second.held, second.steps["checks"]) == ((), "1 appeared, 1 retired, $0.00")
    said = repository.pulls[2].said[0]
    assert r"- colour\_cast@1 is retired: nobody complained of it in the days that count" in said
    assert r"- extra\_fingers@1 appeared and fell short: J is below 0.3" in said
    repository.merge(2)
    third = take()
    assert third.steps["checks"] == "nothing changed, $0.00"
    assert third.request is None


def test_a_turn_goes_on_after_its_checks_and_proposes_them_all_the_same(
    hub: LocalHub, complained: Path
) -> None:
    hub.dead = True
    done = turn(complained, api=hub.api())
    assert (done.steps["checks"], done.request) == ("1 appeared, $0.00", None)
    hub.dead = False
    eyes = DrawnEyes().use()
    done = turn(complained, api=hub.api())
    assert (done.held, done.steps["checks"], eyes.asked) == ((), "nothing changed, $0.00", [])
    assert r"colour\_cast@1 appeared and is kept" in hub.repositories[REPO].pulls[1].said[0]


def test_checks_keep_within_the_budget_of_a_turn(hub: LocalHub, complained: Path) -> None:
    change(complained, schedule={**SCHEDULE, "budget_usd": 5})
    eyes = PaidEyes().use()
    done = turn(complained, api=hub.api())
    assert done.held == ("checks: the budget of $5.00 ended before all was asked",)
    paid = [one for one in eyes.asked if one.task in ("checks", "rate")]
    assert len(paid) == 5
    change(complained, schedule={**SCHEDULE, "budget_usd": 500})
    done = turn(complained, api=hub.api())
    assert done.held == ()
    asked = [one for one in eyes.asked if one.task in ("checks", "rate")]
    assert len(asked) == 1 + 20 + 24  # none of them twice


def test_a_step_that_stops_at_a_check_leaves_the_evaluation_for_the_next_turn(
    hub: LocalHub, complained: Path
) -> None:
    change(complained, judges=[])
    done = turn(complained, api=hub.api())
    assert [one.partition(" stopped")[0] for one in done.held] == ["checks"]
    assert "eval" not in done.steps


@pytest.fixture
def run(tmp_path: Path) -> SyncedRun:
    (tmp_path / "mount").mkdir()
    one = SyncedRun(tmp_path / "here" / "run", tmp_path / "mount" / "run")
    for name in (
        "stages/collect/kept.parquet",
        "pictures/ab/abcd",
        "cache/x",
        ".lock",
        "outputs/.amber.lock",
        "a.partial",
    ):
        path = one.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return one


def names(folder: Path | None) -> set[str]:
    assert folder is not None
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def elsewhere(run: SyncedRun) -> SyncedRun:
    return SyncedRun(run.folder.with_name("elsewhere") / "run", run.place)


KEPT = {"stages/collect/kept.parquet", "pictures/ab/abcd", COUNT_FILE}


def test_what_a_machine_needs_alone_stays_there(run: SyncedRun) -> None:
    run.push()
    assert names(run.place) == KEPT
    other = elsewhere(run)
    assert other.fetch() == "3 files fetched"
    assert names(other.folder) == KEPT
    assert other.fetch() == "what is here is the newest"


def test_what_was_deleted_here_is_deleted_there(run: SyncedRun) -> None:
    """Posts that were forgotten do not live on in what is kept."""
    run.push()
    (run.folder / "pictures/ab/abcd").unlink()
    run.push()
    assert names(run.place) == KEPT - {"pictures/ab/abcd"}
    other = elsewhere(run)
    other.fetch()
    run.push()
    (other.folder / "stray").write_text("of an older turn")
    other.fetch()
    assert names(other.folder) == names(run.place)


def test_the_newer_of_two_copies_counts(run: SyncedRun) -> None:
    run.push()
    other = elsewhere(run)
    other.fetch()
    (run.folder / "answers").write_text("of a killed turn")
    (run.folder / COUNT_FILE).write_text('{"kept": 7}')
    assert run.fetch() == "what is here is the newest"
    assert (run.folder / "answers").exists()
    run.push()
    other.fetch()
    assert (other.folder / "answers").read_text() == "of a killed turn"


def test_a_run_that_was_built_by_hand_is_not_replaced(run: SyncedRun) -> None:
    """A fetch that was killed leaves a mark, and is done again."""
    run.push()
    other = elsewhere(run)
    other.folder.mkdir(parents=True)
    (other.folder / "answers").write_text("by hand")
    with pytest.raises(RunError, match="was built without --state"):
        other.fetch()
    assert names(other.folder) == {"answers"}
    (other.folder / UNFINISHED_FILE).touch()
    other.fetch()
    assert names(other.folder) == KEPT


def test_what_was_forgotten_here_is_not_brought_back(run: SyncedRun) -> None:
    run.push()
    other = elsewhere(run)
    other.fetch()
    add_tombstones(other.folder / TOMBSTONES_FILE, [hash_url("https://a.example/1")])
    run.push()
    with pytest.raises(RunError, match=r"has forgotten 1 posts that .* would bring back: move"):
        other.fetch()
    other.push()
    other.push()
    assert other.fetch() == "what is here is the newest"
    run.fetch()
    assert (run.folder / TOMBSTONES_FILE).exists()


def test_a_database_in_use_is_kept_with_all_that_is_committed(run: SyncedRun) -> None:
    """The copy has no log beside it, and is never opened where it is kept."""
    path = run.folder / "answers.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as here:
        here.execute("pragma journal_mode = wal")
        here.execute("create table answer (text)")
        for number in range(3):
            here.execute("insert into answer values (?)", (f"answer {number}",))
            run.push()
            assert run.place is not None
            assert not list(run.place.glob("*-wal"))
            copy = run.folder.with_name("copy.sqlite")
            shutil.copyfile(run.place / "answers.sqlite", copy)
            with closing(sqlite3.connect(copy)) as there:
                assert there.execute("select count(*) from answer").fetchone() == (number + 1,)


def test_an_older_log_is_not_read_into_a_fetched_database(run: SyncedRun) -> None:
    with closing(sqlite3.connect(run.folder / "answers.sqlite")) as here:
        here.execute("create table newer (text)")
    run.push()
    other = elsewhere(run)
    other.folder.mkdir(parents=True)
    (other.folder / UNFINISHED_FILE).touch()
    for ending in ("", "-wal", "-shm"):
        (other.folder / f"answers.sqlite{ending}").write_bytes(b"older")
    other.fetch()
    assert {one for one in names(other.folder) if "sqlite" in one} == {"answers.sqlite"}
    with closing(sqlite3.connect(other.folder / "answers.sqlite")) as there:
        assert there.execute("select name from sqlite_master").fetchall() == [("newer",)]


def test_of_a_keeping_that_was_killed_results_are_made_again(run: SyncedRun) -> None:
    """Half of them may be older; what they are made of, answers and images, is whole."""
    run.push()
    assert run.place is not None
    (run.place / UNFINISHED_FILE).touch()
    other = elsewhere(run)
    other.fetch()
    assert names(other.folder) == KEPT - {"stages/collect/kept.parquet"}


def test_a_mount_that_is_not_there_is_no_empty_one(run: SyncedRun, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="expected a folder; mount it"):
        SyncedRun(run.folder, tmp_path / "no mount" / "run").fetch()


@pytest.mark.parametrize("place", ["mount/run", "here/run", "here/run/run", "here"])
def test_files_of_others_are_not_mirrored_away(run: SyncedRun, tmp_path: Path, place: str) -> None:
    """A config's folder often has the name that the config has, and stands where runs are kept."""
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "benchmark.yaml").touch()
    before = names(tmp_path)
    with pytest.raises(RunError, match="has other files, which a turn would delete"):
        SyncedRun(run.folder, tmp_path / place).fetch()
    assert names(tmp_path) == before


def linked(run: SyncedRun, name: str, to: Path) -> Path:
    assert run.place is not None
    path = run.place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(to)
    return path


@pytest.mark.parametrize("name", ["stages", "pictures/ab", "pictures/ab/abcd", "more"])
def test_a_turn_follows_no_link_in_what_is_kept(run: SyncedRun, tmp_path: Path, name: str) -> None:
    """Neither what it keeps nor what it fetches leads out of its folder."""
    run.push()
    mine = tmp_path / "mine"
    (mine / "collect").mkdir(parents=True)
    (mine / "secret").write_text("a secret")
    path = linked(run, name, mine / "secret" if name.endswith("abcd") else mine)
    before = names(mine)
    other = elsewhere(run)
    for act in (other.fetch, run.fetch, run.push):
        said = said_by(RunError, act)
        assert f"{str(path)!r} is neither a file nor a folder" in said
    assert names(mine) == before
    assert not other.folder.exists()


def test_a_pipe_in_what_is_kept_does_not_hold_a_turn_up(run: SyncedRun) -> None:
    run.push()
    assert run.place is not None
    os.mkfifo(run.place / "pipe")
    said_by(RunError, elsewhere(run).fetch)


@pytest.mark.parametrize(
    "text",
    [
        *('{"kept": Infinity}', '{"kept": -1}', '{"kept": 1e300}', '{"kept": "2"}', "{}", "[]"),
        *('{"kept": ' + "[" * 100_000, "[" * 5000, '{"kept": ' + "9" * 5000 + "}", "", "\x00"),
        " " * 200_000,
    ],
)
def test_a_count_that_is_none_is_one_line_and_what_is_kept_stays(run: SyncedRun, text: str) -> None:
    run.push()
    assert run.place is not None
    (run.place / COUNT_FILE).write_text(text)
    before = names(run.place)
    other = elsewhere(run)
    assert "does not say how often the run was kept" in said_by(RunError, other.fetch)
    assert names(run.place) == before


def test_a_check_that_all_systems_pass_is_retired_in_the_next_turn(
    hub: LocalHub, complained: Path
) -> None:
    """The evaluation of one turn asks it of every output; the next one reads the rates."""
    repository = hub.repositories
    assert turn(complained, api=hub.api()).held == ()
    release = complained.parent / "runs/lumen/release"
    (folder := complained.parent / "clean").mkdir()
    for number, name in enumerate(read_release(release).datasets["text_to_image"]["id"]):
        (folder / f"{name}.png").write_bytes(draw(number))
    parameters = {"folder": str(folder), "layout": "flat"}
    change(complained, systems=[{"name": "clean", "adapter": "files", "parameters": parameters}])
    second = turn(complained, api=hub.api())
    assert (second.held, second.steps["checks"]) == ((), "nothing changed, $0.00")
    results = SavedResults.read(complained.parent / "runs/lumen/results.json")
    rates = [rate for split in results.details.values() for rate in split.checks]
    assert [(rate.check, rate.system, rate.value) for rate in rates] == [
        ("colour_cast@1", "clean", 0.0)
    ]
    assert read_release(release).datasets["checks"][0]["status"] == "kept"
    third = turn(complained, api=hub.api())
    assert (third.held, third.steps["checks"]) == ((), "1 retired, $0.00")
    (row,) = read_release(release).datasets["checks"].to_list()
    assert (row["status"], row["reason"]) == ("retired", "all_pass")
    said = repository[REPO].pulls[max(repository[REPO].pulls)].said[0]
    assert r"colour\_cast@1 appeared and is retired: each system fails in less than 2 %" in said
    fourth = turn(complained, api=hub.api())
    assert fourth.steps["checks"] == "nothing changed, $0.00"
