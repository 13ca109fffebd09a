"""The Space of a leaderboard: written into a folder, or made on the Hub by one command."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from echo_hf.errors import HubError
from echo_hf.hub.leaderboard import create_space, space_files, write_space
from echo_hf.hub.load import evaluate_module
from tests.hub.conftest import Command
from tests.hub.leaderboard.conftest import REPO, Publish
from tests.local_hub import STRANGER, LocalHub
from tests.local_hub_routes import space_key

SPACE = "pixel-lab/echo-leaderboard"


def test_the_files_are_a_gradio_space_of_that_dataset() -> None:
    files = space_files(REPO)
    _, front, text = files["README.md"].decode().split("---\n", 2)
    card = yaml.safe_load(front)
    required = Requirement(files["requirements.txt"].decode().splitlines()[-1])

    assert (card["sdk"], card["app_file"], card["datasets"]) == ("gradio", "app.py", [REPO])
    assert f"https://huggingface.co/datasets/{REPO}" in text
    assert "ORGANISATION" not in text
    assert len(card["short_description"]) <= 60
    assert (required.name, required.specifier.contains(version("echo-hf"))) == ("echo-hf", True)
    assert json.loads(files["leaderboard.json"]) == {"dataset": REPO}
    compile(files["app.py"], "app.py", "exec")
    other = (Path(evaluate_module()).parent / "README.md").read_text("utf-8")
    assert yaml.safe_load(other.split("---\n", 2)[1])["sdk_version"] == card["sdk_version"]


def test_a_folder_is_written_and_brought_up_to_date(tmp_path: Path) -> None:
    folder = write_space(REPO, tmp_path / "new" / "space")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == space_files(REPO)
    write_space("pixel-lab/other", folder)
    assert json.loads((folder / "leaderboard.json").read_bytes()) == {"dataset": "pixel-lab/other"}

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "app.py").write_text("print('mine')")
    with pytest.raises(HubError, match=r"holds 'app.py' and no leaderboard"):
        write_space(REPO, tmp_path / "mine")
    assert (tmp_path / "mine" / "app.py").read_text() == "print('mine')"
    with pytest.raises(HubError, match="is a file"):
        write_space(REPO, tmp_path / "mine" / "app.py")


def test_one_commit_makes_the_space(hub: LocalHub, publish_scored: Publish) -> None:
    publish_scored("v1")
    before = hub.repositories[REPO].head
    address = create_space(REPO, SPACE, private=True, api=hub.api())
    assert address == f"{hub.url}/spaces/{SPACE}"
    assert hub.repositories[space_key(SPACE)].private
    files = hub.files(space_key(SPACE))
    assert (
        files.items() - {(".gitattributes", files[".gitattributes"])} == space_files(REPO).items()
    )
    assert create_space(REPO, SPACE, api=hub.api()) == address
    assert hub.files(space_key(SPACE)) == files
    assert hub.repositories[REPO].head == before


def test_another_space_or_a_public_one_is_left_as_it_is(
    hub: LocalHub, publish_scored: Publish
) -> None:
    publish_scored("v1")
    api = hub.api()
    api.create_repo(SPACE, repo_type="space", space_sdk="static")
    with pytest.raises(HubError, match="is public, and --private is for new ones"):
        create_space(REPO, SPACE, private=True, api=api)
    head = hub.repositories[space_key(SPACE)].change("theirs", notes=b"mine")
    with pytest.raises(HubError, match=r"holds 'notes.txt' and no leaderboard"):
        create_space(REPO, SPACE, api=api)
    assert hub.repositories[space_key(SPACE)].head == head


def test_nothing_is_made_where_it_could_not_work(hub: LocalHub, publish_scored: Publish) -> None:
    with pytest.raises(HubError, match=r"there is no dataset 'pixel-lab/echo'"):
        create_space(REPO, SPACE, api=hub.api())
    publish_scored("v1")
    with pytest.raises(HubError, match="there is no token"):
        create_space(REPO, SPACE, api=hub.api(None))
    with pytest.raises(HubError, match="the Hub refuses this token"):
        create_space(REPO, SPACE, api=hub.api(STRANGER))
    assert space_key(SPACE) not in hub.repositories


def test_the_command_writes_a_folder_or_makes_the_space(
    hub: LocalHub, publish_scored: Publish, command: Command, tmp_path: Path
) -> None:
    publish_scored("v1")
    given = ("leaderboard", "--repo-id", REPO)
    assert command(*given, "--folder", tmp_path / "space").code == 0
    assert {path.name for path in (tmp_path / "space").iterdir()} == set(space_files(REPO))
    done = command(*given, "--space", SPACE, hub=hub)
    assert (done.code, done.output.strip()) == (0, f"leaderboard: {hub.url}/spaces/{SPACE}")
    assert "app.py" in hub.files(space_key(SPACE))
    nowhere = command(*given)
    assert (nowhere.code, nowhere.errors.count("\n")) == (2, 1)
    assert "give --space, or --folder" in nowhere.errors
