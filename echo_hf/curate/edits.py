"""Turn a reviewer's edits into changes, and apply them to the table of samples."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

import pyarrow as pa
from pydantic import ValidationError

from echo_hf.config.checks import first_error
from echo_hf.curate.decisions import Changes, Crop, CropsChange, Decisions, Role, RoleChange
from echo_hf.curate.provenance import (
    INPUT,
    NO_SOURCE,
    OUTPUT,
    PROMPT,
    QUOTED,
    SCREENSHOT,
    inset_of,
    prompt_source,
    quotes_in,
    with_quotes,
    with_sources,
)
from echo_hf.errors import ImageError, ReviewError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage import RowIssue
from echo_hf.reasons import Doubt, Notice, Status
from echo_hf.samples.blanks import placeholders
from echo_hf.samples.boxes import Pixels, cut, inner, upright
from echo_hf.samples.extract import Quality
from echo_hf.samples.sample import Finding, sample_digest, texts_of
from echo_hf.samples.spans import SpanIndex, spans_of, text_digest
from echo_hf.samples.tasks import doubts_of, quality_with

Row = Mapping[str, Any]
TRASH = "Trash"
ROLES = get_args(Role)
QUALITIES = get_args(Quality)


class PlacedImage(NamedTuple):
    """An input or output: its entry of `picture_sources`, and its box in the screenshot."""

    source: Row
    box: Sequence[float] | None


def edited_sample(
    row: Row, changes: Changes, taken: Iterable[str] = ()
) -> tuple[dict[str, Any], list[Finding]]:
    """A sample with the changes; what belongs to another one is not taken from it."""
    findings, others = list[Finding](), frozenset(taken)
    known = row["picture_sources"] or ()
    sources = {(one["role"], one["sha256"]): one for one in known}
    images: dict[str, PlacedImage] = {}
    for role in (INPUT, OUTPUT):
        boxes = row[f"{role}_bboxs"] or []
        for number, digest in enumerate(row[f"{role}_images"] or ()):
            # Nobody looked into Trash: it lists every image of its posts, whosoever it is.
            if row["quality"] == TRASH and changes.quality and digest in others:
                continue
            source = sources.get((role, digest)) or {**NO_SOURCE, "sha256": digest, "role": role}
            # What was cut out stands first.
            images[digest] = PlacedImage(source, boxes[number] if number < len(boxes) else None)
    if changes.crops:
        images = _with_crops(row, images, changes.crops, others, findings)
    _change_roles(row, images, changes.roles, others, findings)
    made, shown = dict(row), list[Row]()
    for role in (INPUT, OUTPUT):
        own = [one for one in images.values() if one.source["role"] == role]
        # Stable: boxes belong to the first images of their column.
        own.sort(key=lambda one: one.box is None)
        made[f"{role}_images"] = [one.source["sha256"] for one in own]
        made[f"{role}_bboxs"] = [one.box for one in own if one.box is not None]
        shown += [one.source for one in own]
    shown += [one for one in known if one["role"] == SCREENSHOT]
    made["picture_sources"] = None if row["picture_sources"] is None else shown
    if changes.prompt:
        made |= {
            "prompt": changes.prompt.text,
            "prompt_sha256": text_digest(changes.prompt.text),
            "prompt_spans": [span.model_dump() for span in changes.prompt.spans],
            "prompt_modified": changes.prompt.modified,
            "provenance": _requoted(row["provenance"], changes.prompt.text),
        }
    if changes.crops and made["input_bboxs"] + made["output_bboxs"]:
        made["is_screenshot"] = True
    made["quality"] = quality_with(made["prompt"], changes.quality or row["quality"])
    made["sample_digest"] = sample_digest(made["prompt"], made["input_images"])
    lacks_input = None if row["doubts"] is None else Doubt.LACKS_INPUT in row["doubts"]
    if any(made[name] != row[name] for name in ("input_images", "output_images")):
        made["doubts"], lacks_input = [], None  # a person has said what they are
    made["doubts"] = doubts_of(made, None if changes.prompt else lacks_input)
    return made, findings


def _with_crops(
    row: Row,
    images: dict[str, PlacedImage],
    change: CropsChange,
    taken: Collection[str],
    findings: list[Finding],
) -> dict[str, PlacedImage]:
    if change.screenshot != row["screenshot"]:
        findings.append((Notice.EDIT_NOT_APPLIED, "crops: the sample has another screenshot now"))
        return images
    known = row["picture_sources"] or ()
    of: Row = next((one for one in known if one["role"] == SCREENSHOT), NO_SOURCE)
    made = {}
    for one in change.crops:
        if one.sha256 in taken:
            findings.append((Notice.EDIT_NOT_APPLIED, f"crops: {one.sha256} is another's"))
            continue
        source = {
            **NO_SOURCE,
            "sha256": one.sha256,
            "role": one.role,
            "post_url": of["post_url"],
            "url": of["url"],
            "of": change.screenshot,
            "box": list(inner(one.box, change.inset)),
        }
        made[one.sha256] = PlacedImage(source, list(map(float, one.box)))
    return made | {
        name: one for name, one in images.items() if one.box is None and name not in made
    }


def _change_roles(
    row: Row,
    images: dict[str, PlacedImage],
    roles: Sequence[RoleChange],
    taken: Collection[str],
    findings: list[Finding],
) -> None:
    for change in roles:
        name, shown = change.sha256, images.get(change.sha256)
        if change.role == "neither":
            images.pop(name, None)
        elif name in taken or name == row["screenshot"]:
            findings.append((Notice.EDIT_NOT_APPLIED, f"roles: {name} is another's"))
        elif shown is not None:
            images[name] = PlacedImage({**shown.source, "role": change.role}, shown.box)
        elif change.post_url is not None:
            source = {**NO_SOURCE, **change.model_dump()}
            images[name] = PlacedImage(source, None)
        else:
            findings.append((Notice.EDIT_NOT_APPLIED, f"roles: {name} is not here"))


def _requoted(provenance: str | None, prompt: str) -> str | None:
    """Quotations that were places of the old prompt are looked up in the new one."""
    if provenance is None or QUOTED not in json.loads(provenance):
        return provenance
    kept = {
        one.sha256: one.spans
        for one in quotes_in(provenance)
        if all(span["field"] != PROMPT for span in one.spans)
    }

    def spans(text: str) -> Sequence[Row]:
        if (known := kept.get(text_digest(text))) is not None:
            return known
        return [span._asdict() for span in spans_of(text, [prompt_source(prompt)]) or ()]

    return with_quotes(provenance, spans)


@dataclass(frozen=True)
class Edit:
    """What a reviewer wants of a sample; what is null or empty stays as the model made it."""

    prompt: str | None = None
    quality: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    crops: Sequence[tuple[str, Pixels]] | None = None


def checked_changes(
    row: Row, context: Sequence[Row], edit: Edit, images: ImageStore, taken: Collection[str] = ()
) -> Changes | None:
    """Checks an edit, computes what follows from it, and keeps the images that it cuts out."""
    try:
        crops, files = _crops(row, edit, images, taken)
        cut_out = {one.sha256 for one in crops.crops} if crops else set()
        changes = Changes.model_validate(
            {
                "prompt": _prompt(row, context, edit.prompt),
                "quality": edit.quality if edit.quality != row["quality"] else None,
                "roles": tuple(_roles(row, context, edit.roles, taken, cut_out)),
                "crops": crops,
            }
        )
    except ValidationError as error:
        raise ReviewError(first_error(error, f"sample {row['id']!r}", Changes)) from None
    blanks = placeholders(changes.prompt.text if changes.prompt else row["prompt"])
    if edit.quality == "Benchmark" and blanks:
        raise ReviewError(
            f"a prompt with the blank {blanks[0]!r} is for analysis only: fill it in, or "
            "choose Analysis"
        )
    if not changes.named:
        return None
    for data in files:
        images.put(data)
    made, _ = edited_sample(row, changes, taken)
    return changes.model_copy(update={"sample_digest": made["sample_digest"]})


def _prompt(row: Row, context: Sequence[Row], given: str | None) -> Row | None:
    if given is None or given.strip() == row["prompt"] or given == row["prompt"]:
        return None
    text = given.strip()
    shown = {**row, "prompt": text, "community_feedback": [], "provenance": None}
    spans = with_sources(shown, context)["prompt_spans"]
    return {
        "text": text,
        "modified": not SpanIndex(texts_of(context)).holds(text),
        "spans": tuple(spans),
    }


def _roles(
    row: Row,
    context: Sequence[Row],
    given: Mapping[str, str],
    taken: Collection[str],
    cut_out: Collection[str],
) -> Iterator[Row]:
    own = {one: role for role in (INPUT, OUTPUT) for one in row[f"{role}_images"] or ()}
    places: dict[str, Row] = {}
    for post in context:
        for one in post["pictures"] or ():
            places.setdefault(one["sha256"], {"post_url": post["url"], "url": one["url"]})
    for digest, role in sorted(given.items()):
        if digest in cut_out or role == own.get(digest, "neither"):
            continue
        if digest not in own and digest not in places:
            raise ReviewError(f"no image {digest!r} in the sample's posts: take one of those")
        if digest == row["screenshot"]:
            raise ReviewError(f"image {digest!r} is the screenshot: cut its parts out instead")
        if digest in taken and role != "neither":
            raise ReviewError(
                f"image {digest!r} belongs to another sample: make it neither there first"
            )
        where = {} if digest in own else places[digest]
        yield {"sha256": digest, "role": role, **where}


def _crops(
    row: Row, edit: Edit, images: ImageStore, taken: Collection[str]
) -> tuple[CropsChange | None, list[bytes]]:
    before = [(role, tuple(box)) for role in (INPUT, OUTPUT) for box in row[f"{role}_bboxs"] or ()]
    if edit.crops is None or sorted(before) == sorted((one, tuple(box)) for one, box in edit.crops):
        return None, []
    if row["screenshot"] is None:
        raise ReviewError(f"sample {row['id']!r} has no screenshot: there is nothing to cut")
    if not edit.crops:
        raise ReviewError("no box: expected one at least around each image of the screenshot")
    inset = inset_of(row)
    made: dict[str, tuple[Crop, bytes]] = {}
    try:
        image = upright(images.open(row["screenshot"]))
        for role, box in sorted(edit.crops, key=lambda one: one[0]):  # inputs before outputs
            data = cut(image, box, inset)
            digest = hashlib.sha256(data).hexdigest()
            if digest in made or digest in taken:
                raise ReviewError(
                    f"box {list(box)} shows an image that another box or sample has: one of them"
                )
            made[digest] = Crop.model_validate({"role": role, "box": box, "sha256": digest}), data
    except ImageError as error:
        raise ReviewError(f"screenshot {row['screenshot']!r}: {error}") from None
    crops = tuple(crop for crop, _ in made.values())
    change = CropsChange(screenshot=row["screenshot"], inset=inset, crops=crops)
    return change, [data for _, data in made.values()]


@dataclass(frozen=True)
class Reviewed:
    """The table of samples as reviewers changed it, and what they changed."""

    table: pa.Table
    edited: Mapping[str, Row] = field(default_factory=dict)
    issues: Sequence[RowIssue] = ()


def reviewed_rows(table: pa.Table, decisions: Decisions) -> Reviewed:
    """Applies every change that is about a row as it is now."""
    if not any(one.changed for one in decisions.by_id.values()):
        return Reviewed(table)
    read = ("id", "sample_digest", "cleaned_images", "quality", "input_images", "output_images")
    rows = table.select([one for one in read if one in table.column_names]).to_pylist()
    owners = Counter(one for row in rows for one in _counted(row))
    edited, issues = dict[int, dict[str, Any]](), list[RowIssue]()
    for number in sorted(range(len(rows)), key=lambda number: str(rows[number]["id"])):
        about = decisions.changes(rows[number])
        if about is None or about.changed is None:
            continue
        (before,), changes = table.slice(number, 1).to_pylist(), about.changed
        own = _counted(before)
        taken = {one for one, count in owners.items() if count > (one in own)}
        made, noticed = edited_sample(before, changes, taken)
        owners.subtract(own)
        owners.update(_counted(made))
        told: dict[str, Any] = {"digest": changes.fingerprint, "changed": list(changes.named)}
        told |= {"reviewer": about.reviewer, "at": about.at}
        earlier = json.loads(made["provenance"] or "{}")
        made["provenance"] = json.dumps({**earlier, "review": told}, sort_keys=True)
        edited[number] = made
        noticed = [(Notice.EDITED_IN_REVIEW, ", ".join(changes.named)), *noticed]
        issues += [RowIssue(Status.NOTED, [before["id"]], *one) for one in noticed]
    new = pa.Table.from_pylist(list(edited.values()), schema=table.schema)
    places = dict(zip(edited, range(len(rows), len(rows) + len(edited)), strict=True))
    order = [places.get(number, number) for number in range(len(rows))]
    changed = pa.concat_tables([table, new]).take(pa.array(order, pa.int64()))
    by_id = {made["id"]: made for made in edited.values()}
    return Reviewed(changed.combine_chunks(), by_id, issues)


def _counted(row: Row) -> set[str]:
    """The images that a sample has; of Trash every one of its posts is listed, whosoever it is."""
    if row["quality"] == TRASH:
        return set()
    return {*(row["input_images"] or ()), *(row["output_images"] or ())}
