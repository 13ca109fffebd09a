"""Turn a reviewer's edits into changes, and apply the changes to the table of samples."""

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
from echo_hf.curate.decisions import Changes, Crop, CropsChange, ReviewDecisions, Role, RoleChange
from echo_hf.curate.provenance import (
    INPUT,
    NO_SOURCE,
    OUTPUT,
    PROMPT_FIELD,
    QUOTED,
    SCREENSHOT,
    add_quotes,
    add_sources,
    get_inset,
    prompt_source,
    read_quotes,
)
from echo_hf.errors import ImageError, ReviewError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage import RowIssue
from echo_hf.reasons import Fact, NoticeReason
from echo_hf.samples.blanks import find_placeholders
from echo_hf.samples.boxes import PixelBox, cut_box, get_inner_box, rotate_upright
from echo_hf.samples.extract import TRASH
from echo_hf.samples.sample import Doubt, Finding, sample_digest, texts_of
from echo_hf.samples.spans import SpanIndex, find_spans, text_digest
from echo_hf.samples.tasks import decide_quality, find_doubts
from echo_hf.tables import Row


class EditNotice(NoticeReason):
    """Notices about what reviewers changed."""

    EDITED_IN_REVIEW = "edited_in_review", "a reviewer changed it; the detail names what"
    EDIT_NOT_APPLIED = "edit_not_applied", "it is about an image that is gone, or of another sample"


Fact.CHANGES_TASK.mark(EditNotice.EDIT_NOT_APPLIED)


IMAGE_ROLES = get_args(Role)


class PlacedImage(NamedTuple):
    """An input or output: its entry of `picture_sources`, and its box in the screenshot."""

    source: Row
    box: Sequence[float] | None


def apply_changes(
    row: Row, changes: Changes, others: Iterable[str] = ()
) -> tuple[dict[str, Any], list[Finding]]:
    """Apply changes to a sample; images that belong to another sample are not taken from it."""
    findings, excluded = list[Finding](), frozenset(others)
    listed = row["picture_sources"] or ()
    sources = {(image["role"], image["sha256"]): image for image in listed}
    images: dict[str, PlacedImage] = {}
    for role in (INPUT, OUTPUT):
        boxes = row[f"{role}_bboxs"] or []
        for number, digest in enumerate(row[f"{role}_images"] or ()):
            # Trash has no roles: it lists all images of its posts, also those of other samples.
            if row["quality"] == TRASH and changes.quality and digest in excluded:
                continue
            source = sources.get((role, digest)) or {**NO_SOURCE, "sha256": digest, "role": role}
            # Images with boxes come first.
            images[digest] = PlacedImage(source, boxes[number] if number < len(boxes) else None)
    if changes.crops:
        images = _apply_crops(row, images, changes.crops, excluded, findings)
    _change_roles(row, images, changes.roles, excluded, findings)
    edited, picture_sources = dict(row), list[Row]()
    for role in (INPUT, OUTPUT):
        own = [image for image in images.values() if image.source["role"] == role]
        # A stable sort: boxes belong to the first images of their column.
        own.sort(key=lambda image: image.box is None)
        edited[f"{role}_images"] = [image.source["sha256"] for image in own]
        edited[f"{role}_bboxs"] = [image.box for image in own if image.box is not None]
        picture_sources += [image.source for image in own]
    picture_sources += [image for image in listed if image["role"] == SCREENSHOT]
    edited["picture_sources"] = None if row["picture_sources"] is None else picture_sources
    if changes.prompt:
        edited |= {
            "prompt": changes.prompt.text,
            "prompt_sha256": text_digest(changes.prompt.text),
            "prompt_spans": [span.model_dump() for span in changes.prompt.spans],
            "prompt_modified": changes.prompt.modified,
            "provenance": _requote(row["provenance"], changes.prompt.text),
        }
    if changes.crops and edited["input_bboxs"] + edited["output_bboxs"]:
        edited["is_screenshot"] = True
    edited["quality"] = decide_quality(edited["prompt"], changes.quality or row["quality"])
    edited["sample_digest"] = sample_digest(edited["prompt"], edited["input_images"])
    lacks_input = None if row["doubts"] is None else Doubt.LACKS_INPUT in row["doubts"]
    if any(edited[name] != row[name] for name in ("input_images", "output_images")):
        edited["doubts"], lacks_input = [], None  # a person has settled the roles
    edited["doubts"] = find_doubts(edited, None if changes.prompt else lacks_input)
    return edited, findings


