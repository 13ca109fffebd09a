"""The pictures of a sample on the page: what each is to it, and the boxes in its screenshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from echo_hf.apps.review.view import View
from echo_hf.curate.edit import ROLES
from echo_hf.curate.picture_sources import INPUT, OUTPUT
from echo_hf.errors import PictureError
from echo_hf.multimodal.crops import upright_size

Address = Callable[[str], str]
TITLES = {INPUT: "Inputs", OUTPUT: "Outputs", "neither": "Other pictures of the thread"}


def pictures(view: View, address: Address) -> str:
    """The pictures by their role, each with buttons for another one.

    Args:
        view: What the page shows.
        address: Where the page finds a picture, by its digest.

    Returns:
        HTML.
    """
    shown: dict[str, list[str]] = {role: [] for role in TITLES}
    for digest, role, is_cut in _every(view):
        shown[role].append(_card(digest, role, is_cut, digest in view.case.taken, address))
    sides = "".join(_group(role, shown[role]) for role in (INPUT, OUTPUT))
    others = _group("neither", shown["neither"]) if shown["neither"] else ""
    return f'<div class="both">{sides}</div>{others}'


def _group(role: str, cards: list[str]) -> str:
    inside = "".join(cards) or "<p>none</p>"
    return f'<div><h2>{TITLES[role]}</h2><div class="pictures">{inside}</div></div>'


def screenshot(view: View, address: Address) -> str:
    """The screenshot with its boxes, and their numbers to change.

    Args:
        view: What the page shows.
        address: Where the page finds a picture, by its digest.

    Returns:
        HTML; nothing where there is no screenshot.
    """
    digest = view.case.row["screenshot"]
    if digest is None:
        return ""
    size = _size(view, digest)
    if size is None:
        return "<h2>Screenshot</h2><p>it cannot be shown</p>"
    rows = "".join(_box(role, text) for role, text in view.form.boxes)
    return (
        f"<h2>Screenshot <small>{size[0]} × {size[1]} pixels</small></h2>"
        f'<div class="boxes" data-width="{size[0]}" data-height="{size[1]}">'
        f'<div class="shot"><img src="{address(digest)}" alt="Screenshot" draggable="false"></div>'
        f'<div class="list" aria-label="Boxes: left, top, right, bottom">{rows}</div>'
        '<p class="hint">Draw a box with the mouse, or type left, top, right, bottom.</p>'
        '<button type="button" data-box="add">Add a box</button></div>'
    )


def _every(view: View) -> Iterator[tuple[str, str, bool]]:
    """Digest, role, and whether it was cut out, each picture once."""
    seen = {view.case.row["screenshot"]}
    for role in (INPUT, OUTPUT):
        cut = len(view.shown[f"{role}_bboxs"] or ())
        for number, digest in enumerate(view.shown[f"{role}_images"] or ()):
            seen.add(digest)
            yield digest, role if number < cut else view.form.roles.get(digest, role), number < cut
    around = [one["sha256"] for post in view.case.context for one in post["pictures"] or ()]
    cuts = {
        view.case.row[f"{role}_images"][n] for role in (INPUT, OUTPUT) for n in _cuts(view, role)
    }
    before = [*(view.case.row["input_images"] or ()), *(view.case.row["output_images"] or ())]
    for digest in dict.fromkeys([*before, *around]):
        if digest and digest not in seen and digest not in cuts:
            seen.add(digest)
            yield digest, view.form.roles.get(digest, "neither"), False


def _cuts(view: View, role: str) -> range:
    """Numbers of the pictures that were cut out before any change."""
    return range(len(view.case.row[f"{role}_bboxs"] or ()))


def _card(digest: str, role: str, is_cut: bool, is_taken: bool, address: Address) -> str:
    if is_cut:
        below = "<small>cut from the screenshot: change its box</small>"
    elif is_taken and role == "neither":
        below = "<small>belongs to another sample</small>"
    else:
        choices = "".join(
            f'<button type="button" data-role="{one}" aria-pressed="{str(one == role).lower()}">'
            f"{one}</button>"
            for one in ROLES
        )
        below = f'<div class="roles" role="group" aria-label="Role">{choices}</div>'
    data = "" if is_cut else f' data-picture="{escape(digest)}" data-as="{escape(role)}"'
    return (
        f'<figure{data}><img class="zoom" src="{address(digest)}" alt="{escape(role)} picture" '
        f'tabindex="0" loading="lazy">{below}</figure>'
    )


def _box(role: str, text: str) -> str:
    options = "".join(
        f"<option{' selected' if one == role else ''}>{one}</option>" for one in (INPUT, OUTPUT)
    )
    return (
        f'<div class="box"><select aria-label="Role of the box">{options}</select>'
        f'<input value="{escape(text)}" aria-label="Left, top, right, bottom" '
        'autocomplete="off" inputmode="numeric">'
        '<button type="button" data-box="drop" aria-label="Remove the box">✕</button></div>'
    )


def _size(view: View, digest: str) -> tuple[int, int] | None:
    try:
        return upright_size(view.pictures.open(digest))
    except PictureError:
        return None
