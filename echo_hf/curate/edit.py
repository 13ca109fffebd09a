"""Turn what a reviewer typed and clicked into changes that a build can apply, or refuse it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from echo_hf.context.answers import LONGEST_PROMPT, Quality
from echo_hf.context.spans import SpanIndex
from echo_hf.curate.changes import (
    Changes,
    Crop,
    CropsChange,
    PromptChange,
    PromptSpan,
    Role,
    RoleChange,
    legible,
)
from echo_hf.curate.edited_sample import edited_sample
from echo_hf.curate.picture_sources import INPUT, OUTPUT, inset_of
from echo_hf.curate.sources import with_sources
from echo_hf.errors import PictureError, ReviewError, unknown
from echo_hf.multimodal.blanks import placeholders
from echo_hf.multimodal.boxes import Pixels
from echo_hf.multimodal.crops import cut, upright
from echo_hf.pictures import PictureStore

Row = Mapping[str, Any]
ROLES = get_args(Role)
QUALITIES = get_args(Quality)


@dataclass(frozen=True)
class Edit:
    """What a reviewer wants of a sample; what is null or empty stays as the model made it.

    Attributes:
        prompt: The prompt.
        quality: Benchmark, Analysis or Trash.
        roles: The role (input, output, neither) of pictures by digest.
        crops: Role (input, output) and box of all parts to cut out of the screenshot: left, top,
            right, bottom in its upright pixels, right and bottom being the first pixels outside.
    """

    prompt: str | None = None
    quality: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    crops: Sequence[tuple[str, Pixels]] | None = None


def checked_changes(
    row: Row,
    context: Sequence[Mapping[str, Any]],
    edit: Edit,
    pictures: PictureStore,
    taken: Collection[str] = (),
) -> Changes | None:
    """Checks an edit, computes what follows from it, and keeps the pictures that it cuts out.

    Args:
        row: A row of samples, as the model and the rules made it.
        context: The posts around it.
        edit: What the reviewer wants.
        pictures: Where the screenshot is, and the crops go.
        taken: Digests of pictures that other samples have.

    Returns:
        The changes; null where nothing differs from the row.

    Raises:
        ReviewError: Something of it cannot be; nothing is written then.
    """
    prompt = _prompt(row, context, edit.prompt)
    quality = _quality(edit.quality, prompt.text if prompt else row["prompt"])
    crops, files = _crops(row, edit, pictures, taken)
    known = {one.sha256 for one in crops.crops} if crops else set()
    roles = tuple(_roles(row, context, edit.roles, {*taken}, known))
    changes = Changes(
        prompt=prompt,
        quality=quality if quality != row["quality"] else None,
        roles=roles,
        crops=crops,
    )
    if not changes.named:
        return None
    for data in files:
        pictures.put(data)
    made, _ = edited_sample(row, changes, taken)
    return changes.model_copy(update={"sample_digest": made["sample_digest"]})


def _prompt(
    row: Row, context: Sequence[Mapping[str, Any]], given: str | None
) -> PromptChange | None:
    if given is None or given == row["prompt"]:
        return None
    try:
        text = legible(given.strip())
    except ValueError as error:
        raise ReviewError(f"prompt {given[:40]!r}: {error}") from None
    if len(text) > LONGEST_PROMPT:
        raise ReviewError(
            f"a prompt of {len(text):,} characters: expected at most {LONGEST_PROMPT:,}"
        )
    if text == row["prompt"]:
        return None
    texts = [post["text"] or "" for post in context]
    texts += [one["alt_text"] or "" for post in context for one in post["pictures"] or ()]
    shown = {**row, "prompt": text, "community_feedback": [], "provenance": None}
    spans = with_sources(shown, context)["prompt_spans"]
    return PromptChange(
        text=text,
        modified=not SpanIndex(texts).holds(text),
        spans=tuple(PromptSpan.model_validate(span) for span in spans),
    )


def _quality(given: str | None, prompt: str) -> str | None:
    if given is None:
        return None
    if given not in QUALITIES:
        raise ReviewError(unknown("quality", given, QUALITIES))
    if given == "Benchmark" and (blanks := placeholders(prompt)):
        raise ReviewError(
            f"a prompt with the blank {next(iter(blanks))!r} is for analysis only: fill it in, or "
            "choose Analysis"
        )
    return given


def _roles(
    row: Row,
    context: Sequence[Mapping[str, Any]],
    given: Mapping[str, str],
    taken: set[str],
    cut_out: set[str],
) -> Iterator[RoleChange]:
    own = {one: role for role in (INPUT, OUTPUT) for one in row[f"{role}_images"] or ()}
    places = _places(context)
    for digest, role in sorted(given.items()):
        if role not in ROLES:
            raise ReviewError(unknown("role", role, ROLES, f"picture {digest}"))
        if digest in cut_out or role == own.get(digest, "neither"):
            continue
        if digest not in own and digest not in places:
            raise ReviewError(f"no picture {digest!r} in the sample's posts: take one of those")
        if digest == row["screenshot"]:
            raise ReviewError(f"picture {digest!r} is the screenshot: cut its parts out instead")
        if digest in taken and role != "neither":
            raise ReviewError(
                f"picture {digest!r} belongs to another sample: make it neither there first"
            )
        post_url, url = (None, None) if digest in own else places[digest]
        yield RoleChange.model_validate(
            {"sha256": digest, "role": role, "post_url": post_url, "url": url}
        )


def _places(context: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str | None]]:
    places: dict[str, tuple[str, str | None]] = {}
    for post in context:
        for one in post["pictures"] or ():
            if one["sha256"]:
                places.setdefault(one["sha256"], (post["url"], one["url"]))
    return places


def _crops(
    row: Row, edit: Edit, pictures: PictureStore, taken: Collection[str]
) -> tuple[CropsChange | None, list[bytes]]:
    if edit.crops is None or _as_before(row, edit.crops):
        return None, []
    if row["screenshot"] is None:
        raise ReviewError(f"sample {row['id']!r} has no screenshot: there is nothing to cut")
    if not edit.crops:
        raise ReviewError("no box: expected one at least around each picture of the screenshot")
    inset = inset_of(row)
    made: dict[str, tuple[Crop, bytes]] = {}
    try:
        picture = upright(pictures.open(row["screenshot"]))
        for role, box in sorted(edit.crops, key=lambda one: one[0]):  # inputs before outputs
            if role not in (INPUT, OUTPUT):
                raise ReviewError(unknown("role", role, (INPUT, OUTPUT), f"box {list(box)}"))
            data = cut(picture, box, inset)
            digest = _digest(data)
            if digest in made or digest in taken:
                raise ReviewError(
                    f"box {list(box)} shows a picture that another box or sample has: one of them"
                )
            made[digest] = Crop(role=role, box=box, sha256=digest), data
    except PictureError as error:
        raise ReviewError(f"screenshot {row['screenshot']!r}: {error}") from None
    crops = tuple(crop for crop, _ in made.values())
    change = CropsChange(screenshot=row["screenshot"], inset=inset, crops=crops)
    return change, [data for _, data in made.values()]


def _as_before(row: Row, crops: Sequence[tuple[str, Pixels]]) -> bool:
    before = [
        (role, tuple(map(int, box)))
        for role in (INPUT, OUTPUT)
        for box in row[f"{role}_bboxs"] or ()
    ]
    return sorted(before) == sorted((role, tuple(box)) for role, box in crops)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
