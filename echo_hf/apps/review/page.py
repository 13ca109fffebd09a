"""The page of a reviewer: what they see, what they type, and the HTML of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from echo_hf.apps.events import Event, Lease
from echo_hf.apps.page import Address, rendered
from echo_hf.builder.review import Case, Triage
from echo_hf.curate.decisions import Changes, Decision
from echo_hf.curate.edits import QUALITIES, ROLES, Edit
from echo_hf.curate.provenance import INPUT, OUTPUT
from echo_hf.errors import ImageError, ReviewError
from echo_hf.images.store import ImageStore
from echo_hf.report.markup import printable
from echo_hf.samples.boxes import upright_size
from echo_hf.samples.extract import LONGEST_PROMPT

MOST_FIELDS = 1000
LONGEST_FIELD = 20_000
NUMBERS = re.compile(r"\s*(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})\s*", re.ASCII)
TOLD = {"keep": "kept", "remove": "removed", "flag": "flagged", "edit": "changed"}
CHANGED_PARTS = ("prompt", "quality", "roles", "crops")
KEYS = {
    "K": "keep",
    "R": "remove",
    "F": "flag for somebody else",
    "E": "edit the prompt",
    "Esc": "leave a field",
    "U": "undo",
    "N": "next",
    "P": "back",
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Form:
    prompt: str
    quality: str
    note: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    boxes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, row: Row, changes: Changes | None, note: str | None) -> Form:
        roles: dict[str, str] = {}
        boxes: list[tuple[str, str]] = []
        for role in (INPUT, OUTPUT):
            cut = row[f"{role}_bboxs"] or []
            boxes += [(role, ", ".join(str(int(side)) for side in box)) for box in cut]
            roles |= dict.fromkeys((row[f"{role}_images"] or [])[len(cut) :], role)
        roles |= {one.sha256: one.role for one in changes.roles} if changes else {}
        return cls(row["prompt"] or "", row["quality"], note or "", roles, tuple(boxes))

    @classmethod
    def read(cls, values: object, shown: Form) -> Form:
        """Reads what a page sent, which may be anything."""
        said = values if isinstance(values, Mapping) else {}
        texts = {}
        for name in ("prompt", "quality", "note"):
            value = said.get(name)
            texts[name] = value[:LONGEST_FIELD] if isinstance(value, str) else getattr(shown, name)
        roles, boxes = dict(shown.roles), shown.boxes
        given = said.get("roles")
        for name, role in list(given.items())[:MOST_FIELDS] if isinstance(given, Mapping) else ():
            if isinstance(role, str):
                roles[str(name)] = role
        drawn = said.get("boxes")
        if isinstance(drawn, list):
            pairs = (one for one in drawn[:MOST_FIELDS] if isinstance(one, list) and len(one) == 2)
            boxes = tuple((str(role), str(text)[:100]) for role, text in pairs)
        return cls(**texts, roles=roles, boxes=boxes)

    def edit(self, row: Row) -> Edit:
        if not row["screenshot"] or not (self.boxes or row["is_screenshot"]):
            return Edit(self.prompt, self.quality, self.roles, None)
        boxes = []
        for role, text in self.boxes:
            found = NUMBERS.fullmatch(text)
            if found is None:
                raise ReviewError(
                    f"box {text[:60]!r} is not four whole numbers: expected left, top, right, "
                    "bottom in pixels of the screenshot"
                )
            left, top, right, bottom = map(int, found.groups())
            boxes.append((role, (left, top, right, bottom)))
        return Edit(self.prompt, self.quality, self.roles, boxes)


@dataclass(frozen=True)
class View:
    person: str
    case: Case
    images: ImageStore
    shown: Row
    form: Form
    triage: Triage
    open_reasons: Sequence[str]
    decision: Decision | None
    conflict: Sequence[Event]
    base: int
    number: int
    total: int
    done: int
    lent: Lease | None
    can_undo: bool
    saved: datetime | None
    problem: str = ""
    told: str = ""


def desk_page(view: View, address: Address, answer: int = 0) -> str:
    cards: dict[str, list[Card]] = {role: [] for role in ROLES}
    for card in _cards(view):
        cards[card.role if card.role in cards else "neither"].append(card)
    try:
        digest = view.case.row["screenshot"]
        size = upright_size(view.images.open(digest)) if digest else None
    except ImageError:
        size = None
    depths: list[int] = []
    for post in view.case.context:
        depths.append(0 if post["parent"] < 0 else depths[post["parent"]] + 1)
    page = rendered(
        "review/desk.jinja",
        view=view,
        address=address,
        answer=answer,
        cards=cards,
        size=size,
        thread=list(zip(view.case.context, depths, strict=True)),
        told=TOLD,
        changed_parts=CHANGED_PARTS,
        roles=ROLES,
        qualities=QUALITIES,
        longest_prompt=LONGEST_PROMPT,
        hints=KEYS,
    )
    return printable(page)  # what was typed and refused may hold what no page can


class Card(NamedTuple):
    digest: str
    role: str
    is_cut: bool


def _cards(view: View) -> Iterable[Card]:
    """The images of a sample and its thread, each once."""
    row, roles, found = view.case.row, view.form.roles, dict[str, Card]()
    hidden, others = {row["screenshot"], None}, list[str]()
    for role in (INPUT, OUTPUT):
        cut = len(view.shown[f"{role}_bboxs"] or ())
        for number, digest in enumerate(view.shown[f"{role}_images"] or ()):
            chosen = role if number < cut else roles.get(digest, role)
            found[digest] = Card(digest, chosen, number < cut)
        whole, boxes = row[f"{role}_images"] or (), len(row[f"{role}_bboxs"] or ())
        hidden.update(whole[:boxes])  # what was cut out before any change
        others += whole[boxes:]
    others += [one["sha256"] for post in view.case.context for one in post["pictures"] or ()]
    for digest in others:
        if digest not in hidden:
            found.setdefault(digest, Card(digest, roles.get(digest, "neither"), False))
    return found.values()
