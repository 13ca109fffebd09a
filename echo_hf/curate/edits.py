"""Turn a reviewer's edits into changes, and apply them to the table of samples."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import pyarrow as pa

from echo_hf.curate.decisions import (
    Changes,
    Crop,
    CropsChange,
    Decisions,
    PromptChange,
    PromptSpan,
    Role,
    RoleChange,
    legible,
)
from echo_hf.curate.personal_data import personal_data
from echo_hf.curate.provenance import (
    INPUT,
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
from echo_hf.errors import ImageError, ReviewError, unknown
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage import RowIssue
from echo_hf.reasons import Notice, Review, Status
from echo_hf.samples.blanks import placeholders
from echo_hf.samples.boxes import Pixels, cut, inner, upright
from echo_hf.samples.sample import sample_digest
from echo_hf.samples.spans import SpanIndex, spans_of, text_digest
from echo_hf.samples.tasks import quality_with
from echo_hf.samples.thread_parts import LONGEST_PROMPT, Quality

Row = Mapping[str, Any]
Finding = tuple[Notice, str]
TRASH = "Trash"


@dataclass(frozen=True)
class PlacedImage:
    sha256: str
    role: str
    box: Sequence[float] | None
    source: Mapping[str, Any]


def edited_sample(
    row: Row, changes: Changes, taken: Iterable[str] = ()
) -> tuple[dict[str, Any], list[Finding]]:
    images, findings, others = _images(row), list[Finding](), frozenset(taken)
    if row["quality"] == TRASH and changes.quality:
        # Nobody looked into it: it lists every image of its posts, whosoever it is.
        images = [one for one in images if one.sha256 not in others]
    if changes.crops:
        images = _with_crops(row, images, changes.crops, others, findings)
    images = _with_roles(row, images, changes.roles, others, findings)
    made = {**row, **_columns(row, images)}
    if changes.prompt:
        made |= _with_prompt(row, changes.prompt)
    if changes.crops and made["input_bboxs"] + made["output_bboxs"]:
        made["is_screenshot"] = True
    made["quality"] = quality_with(made["prompt"], changes.quality or row["quality"])
    made["sample_digest"] = sample_digest(made["prompt"], made["input_images"])
    return made, findings


def with_review(provenance: str | None, review: Mapping[str, Any]) -> str:
    return json.dumps({**json.loads(provenance or "{}"), "review": dict(review)}, sort_keys=True)


def _images(row: Row) -> list[PlacedImage]:
    sources = {(one["role"], one["sha256"]): one for one in row["picture_sources"] or ()}
    every = []
    for role in (INPUT, OUTPUT):
        boxes = row[f"{role}_bboxs"] or []
        for number, digest in enumerate(row[f"{role}_images"] or ()):
            # What was cut out stands first.
            box = boxes[number] if number < len(boxes) else None
            source = sources.get((role, digest)) or _source(digest, role)
            every.append(PlacedImage(digest, role, box, source))
    return every


def _with_crops(
    row: Row,
    images: Sequence[PlacedImage],
    change: CropsChange,
    taken: Collection[str],
    findings: list[Finding],
) -> list[PlacedImage]:
    if change.screenshot != row["screenshot"]:
        findings.append((Notice.EDIT_NOT_APPLIED, "crops: the sample has another screenshot now"))
        return list(images)
    every = row["picture_sources"] or ()
    of: Row = next((one for one in every if one["role"] == SCREENSHOT), {})
    cut = [
        PlacedImage(
            one.sha256,
            one.role,
            list(map(float, one.box)),
            _source(one.sha256, one.role)
            | {"post_url": of.get("post_url"), "url": of.get("url"), "of": change.screenshot}
            | {"box": list(inner(one.box, change.inset))},
        )
        for one in change.crops
        if one.sha256 not in taken
    ]
    lost = [one for one in change.crops if one.sha256 in taken]
    findings += [(Notice.EDIT_NOT_APPLIED, f"crops: {one.sha256} is another's") for one in lost]
    digests = {one.sha256 for one in cut}
    others = (one for one in images if one.box is None and one.sha256 not in digests)
    return [*cut, *others]


def _with_roles(
    row: Row,
    images: Sequence[PlacedImage],
    roles: Sequence[RoleChange],
    taken: Collection[str],
    findings: list[Finding],
) -> list[PlacedImage]:
    known = {one.sha256: one for one in images}
    for change in roles:
        shown = known.get(change.sha256)
        if change.role == "neither":
            known.pop(change.sha256, None)
        elif change.sha256 in taken or change.sha256 == row["screenshot"]:
            findings.append((Notice.EDIT_NOT_APPLIED, f"roles: {change.sha256} is another's"))
        elif shown is not None:
            source = {**shown.source, "role": change.role}
            known[change.sha256] = replace(shown, role=change.role, source=source)
        elif change.post_url is not None:
            source = _source(change.sha256, change.role)
            source |= {"post_url": change.post_url, "url": change.url}
            known[change.sha256] = PlacedImage(change.sha256, change.role, None, source)
        else:
            findings.append((Notice.EDIT_NOT_APPLIED, f"roles: {change.sha256} is not here"))
    return list(known.values())


def _columns(row: Row, images: Sequence[PlacedImage]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    sources: list[Mapping[str, Any]] = []
    for role in (INPUT, OUTPUT):
        # Stable: boxes belong to the first images of their column.
        own = sorted((one for one in images if one.role == role), key=lambda one: one.box is None)
        columns[f"{role}_images"] = [one.sha256 for one in own]
        columns[f"{role}_bboxs"] = [one.box for one in own if one.box is not None]
        sources += [one.source for one in own]
    sources += [one for one in row["picture_sources"] or () if one["role"] == SCREENSHOT]
    known = row["picture_sources"] is not None
    return {**columns, "picture_sources": sources if known else None}


def _with_prompt(row: Row, change: PromptChange) -> dict[str, Any]:
    return {
        "prompt": change.text,
        "prompt_sha256": text_digest(change.text),
        "prompt_spans": [span.model_dump() for span in change.spans],
        "prompt_modified": change.modified,
        "provenance": _requoted(row["provenance"], change.text),
    }


def _requoted(provenance: str | None, prompt: str) -> str | None:
    """Quotations that were places of the old prompt are looked up in the new one."""
    if provenance is None or QUOTED not in json.loads(provenance):
        return provenance
    kept = {
        one.sha256: one.spans
        for one in quotes_in(provenance)
        if all(span["field"] != PROMPT for span in one.spans)
    }

    def spans(text: str) -> Sequence[Mapping[str, Any]]:
        known = kept.get(text_digest(text))
        found = spans_of(text, [prompt_source(prompt)]) if known is None else None
        return known if known is not None else [span._asdict() for span in found or ()]

    return with_quotes(provenance, spans)


def _source(digest: str, role: str) -> dict[str, Any]:
    names = ("sha256", "role", "post_url", "url", "of", "box", "signature")
    return {**dict.fromkeys(names), "sha256": digest, "role": role}


ROLES = get_args(Role)
QUALITIES = get_args(Quality)


@dataclass(frozen=True)
class Edit:
    """What a reviewer wants of a sample; what is null or empty stays as the model made it."""

    prompt: str | None = None
    quality: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    crops: Sequence[tuple[str, Pixels]] | None = None


def checked_changes(
    row: Row,
    context: Sequence[Mapping[str, Any]],
    edit: Edit,
    images: ImageStore,
    taken: Collection[str] = (),
) -> Changes | None:
    """Checks an edit, computes what follows from it, and keeps the images that it cuts out."""
    prompt = _prompt(row, context, edit.prompt)
    quality = _quality(edit.quality, prompt.text if prompt else row["prompt"])
    crops, files = _crops(row, edit, images, taken)
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
        images.put(data)
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
            raise ReviewError(unknown("role", role, ROLES, f"image {digest}"))
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
    row: Row, edit: Edit, images: ImageStore, taken: Collection[str]
) -> tuple[CropsChange | None, list[bytes]]:
    if edit.crops is None or _as_before(row, edit.crops):
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
            if role not in (INPUT, OUTPUT):
                raise ReviewError(unknown("role", role, (INPUT, OUTPUT), f"box {list(box)}"))
            data = cut(image, box, inset)
            digest = _digest(data)
            if digest in made or digest in taken:
                raise ReviewError(
                    f"box {list(box)} shows an image that another box or sample has: one of them"
                )
            made[digest] = Crop(role=role, box=box, sha256=digest), data
    except ImageError as error:
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


IMAGES = ("input_images", "output_images")


@dataclass(frozen=True)
class Reviewed:
    table: pa.Table
    edited: Mapping[str, Row] = field(default_factory=dict)
    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    products: Collection[str] = ()
    authors: frozenset[str] = frozenset()

    def closed(self, row: Row) -> frozenset[str]:
        """Reasons for review that the changes of a sample have done away with."""
        made = self.edited.get(row["id"])
        if made is None or personal_data(made["prompt"], self.products, self.authors.__contains__):
            return frozenset()
        return frozenset({Review.PERSONAL_DATA.value})

    def remarks(self) -> Iterator[RowIssue]:
        """What was changed, and what of it could not be, one remark each."""
        for name, findings in self.findings.items():
            for notice, detail in findings:
                yield RowIssue(Status.NOTED, [name], notice, detail)


def reviewed_rows(
    table: pa.Table,
    decisions: Decisions,
    products: Collection[str] = (),
    authors: frozenset[str] = frozenset(),
) -> Reviewed:
    """Applies every change that is about a row as it is now."""
    if not any(one.changed for one in decisions.by_id.values()):
        return Reviewed(table)
    named = ("id", "sample_digest", "cleaned_images")
    names = table.select([one for one in named if one in table.column_names]).to_pylist()
    found = {row: decisions.changes(one) for row, one in enumerate(names)}
    about = {row: one for row, one in found.items() if one}
    changes = {row: one.changed for row, one in about.items() if one.changed}
    owners = _owners(table)
    edited: dict[int, dict[str, Any]] = {}
    findings: dict[str, list[Finding]] = {}
    for row in sorted(changes, key=lambda row: str(names[row]["id"])):
        before = table.slice(row, 1).to_pylist()[0]
        said = {"reviewer": about[row].reviewer, "at": about[row].at}
        edited[row], noticed = _edited(before, changes[row], owners, said)
        findings[before["id"]] = noticed
    by_id = {row["id"]: row for row in edited.values()}
    return Reviewed(_replaced(table, edited), by_id, findings, products, authors)


def _edited(
    before: Row, changes: Changes, owners: Counter[str], said: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Finding]]:
    own = _counted(before)
    taken = {one for one, count in owners.items() if count > (one in own)}
    made, findings = edited_sample(before, changes, taken)
    owners.subtract(own)
    owners.update(_counted(made))
    told = {"digest": changes.fingerprint, "changed": list(changes.named), **said}
    made["provenance"] = with_review(made["provenance"], told)
    what = ", ".join(changes.named)
    return made, [(Notice.EDITED_IN_REVIEW, what), *findings]


def _counted(row: Row) -> set[str]:
    # Of Trash every image of its posts is listed, whosoever it is.
    names = () if row["quality"] == "Trash" else IMAGES
    return {one for name in names for one in row[name] or ()}


def _owners(table: pa.Table) -> Counter[str]:
    """How many samples have each image as input or output."""
    rows = table.select([*IMAGES, "quality"]).to_pylist()
    return Counter(one for row in rows for one in _counted(row))


def _replaced(table: pa.Table, rows: Mapping[int, Row]) -> pa.Table:
    if not rows:
        return table
    pieces, done = [], 0
    for row in sorted(rows):
        new = pa.Table.from_pylist([dict(rows[row])], schema=table.schema)
        pieces += [table.slice(done, row - done), new]
        done = row + 1
    return pa.concat_tables([*pieces, table.slice(done)]).combine_chunks()
