"""Apply a reviewer's changes to a row of samples; a pure function of both."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from echo_hf.context.sample_id import sample_digest
from echo_hf.context.source_spans import spans_of, text_digest
from echo_hf.curate.changes import Changes, CropsChange, PromptChange, RoleChange
from echo_hf.curate.picture_sources import INPUT, OUTPUT, SCREENSHOT
from echo_hf.curate.provenance_quotes import QUOTED, quotes_in, with_quotes
from echo_hf.curate.sources import PROMPT, prompt_source
from echo_hf.multimodal.crops import inner
from echo_hf.multimodal.rows import quality_with
from echo_hf.reasons import Notice

Row = Mapping[str, Any]
Finding = tuple[Notice, str]
TRASH = "Trash"


@dataclass(frozen=True)
class Shown:
    """A picture of a sample.

    Attributes:
        sha256: Its digest.
        role: input or output.
        box: The box around it in the screenshot, null when it was not cut out.
        source: Its entry of `picture_sources`.
    """

    sha256: str
    role: str
    box: Sequence[float] | None
    source: Mapping[str, Any]


def edited_sample(
    row: Row, changes: Changes, taken: Iterable[str] = ()
) -> tuple[dict[str, Any], list[Finding]]:
    """A sample with a reviewer's changes.

    Args:
        row: A row of samples, as the model and the rules made it.
        changes: What the reviewer changed.
        taken: Digests of pictures that other samples have: no change may give them a new role.

    Returns:
        The row with the changes, its digest computed anew; and what of them could not be applied.
    """
    pictures, findings, others = _pictures(row), list[Finding](), frozenset(taken)
    if row["quality"] == TRASH and changes.quality:
        # Nobody looked into it: it lists every picture of its posts, whosoever it is.
        pictures = [one for one in pictures if one.sha256 not in others]
    if changes.crops:
        pictures = _with_crops(row, pictures, changes.crops, others, findings)
    pictures = _with_roles(row, pictures, changes.roles, others, findings)
    made = {**row, **_columns(row, pictures)}
    if changes.prompt:
        made |= _with_prompt(row, changes.prompt)
    if changes.crops and made["input_bboxs"] + made["output_bboxs"]:
        made["is_screenshot"] = True
    made["quality"] = quality_with(made["prompt"], changes.quality or row["quality"])
    made["sample_digest"] = sample_digest(made["prompt"], made["input_images"])
    return made, findings


def with_review(provenance: str | None, said: Mapping[str, Any]) -> str:
    """A provenance that says that a person changed the row.

    Args:
        provenance: JSON, or null.
        said: What is said of the change; no words of posts.

    Returns:
        JSON with what is said under `review`.

    Example:
        >>> with_review('{"roles": {"digest": "d"}}', {"changed": ["prompt"]})
        '{"review": {"changed": ["prompt"]}, "roles": {"digest": "d"}}'
    """
    return json.dumps({**json.loads(provenance or "{}"), "review": dict(said)}, sort_keys=True)


def _pictures(row: Row) -> list[Shown]:
    sources = {(one["role"], one["sha256"]): one for one in row["picture_sources"] or ()}
    every = []
    for role in (INPUT, OUTPUT):
        boxes = row[f"{role}_bboxs"] or []
        for number, digest in enumerate(row[f"{role}_images"] or ()):
            # What was cut out stands first.
            box = boxes[number] if number < len(boxes) else None
            source = sources.get((role, digest)) or _source(digest, role)
            every.append(Shown(digest, role, box, source))
    return every


def _with_crops(
    row: Row,
    pictures: Sequence[Shown],
    change: CropsChange,
    taken: Collection[str],
    findings: list[Finding],
) -> list[Shown]:
    if change.screenshot != row["screenshot"]:
        findings.append((Notice.EDIT_NOT_APPLIED, "crops: the sample has another screenshot now"))
        return list(pictures)
    every = row["picture_sources"] or ()
    of: Row = next((one for one in every if one["role"] == SCREENSHOT), {})
    cut = [
        Shown(
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
    others = (one for one in pictures if one.box is None and one.sha256 not in digests)
    return [*cut, *others]


def _with_roles(
    row: Row,
    pictures: Sequence[Shown],
    roles: Sequence[RoleChange],
    taken: Collection[str],
    findings: list[Finding],
) -> list[Shown]:
    known = {one.sha256: one for one in pictures}
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
            known[change.sha256] = Shown(change.sha256, change.role, None, source)
        else:
            findings.append((Notice.EDIT_NOT_APPLIED, f"roles: {change.sha256} is not here"))
    return list(known.values())


def _columns(row: Row, pictures: Sequence[Shown]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    sources: list[Mapping[str, Any]] = []
    for role in (INPUT, OUTPUT):
        # Stable: boxes belong to the first pictures of their column.
        own = sorted((one for one in pictures if one.role == role), key=lambda one: one.box is None)
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
