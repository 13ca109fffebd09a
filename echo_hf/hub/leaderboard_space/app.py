"""The page of the leaderboard Space: a dataset repository's results, board by board.

`leaderboard.json` beside this file names the repository.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from echo_hf import EchoError
from echo_hf.hub.leaderboard import ScoredRelease, list_splits, read_scored, render_leaderboard

DATASET_FILE = "leaderboard.json"
NO_TAG = "none"
PROTOCOLS = ("corrected", "published")


@dataclass
class Leaderboard:
    """The releases of a repository, as of the last page view."""

    repo_id: str
    releases: tuple[ScoredRelease, ...] = ()
    problem: str = ""

    def __post_init__(self) -> None:
        self._lock = Lock()

    def read_new_tags(self) -> None:
        """Read new tags; known ones stay when the Hub is unreachable."""
        with self._lock:
            try:
                self.releases = read_scored(self.repo_id, known=self.releases)
                self.problem = ""
            except EchoError as error:
                self.problem = str(error)

    def list_splits(self, tag: str | None) -> list[str]:
        return next((list_splits(release) for release in self.releases if release.tag == tag), [])


def read_repository() -> str:
    """Read the name of the dataset repository from the file beside this one."""
    settings = json.loads(Path(__file__).with_name(DATASET_FILE).read_text("utf-8"))
    return str(settings["dataset"])


def main() -> None:
    """Show the page until it is stopped."""
    import gradio

    board = Leaderboard(read_repository())

    def open_page() -> tuple[Any, ...]:
        board.read_new_tags()
        tags = [release.tag for release in board.releases]
        newest = tags[0] if tags else None
        beside = gradio.Dropdown(choices=[NO_TAG, *tags], value=NO_TAG)
        return gradio.Dropdown(choices=tags, value=newest), beside, choose_splits(newest)

    def choose_splits(tag: str | None) -> Any:
        splits = board.list_splits(tag)
        return gradio.Radio(choices=splits, value=splits[0] if splits else None)

    def show_board(tag: str, split: str, protocol: str, beside: str) -> str:
        other = None if beside == NO_TAG else beside
        return render_leaderboard(board.releases, tag, split, protocol, other, board.problem)

    with gradio.Blocks(title="ECHO leaderboard", analytics_enabled=False) as page:
        gradio.Markdown(f"# ECHO leaderboard\n\nResults of `{board.repo_id}`")
        with gradio.Row():
            tag, beside = gradio.Dropdown(label="Tag"), gradio.Dropdown(label="Compare with")
        with gradio.Row():
            split = gradio.Radio(label="Split")
            protocol = gradio.Radio(PROTOCOLS, value=PROTOCOLS[0], label="Protocol")
        table = gradio.HTML()
        choices = [tag, split, protocol, beside]
        page.load(open_page, None, [tag, beside, split]).then(show_board, choices, table)
        tag.input(choose_splits, tag, split).then(show_board, choices, table)
        for control in (split, protocol, beside):
            control.input(show_board, choices, table)
    page.launch()


if __name__ == "__main__":
    main()
