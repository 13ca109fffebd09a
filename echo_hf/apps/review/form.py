"""The fields of the page: what stands in them, and the edit that they ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echo_hf.curate.changes import Changes
from echo_hf.curate.decision import Decision
from echo_hf.curate.edit import Edit
from echo_hf.curate.picture_sources import INPUT, OUTPUT
from echo_hf.errors import ReviewError

MOST_FIELDS = 1000
LONGEST_FIELD = 20_000
NUMBERS = re.compile(r"\s*(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})\s*", re.ASCII)


@dataclass(frozen=True)
class Form:
    """What stands in the fields.

    Attributes:
        prompt: The prompt.
        quality: Benchmark, Analysis or Trash.
        note: The reviewer's words.
        roles: The role of each picture that was not cut out, by digest.
        boxes: Role and numbers of each box, as they were typed.
    """

    prompt: str
    quality: str
    note: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    boxes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, given: object, shown: Form) -> Form:
        """Reads what a page sent, which may be anything.

        Args:
            given: What was sent.
            shown: What stands in the fields where nothing, or nothing that can be read, was sent.
        """
        said = given if isinstance(given, Mapping) else {}
        roles = said.get("roles")
        boxes = said.get("boxes")
        return cls(
            _text(said.get("prompt"), shown.prompt),
            _text(said.get("quality"), shown.quality),
            _text(said.get("note"), shown.note),
            {**shown.roles, **_roles(roles)} if isinstance(roles, Mapping) else shown.roles,
            _boxes(boxes) if isinstance(boxes, list) else shown.boxes,
        )


def form_of(row: Mapping[str, Any], changes: Changes | None, note: str | None) -> Form:
    """The fields for a sample.

    Args:
        row: Its row with the changes that stand.
        changes: These changes.
        note: The note that stands.
    """
    roles: dict[str, str] = {}
    boxes: list[tuple[str, str]] = []
    for role in (INPUT, OUTPUT):
        cut = row[f"{role}_bboxs"] or []
        boxes += [(role, ", ".join(str(int(side)) for side in box)) for box in cut]
        roles |= dict.fromkeys((row[f"{role}_images"] or [])[len(cut) :], role)
    roles |= {one.sha256: one.role for one in changes.roles} if changes else {}
    return Form(row["prompt"] or "", row["quality"], note or "", roles, tuple(boxes))


def own_note(last: Decision | None, person: str) -> str | None:
    """Somebody else's note is shown, but not put into one's mouth."""
    return last.note if last is not None and last.reviewer == person else None


def edit_of(row: Mapping[str, Any], form: Form) -> Edit:
    """The edit that the fields ask for.

    Args:
        row: The sample's row, as the model and the rules made it.
        form: The fields.

    Returns:
        The edit, of the whole sample as the fields show it.

    Raises:
        ReviewError: A box is not four numbers.
    """
    boxes = None
    if row["screenshot"] and (form.boxes or row["is_screenshot"]):
        boxes = [(role, _numbers(text)) for role, text in form.boxes]
    return Edit(form.prompt, form.quality, form.roles, boxes)


def _numbers(text: str) -> tuple[int, int, int, int]:
    found = NUMBERS.fullmatch(text)
    if found is None:
        raise ReviewError(
            f"box {text[:60]!r} is not four whole numbers: expected left, top, right, bottom in "
            "pixels of the screenshot"
        )
    left, top, right, bottom = map(int, found.groups())
    return left, top, right, bottom


def _text(value: object, otherwise: str) -> str:
    return value[:LONGEST_FIELD] if isinstance(value, str) else otherwise


def _roles(given: Mapping[Any, Any]) -> dict[str, str]:
    known = ((name, role) for name, role in given.items() if isinstance(role, str))
    return {str(name): role for name, role in list(known)[:MOST_FIELDS]}


def _boxes(given: list[Any]) -> tuple[tuple[str, str], ...]:
    pairs = (one for one in given[:MOST_FIELDS] if isinstance(one, list) and len(one) == 2)
    return tuple((str(role), str(text)[:100]) for role, text in pairs)
