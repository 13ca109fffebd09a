"""What a leaderboard reads of a repository, and the board of the bundled benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from echo_hf.builder.build import build
from echo_hf.cli.progress import Watch
from echo_hf.config.systems import shipped_config
from echo_hf.errors import HubError
from echo_hf.hub.leaderboard import NO_INTERVALS, NO_RESULTS, published_board, read_scored
from echo_hf.hub.publish import publish
from echo_hf.quickstart.run import JUDGE, show
from tests.hub.leaderboard.conftest import COUNT, DEFINITION, REPO, Publish, figure, ratings
from tests.local_hub import STRANGER, LocalHub


def test_every_tag_is_read(hub: LocalHub, publish_scored: Publish) -> None:
    """Figures with their definitions, ratings, samples by digest; or why there are none."""
    publish_scored("v1")
    publish_scored("v2", [figure("a", 0.7)], ratings({"qwen": {"a": 8, "b": 2}}))
    second, first = read_scored(REPO, api=hub.api())

    assert (second.tag, second.target, second.problem) == ("v2", "Pixelbloom", None)
    assert second.commit == hub.repositories[REPO].tags["v2"]
    assert [(each["system"], each["definition"]) for each in second.figures] == [("a", DEFINITION)]
    assert second.ratings is not None
    assert second.ratings.num_rows == 2 * COUNT
    assert second.samples["text_to_image"] == {(f"s{at}", f"{at:064x}") for at in range(COUNT)}
    assert second.samples["image_to_image"] == frozenset()
    assert (first.tag, first.figures, first.problem) == ("v1", (), NO_RESULTS)


def test_what_is_known_is_not_asked_for_again(hub: LocalHub, publish_scored: Publish) -> None:
    publish_scored("v1", [figure("a", 0.7)])
    known = read_scored(REPO, api=hub.api())
    hub.asked.clear()
    again = read_scored(REPO, known=known, api=hub.api())

    assert again[0] is known[0]
    assert not [path for _, path in hub.asked if "/resolve/" in path or "/tree" in path]

    publish_scored("v2", [figure("a", 0.8)])
    both = read_scored(REPO, known=known, api=hub.api())
    assert [each.tag for each in both] == ["v2", "v1"]
    assert both[1] is known[0]


def test_a_tampered_release_is_named_and_the_others_stay(
    hub: LocalHub, publish_scored: Publish
) -> None:
    """Bytes that the manifest does not know are no figures."""
    publish_scored("v1", [figure("a", 0.7)])
    publish_scored("v2", [figure("a", 0.9)])
    repository = hub.repositories[REPO]
    commit, other = (repository.commits[repository.tags[tag]] for tag in ("v2", "v1"))
    path = "results/test-00000-of-00001.parquet"
    files = {**commit.files, path: other.files[path]}
    repository.tags["v2"] = repository.add("tampered", commit.oid, files)
    second, first = read_scored(REPO, api=hub.api())
    assert (second.figures, first.problem) == ((), None)
    assert "results" in str(second.problem)


def test_a_repository_without_tags_or_that_is_not_there(hub: LocalHub) -> None:
    with pytest.raises(HubError, match=r"^there is no dataset 'pixel-lab/nothing', or"):
        read_scored("pixel-lab/nothing", api=hub.api())
    hub.api().create_repo(REPO, repo_type="dataset", private=True)
    assert read_scored(REPO, api=hub.api()) == ()
    with pytest.raises(HubError, match="may not see it"):
        read_scored(REPO, api=hub.api(STRANGER))


@pytest.mark.slow
def test_it_is_the_board_that_the_run_has(hub: LocalHub, tmp_path: Path) -> None:
    show(Watch(Console(quiet=True)), tmp_path)
    release = build(shipped_config(), runs=tmp_path)
    publish(release, REPO, "v1", allow_rules=True, allow_unscreened=True, api=hub.api())
    (found,) = read_scored(REPO, api=hub.api())
    path = release.path.parent / "results.json"
    details = json.loads(path.read_text("utf-8"))["details"]["text_to_image"]["win_rate"]
    board = published_board([found], found, "text_to_image", "corrected")
    tiers = {name: at for at, names in enumerate(details["tiers"]["tiers"], 1) for name in names}

    rates = details["corrected"]["win_rate"]
    assert {line.system: line.value for line in board["lines"]} == rates
    assert {line.system: line.tier for line in board["lines"]} == tiers
    assert f"judged by {JUDGE};" in board["about"]
    assert published_board([found], found, "image_to_image", "corrected")["note"] == NO_INTERVALS
