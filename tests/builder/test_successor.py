"""The config of the next release: names replaced, windows moved, and what a person fills in."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.builder.build import build
from echo_hf.builder.successor import derive_config
from echo_hf.cli import app
from echo_hf.config.collection import Search
from echo_hf.config.loading import load_config
from echo_hf.errors import ConfigError, EchoError, ReleaseError
from echo_hf.hub.card import read_searches
from echo_hf.hub.manifest import CARD
from echo_hf.hub.redistribution import dehydrate
from tests.errors_for_tests import said_by
from tests.hub.conftest import (
    REPO,
    Put,
    Write,
    configs,
    digests,
    facts,
    hub,
    images,
    put,
    samples,
    target,
    write,
)
from tests.local_hub import LocalHub

__all__ = ["configs", "digests", "facts", "hub", "images", "put", "samples", "target", "write"]
PHASES: list[dict[str, Any]] = [
    {
        "terms": ["pixelbloom", "#pbloom art", "PBLOOM", "ai art", "pbloomer"],
        "window": "1d",
        "start": "2025-03-20",
        "until": "2025-04-04",
    },
    {"terms": ["pbloomの絵"], "languages": ["ja"], "window": "7d", "days": 30},
]
SEARCH = {"phases": PHASES, "budget": {"posts": 500}, "expand": {"rounds": 1}}
MOVED = [
    # Five days before, fifteen days long; names are replaced as words, equal terms stand once.
    {
        "terms": ["Duskbrush 2", "#Duskbrush2 art", "ai art", "pbloomer"],
        "window": "1d",
        "start": "2026-10-27",
        "days": 15,
    },
    {"terms": ["Duskbrush 2の絵"], "languages": ["ja"], "window": "7d", "days": 30},
]


@pytest.fixture
def searches() -> dict[str, Search]:
    return {"bluesky": Search.model_validate(SEARCH)}


def init(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, ["init", *map(str, arguments)])
    assert done.exit_code == 0, done.exception
    return done.output


def test_the_next_config_is_made_from_a_tag_of_the_hub(
    hub: LocalHub, put: Put, write: Write, searches: dict[str, Search]
) -> None:
    put(write("bloom-2025-03", searches=searches), "bloom-2025-03")
    place = f"{REPO}@bloom-2025-03"
    found = derive_config(place, "Duskbrush 2", datetime.date(2026, 11, 1), api=hub.api())
    assert found.sections["name"] == "duskbrush-2-2026-11"
    assert found.sections["target"] == {
        "name": "Duskbrush 2",
        "developer": "Bloomworks",
        "released": "2026-11-01",
        "aliases": [],
        "others": ["Otherbrush", "Pixelbloom"],
    }
    assert found.sections["posts"] == [{"source": "bluesky", "search": {**SEARCH, "phases": MOVED}}]
    assert found.sections["analysis"] == {"before": place}
    assert found.sections["release"] == {"contact": "requests@example.org"}
    assert any(one.endswith("stay: ai art, pbloomer") for one in found.remarks)


def test_a_release_says_what_was_searched_and_older_versions_read_it(
    write: Write, searches: dict[str, Search], tmp_path: Path
) -> None:
    """The card alone has it; without content it still has it, and a silent one has no trace."""
    silent, told = write("silent", name="x"), write("told", name="x", searches=searches)
    assert read_searches(told.path / CARD) == searches
    assert read_searches(dehydrate(told.path, tmp_path / "dry").path / CARD) == searches
    assert read_searches(silent.path / CARD) == {}
    assert "search" not in (silent.path / CARD).read_text("utf-8").partition("\n---\n")[0]
    plain, other = (one.manifest.model_dump(exclude={"card"}) for one in (silent, told))
    assert plain == other


@pytest.mark.parametrize(
    ("front", "said"),
    [("searches: {bluesky: {phases: []}}", "bluesky.phases is"), ("- a", "has no front matter")],
)
def test_searches_of_others_are_checked(tmp_path: Path, front: str, said: str) -> None:
    path = tmp_path / CARD
    path.write_text(f"---\n{front}\n---\n# Card\n", "utf-8")
    assert said in said_by(ReleaseError, read_searches, path)


def test_what_the_date_decides_is_filled_in_by_a_person(
    write: Write, searches: dict[str, Search], tmp_path: Path
) -> None:
    """No config takes the file before; with the two dates it is one."""
    release = write("bloom", searches=searches).path
    said = init("--next", "Duskbrush 2", "--from", release, tmp_path / "next")
    path = tmp_path / "next" / "duskbrush-2.yaml"
    assert f"next: echo-hf collect {path}" in " ".join(said.split())
    with pytest.raises(ConfigError, match=r"target\.released is 'FILL IN the day of the release"):
        load_config(path)
    text = path.read_text("utf-8")
    assert "aliases: []  # other names that people use for it" in text
    text = text.replace("FILL IN the day of the release, such as 2026-03-02", "2026-11-01")
    assert "start: FILL IN the day 5 days before the release" in text
    path.write_text(text.replace("FILL IN the day 5 days before the release", "2026-10-27"))
    config = load_config(path)
    (posts,) = config.posts
    assert posts.search == Search.model_validate({**SEARCH, "phases": MOVED})
    dated = tmp_path / "dated"
    init("benchmark", dated, "--next", "Duskbrush 2", "--from", release, "--released", "2026-11-01")
    at_once = load_config(dated / "duskbrush-2-2026-11.yaml")
    assert (at_once.target, at_once.posts) == (config.target, config.posts)


def test_a_run_gives_its_whole_config(tmp_path: Path) -> None:
    """Engines, schedule and options stay; files of posts, which are about the last model, go."""
    init("benchmark", tmp_path)
    path = tmp_path / "benchmark.yaml"
    more: dict[str, Any] = {
        "schedule": {"repo_id": REPO, "budget_usd": 3},
        "splits": {"seed": 7},
        "rights": {"x": "A contract"},
    }
    data = {**yaml.safe_load(path.read_text("utf-8")), **more}
    path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")
    release = build(path, runs=tmp_path / "runs").path
    said = init(
        *("--next", "Duskbrush", "--from", release.parent, tmp_path / "next"),
        *("--released", "2026-11-01"),
    )
    assert "1 file of posts about Lumen Image left out" in said
    (tmp_path / "next" / "posts.jsonl").touch()
    old, new = load_config(path), load_config(tmp_path / "next" / "duskbrush-2026-11.yaml")
    changed = {"name", "target", "posts", "analysis"}
    assert new.model_dump(exclude=changed) == old.model_dump(exclude=changed)
    assert new.analysis.before == str(release)
    assert new.target.others == ("Paintbox", "DreamMill", "Lumen Image")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--next", "New"], "--next MODEL and --from LAST go together"),
        (["--next", "New", "--from", "nowhere"], "expected the folder of a run or of a release"),
        (["--next", "New", "--from", "LAST", "--released", "May"], "expected a day, such as"),
        (["--next", "pbloom", "--from", "LAST"], "expected another model"),
        (["--next", "a\nb", "--from", "LAST"], "can be printed"),
        (["one", "two", "--next", "New", "--from", "LAST"], "expected [FOLDER] alone"),
        (["comparison", "--next", "New", "--from", "LAST"], "expected [FOLDER] alone"),
        (["--next", "New", "--from", "LAST", "--benchmark", "x"], "go with `echo-hf init compar"),
    ],
)
def test_what_cannot_be_done_says_why(write: Write, arguments: list[str], said: str) -> None:
    release = write("last")
    done = CliRunner().invoke(
        app, ["init", *(str(release.path) if one == "LAST" else one for one in arguments)]
    )
    assert isinstance(done.exception, EchoError), done.output
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)
