"""The page as HTML: what it shows, and what it must never hold."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from echo_hf.apps.rank.draw import Draw, RankedSample, ShownOutput
from echo_hf.apps.rank.page import board
from echo_hf.apps.rank.session import Ranker, View
from echo_hf.engines.base import ImageRef
from echo_hf.systems.base import Task
from tests.apps.rank.test_session import did, ranker

HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(1)> \"'`${1}{{2}}&lt;"


class Parts(HTMLParser):
    """All tags with their attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keeps a text."""
        self.text.append(data)


def hostile(path: Path) -> Ranker:
    """One sample of which every text is markup."""
    task = Task(HOSTILE, "d", "text_to_image", HOSTILE, (ImageRef("1" * 64),))
    sample = RankedSample(
        task, (ShownOutput("zorblatt", "2" * 64), ShownOutput("quixel", "3" * 64))
    )
    return ranker(path, sample)


def parts(view: View) -> Parts:
    """The page of a view, taken apart; images are numbered by their digests."""
    return Parts(board(view, lambda digest: f"/image/{digest[0]}", 5))


def test_texts_of_posts_are_text(tmp_path: Path) -> None:
    """No tag and no attribute comes of a prompt or an id; they read as they were written."""
    plain = Parts(board(ranker(tmp_path, _sample()).view("ann"), str))
    found = parts(hostile(tmp_path).view("ann"))
    assert "".join(found.text).count(HOSTILE) == 1
    assert {tag for tag, _ in found.tags} == {tag for tag, _ in plain.tags}
    assert not [name for _, named in found.tags for name in named if name.startswith("on")]
    board_tag = next(named for _, named in found.tags if "board" in (named.get("class") or ""))
    assert board_tag["data-subject"] == HOSTILE
    assert board_tag["data-answer"] == "5"


def _sample() -> RankedSample:
    task = Task("s", "d", "text_to_image", "a lighthouse", (ImageRef("1" * 64),))
    return RankedSample(task, (ShownOutput("zorblatt", "2" * 64), ShownOutput("quixel", "3" * 64)))


def test_no_system_is_on_the_page(tmp_path: Path) -> None:
    """Images are letters, in the order of the view."""
    view = hostile(tmp_path).view("ann")
    page = board(view, lambda digest: f"/image/{digest[0]}")
    assert "zorblatt" not in page
    assert "quixel" not in page
    assert "2" * 64 not in page
    shown = [named["src"] for tag, named in Parts(page).tags if tag == "img"]
    assert shown == ["/image/1", *(f"/image/{one.output[0]}" for one in view.outputs)]


def test_ranks_and_progress_are_shown(tmp_path: Path) -> None:
    """One image first, one that cannot be ranked; nothing is left of one sample."""
    one = ranker(tmp_path, _sample())
    assert "nothing to save yet" in board(one.view("ann"), str)
    did(one, "ann", "place", item=0, rank=1)
    view = did(one, "ann", "bar", item=1).view
    found = parts(view)
    labels = [named["aria-label"] for tag, named in found.tags if tag == "article"]
    assert labels == ["Image A, rank 1", "Image B, cannot be ranked"]
    text = "".join(found.text)
    assert "Sample 1 of 1" in text
    assert "1 ranked · all ranked, thank you" in text
    assert view.saved is not None
    assert f"saved {view.saved:%H:%M} UTC" in text


@pytest.mark.parametrize("count", [2, 3, 8, 30])
def test_there_is_a_card_and_a_rank_for_each_image(tmp_path: Path, count: int) -> None:
    """However many systems there are."""
    outputs = tuple(ShownOutput(f"m{at}", f"{at:064}") for at in range(count))
    task = Task("s", "d", "text_to_image", "draw")
    one = Ranker(ranker(tmp_path, _sample()).log, Draw((RankedSample(task, outputs),), {}, 0, {}))
    tags = parts(one.view("ann")).tags
    assert [named["data-item"] for tag, named in tags if tag == "article"] == [
        str(at) for at in range(count)
    ]
    ranks = [named["data-rank"] for _, named in tags if "data-rank" in named]
    assert ranks == [str(at + 1) for at in range(count)]