def _apply_crops(
    row: Row,
    images: dict[str, PlacedImage],
    change: CropsChange,
    others: Collection[str],
    findings: list[Finding],
) -> dict[str, PlacedImage]:
    if change.screenshot != row["screenshot"]:
        findings.append(
            (EditNotice.EDIT_NOT_APPLIED, "crops: the sample has another screenshot now")
        )
        return images
    listed = row["picture_sources"] or ()
    screenshot: Row = next((image for image in listed if image["role"] == SCREENSHOT), NO_SOURCE)
    cropped = {}
    for crop in change.crops:
        if crop.sha256 in others:
            findings.append((EditNotice.EDIT_NOT_APPLIED, f"crops: {crop.sha256} is another's"))
            continue
        source = {
            **NO_SOURCE,
            "sha256": crop.sha256,
            "role": crop.role,
            "post_url": screenshot["post_url"],
            "url": screenshot["url"],
            "of": change.screenshot,
            "box": list(get_inner_box(crop.box, change.inset)),
        }
        cropped[crop.sha256] = PlacedImage(source, list(map(float, crop.box)))
    return cropped | {
        name: image for name, image in images.items() if image.box is None and name not in cropped
    }


def _change_roles(
    row: Row,
    images: dict[str, PlacedImage],
    roles: Sequence[RoleChange],
    others: Collection[str],
    findings: list[Finding],
) -> None:
    for change in roles:
        digest, image = change.sha256, images.get(change.sha256)
        if change.role == "neither":
            images.pop(digest, None)
        elif digest in others or digest == row["screenshot"]:
            findings.append((EditNotice.EDIT_NOT_APPLIED, f"roles: {digest} is another's"))
        elif image is not None:
            images[digest] = PlacedImage({**image.source, "role": change.role}, image.box)
        elif change.post_url is not None:
            source = {**NO_SOURCE, **change.model_dump()}
            images[digest] = PlacedImage(source, None)
        else:
            findings.append((EditNotice.EDIT_NOT_APPLIED, f"roles: {digest} is not here"))


def _requote(provenance: str | None, prompt: str) -> str | None:
    """Update the quotations of the old prompt in a provenance to places of the new one."""
    if provenance is None or QUOTED not in json.loads(provenance):
        return provenance
    kept_spans = {
        quote.sha256: quote.spans
        for quote in read_quotes(provenance)
        if all(span["field"] != PROMPT_FIELD for span in quote.spans)
    }

    def find_quote_spans(text: str) -> Sequence[Row]:
        if (known_spans := kept_spans.get(text_digest(text))) is not None:
            return known_spans
        return [span._asdict() for span in find_spans(text, [prompt_source(prompt)]) or ()]

    return add_quotes(provenance, find_quote_spans)


@dataclass(frozen=True)
class SampleEdit:
    """A reviewer's wishes for a sample; what is null or empty stays as the model made it."""

    prompt: str | None = None
    quality: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    crops: Sequence[tuple[str, PixelBox]] | None = None


def check_edit(
    row: Row,
    context: Sequence[Row],
    edit: SampleEdit,
    images: ImageStore,
    others: Collection[str] = (),
) -> Changes | None:
    """Check an edit, compute the changes that follow, and store the images that it cuts out."""
    try:
        crops, files = _cut_crops(row, edit, images, others)
        cut_out = {crop.sha256 for crop in crops.crops} if crops else set()
        changes = Changes.model_validate(
            {
                "prompt": _change_prompt(row, context, edit.prompt),
                "quality": edit.quality if edit.quality != row["quality"] else None,
                "roles": tuple(_check_roles(row, context, edit.roles, others, cut_out)),
                "crops": crops,
            }
        )
    except ValidationError as error:
        raise ReviewError(first_error(error, f"sample {row['id']!r}", Changes)) from None
    blanks = find_placeholders(changes.prompt.text if changes.prompt else row["prompt"])
    if edit.quality == "Benchmark" and blanks:
        raise ReviewError(
            f"a prompt with the blank {blanks[0]!r} is for analysis only: fill it in, or "
            "choose Analysis"
        )
    if not changes.changed_parts:
        return None
    for data in files:
        images.put(data)
    edited, _ = apply_changes(row, changes, others)
    return changes.model_copy(update={"sample_digest": edited["sample_digest"]})


def _change_prompt(row: Row, context: Sequence[Row], new_prompt: str | None) -> Row | None:
    if new_prompt is None or new_prompt.strip() == row["prompt"] or new_prompt == row["prompt"]:
        return None
    text = new_prompt.strip()
    edited = {**row, "prompt": text, "community_feedback": [], "provenance": None}
    spans = add_sources(edited, context)["prompt_spans"]
    is_modified = not SpanIndex(texts_of(context)).contains(text)
    return {"text": text, "modified": is_modified, "spans": tuple(spans)}


def _check_roles(
    row: Row,
    context: Sequence[Row],
    roles: Mapping[str, str],
    others: Collection[str],
    cut_out: Collection[str],
) -> Iterator[Row]:
    own_roles = {sha256: role for role in (INPUT, OUTPUT) for sha256 in row[f"{role}_images"] or ()}
    places: dict[str, Row] = {}
    for post in context:
        for image in post["pictures"] or ():
            places.setdefault(image["sha256"], {"post_url": post["url"], "url": image["url"]})
    for digest, role in sorted(roles.items()):
        if digest in cut_out or role == own_roles.get(digest, "neither"):
            continue
        if digest not in own_roles and digest not in places:
            raise ReviewError(f"no image {digest!r} in the sample's posts: take one of those")
        if digest == row["screenshot"]:
            raise ReviewError(f"image {digest!r} is the screenshot: cut its parts out instead")
        if digest in others and role != "neither":
            raise ReviewError(
                f"image {digest!r} belongs to another sample: make it neither there first"
            )
        source = {} if digest in own_roles else places[digest]
        yield {"sha256": digest, "role": role, **source}


