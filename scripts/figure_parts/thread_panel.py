"""The first panel: posts as they stand under each other, with what is taken from each."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from figure_parts.canvas import Box, Canvas, check_room, size_of, wrapped
from figure_parts.story import Story

SIZE, LEADING = 15, 20
PAD, GAP, INDENT = 14, 12, 26

Anchor = tuple[float, float]
Anchors = dict[tuple[str, str], Anchor]


@dataclass(frozen=True)
class Piece:
    """Words of a post in a row, all for one column or for none."""

    text: str
    column: str | None


def thread_panel(canvas: Canvas, story: Story, box: Box) -> Anchors:
    anchors: Anchors = {}
    y, bottoms = box.y, dict[int, float]()
    for number, post in enumerate(story.posts):
        x = box.x + INDENT * post["depth"]
        card = Box(x, y, box.right - x, _height(story, post, box.right - x))
        if post["parent"] in bottoms:
            _rail(canvas, box.x + INDENT * (post["depth"] - 0.5), bottoms[post["parent"]], card)
        anchors.update(_post(canvas, story, post, card))
        bottoms[number] = card.bottom
        y = card.bottom + GAP
    check_room("the posts", y - GAP, box.bottom)
    return anchors


def pieces(story: Story, post: Mapping[str, Any]) -> list[Piece]:
    """A post's text, cut where a column of the row begins or ends."""
    found, rest = list[Piece](), str(post["text"])
    for column in ("prompt", "community_feedback"):
        for words in story.texts_for(column, post):
            at = rest.index(words)
            found += [Piece(_words(rest[:at]), None), Piece(words, column)]
            rest = rest[at + len(words) :]
    return [each for each in [*found, Piece(_words(rest), None)] if each.text]


def _words(text: str) -> str:
    """Words beside those of the row, without symbols that not every machine can draw."""
    return "".join(letter for letter in text if unicodedata.category(letter) != "So").strip()


def _is_mention(piece: Piece) -> bool:
    """Whether it only names whom a reply is for, which stands beside the author's name."""
    return piece.column is None and piece.text.startswith("@") and " " not in piece.text


def _lines(piece: Piece, room: float) -> list[str]:
    lines = wrapped(piece.text, SIZE, room - (12 if piece.column else 0))
    return [line for line in lines if line]


def _height(story: Story, post: Mapping[str, Any], room: float) -> float:
    card = Box(0, 0, room, 0)
    shown = [piece for piece in pieces(story, post) if not _is_mention(piece)]
    high = PAD + 20 + sum(_piece_height(piece, card) for piece in shown) + PAD - 6
    if not post["pictures"]:
        return high
    return high + _image_height(story, post, room - 2 * PAD) + 22


def _image_height(story: Story, post: Mapping[str, Any], inner: float) -> float:
    sizes = [size_of(story.images[each["sha256"]]) for each in post["pictures"]]
    return round(_image_width(post, inner) * max(high / wide for wide, high in sizes))


def _image_width(post: Mapping[str, Any], inner: float) -> float:
    return min(144.0, (inner - 12) / len(post["pictures"]))


def _rail(canvas: Canvas, x: float, top: float, card: Box) -> None:
    y = card.y + 22
    canvas.shapes.append(
        f'<path d="M{x:g} {top:g}V{y - 8:g}Q{x:g} {y:g} {x + 8:g} {y:g}H{card.x:g}" fill="none" '
        f'stroke="{canvas.theme.edge}" stroke-width="2"/>'
    )


def _post(canvas: Canvas, story: Story, post: Mapping[str, Any], card: Box) -> Anchors:
    anchors, shown = Anchors(), pieces(story, post)
    mention = shown.pop(0).text if _is_mention(shown[0]) else ""
    canvas.card(card)
    _names(canvas, f"@{post['author']}", mention, card)
    y = card.y + PAD + 20
    for piece in shown:
        block = Box(card.x + PAD, y, card.width - 2 * PAD, _piece_height(piece, card))
        _piece(canvas, piece, block)
        if piece.column is not None:
            anchors[piece.column, piece.text] = (card.right, block.middle - 1)
        y = block.bottom
    room = Box(card.x + PAD, y + 14, card.width - 2 * PAD, 0)
    return {**anchors, **_images(canvas, story, post, room)}


def _names(canvas: Canvas, author: str, mention: str, card: Box) -> None:
    theme, y = canvas.theme, card.y + PAD + 13
    canvas.word(author, card.x + PAD, y, size=SIZE - 1, fill=theme.quiet, kind="b")
    if mention:
        right = card.right - PAD
        canvas.word(mention, right, y, size=SIZE - 1, fill=theme.quiet, anchor="end")


def _piece(canvas: Canvas, piece: Piece, room: Box) -> None:
    lines, x, y = _lines(piece, room.width), room.x, room.y + 18
    if piece.column is not None:
        block = Box(room.x, room.y + 2, room.width, len(lines) * LEADING + 8)
        marked(canvas, block, canvas.theme.parts[piece.column])
        x, y = x + 10, y + 2
    canvas.words(lines, x, y, size=SIZE, leading=LEADING, fill=canvas.theme.ink)


def _piece_height(piece: Piece, card: Box) -> float:
    below = 14 if piece.column else 6
    return len(_lines(piece, card.width - 2 * PAD)) * LEADING + below


def _images(canvas: Canvas, story: Story, post: Mapping[str, Any], room: Box) -> Anchors:
    anchors, x = Anchors(), room.x
    for each in post["pictures"]:
        data = story.images[each["sha256"]]
        column = _column_of(story, data)
        wide, high = size_of(data)
        shown = _image_width(post, room.width)
        box = Box(x, room.y, shown, round(shown * high / wide))
        canvas.image(data, box, canvas.theme.parts[column])
        anchors[column, each["sha256"]] = _way_out(canvas, box, room, canvas.theme.parts[column])
        x = box.right + 12
    return anchors


def _way_out(canvas: Canvas, box: Box, room: Box, color: str) -> Anchor:
    """Where the line of an image leaves its card: over the others, where some stand beside it."""
    edge = room.right + PAD
    if box.right + box.width > room.right:
        canvas.line(box.right, box.middle, edge, box.middle, color, ' stroke-width="2.5"')
        return edge, box.middle
    x, y = box.x + box.width / 2, box.y - 9
    canvas.shapes.append(
        f'<path d="M{x:g} {box.y:g}V{y + 6:g}Q{x:g} {y:g} {x + 6:g} {y:g}H{edge:g}" fill="none" '
        f'stroke="{color}" stroke-width="2.5"/>'
    )
    return edge, y


def _column_of(story: Story, image: bytes) -> str:
    (column,) = (name for name in ("input_images", "output_images") if image in story.row[name])
    return column


def marked(canvas: Canvas, block: Box, color: str) -> None:
    """Puts a column's color behind words, and a bar before them."""
    canvas.rect(block, color, radius=4, more=f' fill-opacity="{canvas.theme.wash:g}"')
    canvas.rect(Box(block.x, block.y, 3, block.height), color, radius=1.5)
