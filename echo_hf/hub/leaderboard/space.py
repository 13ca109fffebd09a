"""Makes the Space that shows the leaderboard of a dataset repository."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi

from echo_hf.errors import HubError
from echo_hf.hub.gate import check_repository
from echo_hf.hub.hub_errors import hub_errors
from echo_hf.hub.remote import MAIN, Remote

SOURCE = Path(__file__).parent.parent / "leaderboard_space"
FILES = ("README.md", "app.py", "requirements.txt")
NAMED_IN = "leaderboard.json"
DATASET = "ORGANISATION/NAME"
KIND = "space"
SDK = "gradio"


def space_files(repo_id: str) -> dict[str, bytes]:
    r"""The files of a Space.

    Args:
        repo_id: The dataset repository whose results it shows, `NAMESPACE/NAME`.

    Returns:
        Their bytes by path.

    Raises:
        HubError: It is no such name.

    Example:
        >>> space_files("my-lab/echo")["leaderboard.json"]
        b'{"dataset": "my-lab/echo"}\n'
    """
    check_repository(repo_id)
    texts = {name: (SOURCE / name).read_text("utf-8") for name in FILES}
    texts["README.md"] = texts["README.md"].replace(DATASET, repo_id)
    texts[NAMED_IN] = json.dumps({"dataset": repo_id}) + "\n"
    return {name: text.encode() for name, text in texts.items()}


def write_space(repo_id: str, folder: Path) -> Path:
    """Writes the files of a Space into a folder, and asks nobody.

    Args:
        repo_id: The dataset repository whose results it shows.
        folder: Where to; made when there is none.

    Returns:
        The folder.

    Raises:
        HubError: The name is none, or the folder holds something else.
    """
    files = space_files(repo_id)
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if folder.exists() and not folder.is_dir():
        raise HubError(f"{str(folder)!r} is a file: expected a folder that is empty, or new")
    _check_ours(held, repr(str(folder)))
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def create_space(
    repo_id: str, space: str, *, private: bool = False, api: HfApi | None = None
) -> str:
    """Makes a Space, or brings it up to date.

    Args:
        repo_id: The dataset repository whose results it shows, `NAMESPACE/NAME`.
        space: The Space, `NAMESPACE/NAME`.
        private: Makes a new Space one that only its owners see.
        api: The Hub's client; null for one with huggingface_hub's own address and token.

    Returns:
        Its address.

    Raises:
        HubError: There is no such dataset, the Space is something else, or public where a private
            one is wanted, the token is missing or may not write, or the Hub is out of reach.
    """
    api = api or HfApi()
    files = space_files(repo_id)
    check_repository(space)
    Remote(api, space).check_token()
    if Remote(api, repo_id).state() is None:
        raise HubError(
            f"there is no dataset {repo_id!r}, or this token may not see it: check --repo-id"
        )
    with hub_errors(f"make the Space {space!r}"):
        api.create_repo(space, repo_type=KIND, space_sdk=SDK, private=private, exist_ok=True)
        info = api.space_info(space)
        held = set(api.list_repo_files(space, repo_type=KIND, revision=info.sha))
    if private and not info.private:
        raise HubError(
            f"the Space {space!r} is public, and --private is for new ones: change it at "
            f"{api.endpoint}/spaces/{space}/settings first"
        )
    _check_ours(held, f"the Space {space!r}")
    _commit(api, space, str(info.sha), files)
    return f"{api.endpoint}/spaces/{space}"


def _check_ours(held: set[str], where: str) -> None:
    """Refuses to write over what is no leaderboard; what the Hub puts into a new one is no loss."""
    foreign = sorted(name for name in held if name not in (".gitattributes", "README.md"))
    if foreign and NAMED_IN not in held:
        raise HubError(
            f"{where} holds {foreign[0]!r} and no leaderboard: choose another name, or empty it"
        )


def _commit(api: HfApi, space: str, parent: str, files: dict[str, bytes]) -> None:
    operations = [CommitOperationAdd(name, data) for name, data in files.items()]
    with hub_errors(f"write to the Space {space!r}"):
        api.create_commit(
            space,
            operations,
            commit_message="Show the leaderboard",
            repo_type=KIND,
            revision=MAIN,
            parent_commit=parent,
        )
