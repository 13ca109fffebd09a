"""The Hub's own board of a dataset, and what its releases say to the values that others filed."""

from __future__ import annotations

import json
from typing import Any

import huggingface_hub
import pytest

from echo_hf.errors import HubError
from echo_hf.hub.hub_board import HubBoard, list_benchmarks, read_hub_board
from tests.hub.conftest import Command
from tests.hub.leaderboard.conftest import DEFINITION, REPO, SPLIT, Publish, figure
from tests.local_hub import LocalHub

OURS = "northlight/alpha-2"
HOSTILE = "tofu/x\x1b[31m"


def board_row(rank: int, model: str, value: Any, **more: Any) -> dict[str, Any]:
    """A row as the Hub's guide to its leaderboards documents it."""
    author = {"name": model.partition("/")[0], "type": "user", "avatarUrl": "https://x.example/a"}
    row = {"rank": rank, "modelId": model, "value": value, "verified": False, "author": author}
    return {**row, "source": None, "filename": ".eval_results/echo.yaml", **more}


def filed(value: Any, task: str = SPLIT, revision: str | None = None) -> dict[str, Any]:
    """An entry as a model's page has it; its fields are those of `.eval_results/*.yaml`."""
    about = {"id": REPO, "task_id": task} | ({"revision": revision} if revision else {})
    return {"filename": ".eval_results/echo.yaml", "data": {"dataset": about, "value": value}}


@pytest.fixture
def released(publish_scored: Publish, hub: LocalHub) -> LocalHub:
    """Two tags: alpha, whose model is known, has 0.75123 on the first and 0.5 on the second."""
    models = {"alpha": {"model": OURS}, "bravo": {"model": "tofu/bravo"}}
    told = {**DEFINITION, "answered_by": {"systems": models}}
    for tag, rate in {"v1": 0.75123, "v2": 0.5}.items():
        rates = {"alpha": rate, "bravo": 1 - rate}
        publish_scored(tag, [figure(name, one, definition=told) for name, one in rates.items()])
    return hub


def read(hub: LocalHub, **models: list[dict[str, Any]]) -> HubBoard:
    """The board of one model that filed these, all of which the Hub ranks."""
    listed = [(OURS, one["data"]["value"]) for one in models["ours"]]
    hub.models = {OURS: models["ours"]}
    rows = [board_row(at, *pair) for at, pair in enumerate(listed, 1)]
    hub.repositories[REPO].filed = rows
    return read_hub_board(REPO, api=hub.api())


@pytest.mark.parametrize(
    ("value", "task", "tag", "standing"),
    [
        (0.7512, SPLIT, "v1", "verified"),  # the release's own value, to four digits
        (0.5, SPLIT, "v2", "verified"),
        (0.5, SPLIT, "v1", "differs"),  # that of another revision
        (0.75, SPLIT, "v1", "differs"),
        (75.12, SPLIT, "v1", "differs"),
        (0.7512, "image_to_image", "v1", "not_in_the_release"),
        ("0.7512", SPLIT, "v1", "no_number"),
        (True, SPLIT, "v1", "no_number"),
    ],
)
def test_a_value_is_verified_by_the_release_of_its_revision(
    released: LocalHub, value: Any, task: str, tag: str, standing: str
) -> None:
    commit = released.repositories[REPO].tags[tag]
    (row,) = read(released, ours=[filed(value, task, commit)]).rows
    assert (row.standing, row.task, row.rank) == (standing, task, 1)
    assert row.tag == (tag if standing != "no_number" else None)


def test_without_a_revision_every_tag_is_looked_at(released: LocalHub) -> None:
    rows = read(released, ours=[filed(0.7512), filed(0.5), filed(0.6)]).rows
    assert [(row.standing, row.tag) for row in rows] == [
        *(("verified", "v1"), ("verified", "v2"), ("differs", "v2"))
    ]
    assert rows[2].released == {"alpha (corrected)": 0.5}


def test_a_commit_without_a_tag_verifies_nothing(released: LocalHub) -> None:
    """Not even the branch of a pull request that holds whatever its author likes."""
    repository = released.repositories[REPO]
    fake = repository.propose("mine", "", repository.head)
    commit = repository.add("forged", repository.head, repository.commits[repository.head].files)
    repository.branches[f"refs/pr/{fake}"] = commit
    for revision in (commit, f"refs/pr/{fake}", "0" * 40):
        (row,) = read(released, ours=[filed(0.5, revision=revision)]).rows
        assert (row.standing, row.released) == ("other_revision", None)


