"""The page of the Space: the results of a dataset repository, one board at a time.

`leaderboard.json` beside this file names the repository.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from echo_hf import EchoError
from echo_hf.hub.leaderboard import ScoredRelease, read_scored, shown, splits_of

NAMED_IN = "leaderboard.json"
NOBODY = "none"
PROTOCOLS = ("corrected", "published")


@dataclass
class Leaderboard:
    """The releases of a repository, as they were when somebody last opened the page."""

    repo_id: str
    releases: tuple[ScoredRelease, ...] = ()
    problem: str = ""

    def __post_init__(self) -> None:
        self._lock = Lock()

    def look(self) -> None:
        """Reads the tags that are new; what was read before stays when the Hub is out of reach."""
        with self._lock:
            try:
                self.releases = read_scored(self.repo_id, known=self.releases)
                self.problem = ""
            except EchoError as error:
                self.problem = str(error)

    def splits(self, tag: str | None) -> list[str]:
        """The splits of a release."""
        return next((splits_of(each) for each in self.releases if each.tag == tag), [])


def repository() -> str:
    """The dataset repository that the file beside this one names."""
    told = json.loads(Path(__file__).with_name(NAMED_IN).read_text("utf-8"))
    return str(told["dataset"])


def main() -> None:
    """Shows the page until it is stopped."""
    import gradio

    board = Leaderboard(repository())

    def opened() -> tuple[Any, ...]:
        board.look()
        tags = [each.tag for each in board.releases]
        first = tags[0] if tags else None
        beside = gradio.Dropdown(choices=[NOBODY, *tags], value=NOBODY)
        return gradio.Dropdown(choices=tags, value=first), beside, chosen(first)

    def chosen(tag: str | None) -> Any:
        splits = board.splits(tag)
        return gradio.Radio(choices=splits, value=splits[0] if splits else None)

    def told(tag: str, split: str, protocol: str, beside: str) -> str:
        other = None if beside == NOBODY else beside
        return shown(board.releases, tag, split, protocol, other, board.problem)

    with gradio.Blocks(title="ECHO leaderboard", analytics_enabled=False) as page:
        gradio.Markdown(f"# ECHO leaderboard\n\nResults of `{board.repo_id}`")
        with gradio.Row():
            tag, beside = gradio.Dropdown(label="Tag"), gradio.Dropdown(label="Compare with")
        with gradio.Row():
            split = gradio.Radio(label="Split")
            protocol = gradio.Radio(PROTOCOLS, value=PROTOCOLS[0], label="Protocol")
        table = gradio.HTML()
        choices = [tag, split, protocol, beside]
        page.load(opened, None, [tag, beside, split]).then(told, choices, table)
        tag.input(chosen, tag, split).then(told, choices, table)
        for each in (split, protocol, beside):
            each.input(told, choices, table)
    page.launch()


if __name__ == "__main__":
    main()
