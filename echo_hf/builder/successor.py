"""The config of a model's next release, made from the run or the release of the one before."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from pydantic import ValidationError

from echo_hf._infra.text import counted
from echo_hf.config.checks import first_error
from echo_hf.config.collection import Search, phase_spans
from echo_hf.config.loading import load_config
from echo_hf.config.sections import ReleaseOptions, Target
from echo_hf.errors import ConfigError
from echo_hf.hub.card import searches_in
from echo_hf.hub.facts import Statements
from echo_hf.hub.load import downloaded
from echo_hf.hub.manifest import CARD, MANIFEST, read_manifest
from echo_hf.hub.release import is_complete
from echo_hf.pipeline.run_folder import RunFolder

CONFIG = "config.yaml"
FILL_IN = "FILL IN"
DAY = f"{FILL_IN} the day of the release, such as 2026-03-02"
FILES = {"source": "jsonl", "path": "posts.jsonl"}
LONGEST_NAME = 80


@dataclass(frozen=True)
class Last:
    """A release that there is: its config but for target and posts, which a release has not all."""

    target: Target
    searches: Mapping[str, Search]
    sections: Mapping[str, Any]
    remarks: tuple[str, ...] = ()
    engines: bool = False  # whether they are among the sections


@dataclass(frozen=True)
class Successor:
    """The config of the next release, section by section, and what a person has to look at."""

    sections: Mapping[str, Any]
    remarks: tuple[str, ...]
    last: Target
    engines: bool


def successor(
    place: str, model: str, released: datetime.date | None = None, *, api: HfApi | None = None
) -> Successor:
    """Keeps what does not hang on the model, and puts its name where the last one's stood.

    A date that is not known is a text that no config takes.
    """
    last = _last(place, api)
    old, remarks = last.target, list(last.remarks)
    names = [old.name, *old.aliases]
    if model.casefold() in map(str.casefold, names):
        raise ConfigError(f"--next is {model!r}, which {place!r} is about: expected another model")
    known = {"name": model, "developer": old.developer, "released": released or old.released}
    others = [one for one in (*old.others, old.name) if one.casefold() != model.casefold()]
    known |= {"aliases": [], "others": others, "chat_window": old.chat_window}
    try:
        target = Target.model_validate(known).model_dump(mode="json", exclude_none=True)
    except ValidationError as error:
        raise ConfigError(first_error(error, "--next", Target)) from None
    if released is None:
        target["released"] = DAY
        remarks.append("target.released: fill in the day of the release; nothing is built without")
    remarks.append(f"target: is {old.developer} its developer, and how else do people call it?")
    posts, kept = list[dict[str, Any]](), dict[str, None]()
    for platform, search in last.searches.items():
        same = dict.fromkeys(term for one in search.phases for term in one.terms)
        kept |= {term: None for term in same if _renamed(term, names, model) == term}
        told = _asked(search, old, names, target["name"], released)
        posts.append({"source": platform, "search": told})
        if any(FILL_IN in str(phase.get("start")) for phase in told["phases"]):
            remarks.append(f"posts: fill in when the phases of {platform} start")
    if kept:
        remarks.append(f"posts: searches that do not name {old.name} stay: {', '.join(kept)}")
    if not posts:
        remarks.append(f"posts: name what people posted about {model}; no platform was searched")
    form = "-".join(re.findall(r"[a-z0-9]+(?:\.[0-9]+)*", model.lower()))[:LONGEST_NAME] or "next"
    name = f"{form}-{released:%Y-%m}" if released else form
    sections = {"name": name, "target": target, "posts": posts or [FILES], **last.sections}
    return Successor(sections, tuple(remarks), old, last.engines)


def _last(place: str, api: HfApi | None) -> Last:
    folder = Path(place)
    if (folder / CONFIG).is_file():
        return _of_run(folder)
    repo_id, at, revision = place.rpartition("@")
    if not folder.is_dir():
        if not at:
            raise ConfigError(
                f"--from is {place!r}: expected the folder of a run or of a release, or "
                "ORGANISATION/NAME@TAG"
            )
        folder = downloaded(repo_id, revision, [CARD, MANIFEST], api=api)
    manifest, told = read_manifest(folder), Statements()
    given = manifest.statements
    stated = {
        one.name: getattr(given, one.name)
        for one in fields(Statements)
        if one.name in ReleaseOptions.model_fields
        and getattr(given, one.name) != getattr(told, one.name)
    }
    before = str(folder.resolve()) if Path(place).is_dir() else place
    protocol = manifest.protocol if manifest.protocol != "corrected" else None
    known = {"release": stated, "rights": dict(given.rights), "protocol": protocol}
    held = {name: value for name, value in known.items() if value}
    searches = searches_in(folder / CARD) if manifest.card else {}
    return Last(manifest.target, searches, {**held, "analysis": {"before": before}})


def _of_run(folder: Path) -> Last:
    config, remarks = load_config(folder / CONFIG), list[str]()
    sections = config.model_dump(mode="json", exclude_defaults=True)
    release = RunFolder(folder.resolve()).release
    for name in ("name", "target", "posts", "shard", "paper"):
        sections.pop(name, None)
    if is_complete(release):
        sections["analysis"] = {**sections.get("analysis", {}), "before": str(release)}
    else:
        remarks.append(f"analysis.before: {str(folder)!r} holds no release to compare with")
    if files := sum(one.search is None for one in config.posts):
        remarks.append(
            f"posts: {counted(files, 'file')} of posts about {config.target.name} left out"
        )
    if drawn := [one.name for one in config.systems if one.adapter == "files"]:
        remarks.append(f"systems: the images of {', '.join(drawn)} are of the last samples")
    searches = {one.source: one.search for one in config.posts if one.search}
    return Last(config.target, searches, sections, tuple(remarks), engines=True)


def _asked(
    search: Search, old: Target, names: Iterable[str], model: str, released: datetime.date | None
) -> dict[str, Any]:
    """The same windows, as far from the new release as they were from the old one."""
    told: dict[str, Any] = search.model_dump(mode="json", exclude_defaults=True)
    spans = phase_spans(search.phases, old.released)
    for given, phase, span in zip(told["phases"], search.phases, spans, strict=True):
        given["terms"] = list(dict.fromkeys(_renamed(one, names, model) for one in phase.terms))
        if phase.start is not None:
            after = phase.start - old.released
            said = f"{FILL_IN} the day {abs(after.days)} days "
            said += f"{'before' if after.days < 0 else 'after'} the release"
            given["start"] = said if released is None else (released + after).isoformat()
        if phase.until is not None:
            del given["until"]
            given["days"] = (phase.until - span.start).days
    return told


def _renamed(term: str, names: Iterable[str], model: str) -> str:
    """A search term with the new name in the place of any old one; as one word after a hash."""
    longest = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = rf"(?P<hash>#?)(?<![a-z0-9])(?:{longest})(?![a-z0-9])"

    def put(found: re.Match[str]) -> str:
        return "#" + re.sub(r"\W", "", model) if found["hash"] else model

    return re.sub(pattern, put, term, flags=re.IGNORECASE)