def _cut_crops(
    row: Row, edit: SampleEdit, images: ImageStore, others: Collection[str]
) -> tuple[CropsChange | None, list[bytes]]:
    boxes = [(role, tuple(box)) for role in (INPUT, OUTPUT) for box in row[f"{role}_bboxs"] or ()]
    if edit.crops is None:
        return None, []
    if sorted(boxes) == sorted((role, tuple(box)) for role, box in edit.crops):
        return None, []
    if row["screenshot"] is None:
        raise ReviewError(f"sample {row['id']!r} has no screenshot: there is nothing to cut")
    if not edit.crops:
        raise ReviewError("no box: expected one at least around each image of the screenshot")
    inset = get_inset(row)
    cut_out: dict[str, tuple[Crop, bytes]] = {}
    try:
        image = rotate_upright(images.open(row["screenshot"]))
        for role, box in sorted(edit.crops, key=lambda box: box[0]):  # inputs before outputs
            data = cut_box(image, box, inset)
            digest = hashlib.sha256(data).hexdigest()
            if digest in cut_out or digest in others:
                raise ReviewError(
                    f"box {list(box)} shows an image that another box or sample has: one of them"
                )
            crop = Crop.model_validate({"role": role, "box": box, "sha256": digest})
            cut_out[digest] = (crop, data)
    except ImageError as error:
        raise ReviewError(f"screenshot {row['screenshot']!r}: {error}") from None
    crops = tuple(crop for crop, _ in cut_out.values())
    change = CropsChange(screenshot=row["screenshot"], inset=inset, crops=crops)
    return change, [data for _, data in cut_out.values()]


@dataclass(frozen=True)
class ReviewedSamples:
    """The table of samples with the changes of reviewers, and those changes."""

    table: pa.Table
    edited: Mapping[str, Row] = field(default_factory=dict)
    issues: Sequence[RowIssue] = ()


def apply_decisions(table: pa.Table, decisions: ReviewDecisions) -> ReviewedSamples:
    """Apply every change that is about a row as it is now."""
    if not any(decision.edits for decision in decisions.by_id.values()):
        return ReviewedSamples(table)
    columns = ("id", "sample_digest", "cleaned_images", "quality", "input_images", "output_images")
    rows = table.select([name for name in columns if name in table.column_names]).to_pylist()
    owners = Counter(digest for row in rows for digest in _list_own_images(row))
    edited, issues = dict[int, dict[str, Any]](), list[RowIssue]()
    for number in sorted(range(len(rows)), key=lambda number: str(rows[number]["id"])):
        decision = decisions.find_edit(rows[number])
        if decision is None or decision.edits is None:
            continue
        (original,), changes = table.slice(number, 1).to_pylist(), decision.edits
        own_images = _list_own_images(original)
        # An image belongs to another sample if more samples than this one have it. The counts
        # follow each edit: what one reviewer takes away, a later edit may use.
        others = {digest for digest, count in owners.items() if count > (digest in own_images)}
        edited_row, findings = apply_changes(original, changes, others)
        owners.subtract(own_images)
        owners.update(_list_own_images(edited_row))
        record: dict[str, Any] = {"reviewer": decision.reviewer, "at": decision.at}
        record |= {"digest": changes.fingerprint, "changed": list(changes.changed_parts)}
        earlier = json.loads(edited_row["provenance"] or "{}")
        edited_row["provenance"] = json.dumps({**earlier, "review": record}, sort_keys=True)
        edited[number] = edited_row
        findings = [(EditNotice.EDITED_IN_REVIEW, ", ".join(changes.changed_parts)), *findings]
        issues += [RowIssue([original["id"]], *finding) for finding in findings]
    edited_table = pa.Table.from_pylist(list(edited.values()), schema=table.schema)
    places = dict(zip(edited, range(len(rows), len(rows) + len(edited)), strict=True))
    order = [places.get(number, number) for number in range(len(rows))]
    changed = pa.concat_tables([table, edited_table]).take(pa.array(order, pa.int64()))
    by_id = {edited_row["id"]: edited_row for edited_row in edited.values()}
    return ReviewedSamples(changed.combine_chunks(), by_id, issues)


def _list_own_images(row: Row) -> set[str]:
    """Return the images that are a sample's own; Trash lists those of others, and has none."""
    if row["quality"] == TRASH:
        return set()
    return {*(row["input_images"] or ()), *(row["output_images"] or ())}