def test_a_release_that_was_changed_verifies_nothing(released: LocalHub) -> None:
    """As `load_benchmark` refuses it; the board says which tag and why."""
    files = released.repositories[REPO].find("v1").files  # type: ignore[union-attr]
    (path,) = (name for name in files if name.startswith("results/"))
    object.__setattr__(files[path], "data", files[path].data[:-8] + b"12345678")
    board = read(released, ours=[filed(0.7512)])
    assert board.rows[0].standing == "differs"  # from the tag that can be loaded
    assert "v1" in board.unreadable


def test_rows_whose_model_says_nothing_of_them_are_counted(released: LocalHub) -> None:
    released.models = {"tofu/other": [{"data": {"dataset": {}}}]}
    rows = [board_row(1, HOSTILE, 0.9, pullRequest=7), board_row(2, "tofu/other", 0.8)]
    released.repositories[REPO].filed = [*rows, board_row(3, "tofu/gone", "NaN")]
    board = read_hub_board(REPO, api=released.api())
    assert [(row.standing, row.request) for row in board.rows] == [
        *(("no_entry", 7), ("no_entry", None), ("no_number", None))
    ]
    assert board.counts == {"no_entry": 2, "no_number": 1}


def test_numbers_that_are_none_are_named(released: LocalHub) -> None:
    """An integer that no float holds, a rank in words, and a request that is none."""
    wrong = board_row("first", "tofu/other", 0.8, pullRequest="7\x1b[31m")
    released.repositories[REPO].filed = [board_row(1, HOSTILE, 10**400), wrong]
    rows = read_hub_board(REPO, api=released.api()).rows
    assert [(row.standing, row.rank, row.request) for row in rows] == [
        *(("no_number", 1, None), ("no_entry", None, None))
    ]


def test_the_verb_shows_a_board_and_escapes_names(released: LocalHub, command: Command) -> None:
    read(released, ours=[filed(0.7512), filed(0.6)])
    released.repositories[REPO].filed += [board_row(3, HOSTILE, 0.4)]  # type: ignore[operator]
    shown = command("leaderboard", "--hub", "--repo-id", REPO, hub=released)
    assert shown.code == 0
    assert "\x1b" not in shown.output
    lines = [line.split() for line in shown.output.splitlines()]
    assert ["1", OURS, SPLIT, "0.7512", "verified", "0.7512", "in", "v1"] in lines
    assert ["2", OURS, SPLIT, "0.6", "differs", "0.5000", "in", "v2"] in lines
    done = command("leaderboard", "--hub", "--repo-id", REPO, "--json", hub=released)
    rows = json.loads(done.output)["rows"]
    assert [row["standing"] for row in rows] == ["verified", "differs", "no_entry"]


def test_without_a_repository_the_benchmarks_of_the_hub_are_listed(
    released: LocalHub, command: Command
) -> None:
    released.repositories[REPO].listed = ["benchmark:official", "echo"]
    other = released.repositories["tofu/quiz"] = type(released.repositories[REPO])()
    other.listed = ["benchmark:official"]
    assert list_benchmarks(released.api()) == ([(REPO, None)], 1)
    shown = command("leaderboard", "--hub", hub=released).output
    assert f"{REPO}  can be loaded" in shown
    assert "1 more of others" in shown


def test_what_cannot_be_read_is_said_in_a_line(
    released: LocalHub, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HubError, match=f"read the board of '{REPO}': the Hub has no board of it"):
        read_hub_board(REPO, api=released.api())
    for given, line in {
        ("--hub", "--folder", "x"): "leave out --space, --folder and --private",
        ("--folder", "x"): "give --repo-id ORG/NAME",
        ("--repo-id", REPO): "give --space, --folder or --hub",
        ("--hub", "--repo-id", "../x"): "is not a name of a repository",
    }.items():
        done = command("leaderboard", *given, hub=released)
        assert done.code == 2
        assert line in done.errors
    monkeypatch.setattr(huggingface_hub, "__version__", "1.33.0")
    with pytest.raises(HubError, match=r"huggingface-hub 1\.33\.0 .* expected 2\.0 or newer"):
        read_hub_board(REPO, api=released.api())
