"""Derive the config of a model's next release from the run or the release before it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from pydantic import ValidationError

from echo_hf._infra.text import pluralize
from echo_hf.config.checks import FOLDER_AND_TAG, first_error
from echo_hf.config.collection import Search, phase_dates
from echo_hf.config.evaluation import CarriedRelease
from echo_hf.config.loading import load_config
from echo_hf.config.sections import ReleaseOptions, Target
from echo_hf.errors import ConfigError
from echo_hf.hub.card import read_searches
from echo_hf.hub.facts import CardStatements
from echo_hf.hub.load import download_files
from echo_hf.hub.manifest import CARD, MANIFEST, Manifest, read_manifest
from echo_hf.hub.release import is_complete
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.benchmark import ON_HUB
from echo_hf.tables import OUTPUTS

CONFIG_FILE = "config.yaml"
FILL_IN = "FILL IN"
DAY_PLACEHOLDER = f"{FILL_IN} the day of the release, such as 2026-03-02"
NO_POSTS = {"source": "jsonl", "path": "posts.jsonl"}
MAX_NAME = 80


@dataclass(frozen=True)
class PreviousRelease:
    """A previous release: its target, searches, and the other sections of its config."""

    target: Target
    searches: Mapping[str, Search]
    sections: Mapping[str, Any]
    remarks: tuple[str, ...] = ()
    engines: bool = False  # whether the sections have engines


@dataclass(frozen=True)
class SuccessorConfig:
    """The config of the next release, section by section, and what a person has to look at."""

    sections: Mapping[str, Any]
    remarks: tuple[str, ...]
    last: Target
    engines: bool


def derive_config(
    place: str, model: str, released: datetime.date | None = None, *, api: HfApi | None = None
) -> SuccessorConfig:
    """Derive a config: keep what does not depend on the model, and replace the model's name.

    A date that is not known is a text that no config takes.
    """
    previous = _read_previous(place, api)
    old, remarks = previous.target, list(previous.remarks)
    names = [old.name, *old.aliases]
    if model.casefold() in map(str.casefold, names):
        raise ConfigError(f"--next is {model!r}, which {place!r} is about: expected another model")
    values = {"name": model, "developer": old.developer, "released": released or old.released}
    others = [name for name in (*old.others, old.name) if name.casefold() != model.casefold()]
    values |= {"aliases": [], "others": others, "chat_window": old.chat_window}
    try:
        target = Target.model_validate(values).model_dump(mode="json", exclude_none=True)
    except ValidationError as error:
        raise ConfigError(first_error(error, "--next", Target)) from None
    if released is None:
        target["released"] = DAY_PLACEHOLDER
        remarks.append("target.released: fill in the day of the release; nothing is built without")
    remarks.append(f"target: is {old.developer} its developer, and how else do people call it?")
    posts, kept_terms = list[dict[str, Any]](), dict[str, None]()
    for platform, search in previous.searches.items():
        terms = dict.fromkeys(term for phase in search.phases for term in phase.terms)
        kept_terms |= {term: None for term in terms if _rename(term, names, model) == term}
        search_fields = _move_search(search, old, names, target["name"], released)
        posts.append({"source": platform, "search": search_fields})
        if any(FILL_IN in str(phase.get("start")) for phase in search_fields["phases"]):
            remarks.append(f"posts: fill in when the phases of {platform} start")
    if kept_terms:
        remarks.append(f"posts: searches that do not name {old.name} stay: {', '.join(kept_terms)}")
    if not posts:
        remarks.append(f"posts: name what people posted about {model}; no platform was searched")
    if carry := previous.sections.get("carry"):
        remarks.append(
            f"carry: samples of {pluralize(len(carry), 'older release')}; each costs its number of "
            "samples x systems in images, and as many ratings by each judge; old ones may go"
        )
    slug = "-".join(re.findall(r"[a-z0-9]+(?:\.[0-9]+)*", model.lower()))[:MAX_NAME] or "next"
    name = f"{slug}-{released:%Y-%m}" if released else slug
    sections = {"name": name, "target": target, "posts": posts or [NO_POSTS], **previous.sections}
    return SuccessorConfig(sections, tuple(remarks), old, previous.engines)


def _read_previous(place: str, api: HfApi | None) -> PreviousRelease:
    folder = Path(place)
    if (folder / CONFIG_FILE).is_file():
        return _read_run(folder)
    repo_id, separator, revision = place.rpartition("@")
    if not folder.is_dir():
        if not separator:
            raise ConfigError(
                f"--from is {place!r}: expected the folder of a run or of a release, or "
                "ORGANISATION/NAME@TAG"
            )
        folder = download_files(repo_id, revision, [CARD, MANIFEST], api=api)
    manifest, defaults = read_manifest(folder), CardStatements()
    statements = manifest.statements
    stated = {
        field.name: getattr(statements, field.name)
        for field in fields(CardStatements)
        if field.name in ReleaseOptions.model_fields
        and getattr(statements, field.name) != getattr(defaults, field.name)
    }
    base = str(folder.resolve()) if Path(place).is_dir() else place
    protocol = manifest.protocol if manifest.protocol != "corrected" else None
    possible_sections = {"release": stated, "rights": dict(statements.rights), "protocol": protocol}
    sections = {name: value for name, value in possible_sections.items() if value}
    searches = read_searches(folder / CARD) if manifest.card else {}
    sections |= {"analysis": {"before": base}, **_carry_outputs(manifest, base)}
    return PreviousRelease(manifest.target, searches, sections)


def _carry_outputs(manifest: Manifest, place: str) -> dict[str, Any]:
    """Carry the samples of a release along if it has outputs to set new systems beside."""
    return {"carry": [{"release": place}]} if OUTPUTS.name in manifest.configs else {}


def _list_earlier(
    carried: Iterable[CarriedRelease], folder: Path, remarks: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the entries of `carry` whose release can still be found; remark on the others."""
    for each in carried:
        place, tag = folder / each.release, each.release.rpartition("@")[2]
        names_tag = ON_HUB.fullmatch(each.release) and FOLDER_AND_TAG.fullmatch(tag)
        if place.exists() or names_tag:
            release = str(place.resolve()) if place.exists() else each.release
            yield {**each.model_dump(mode="json", exclude_defaults=True), "release": release}
        else:
            remarks.append(
                f"carry: {each.release!r} left out, as no folder is there: name where it is now"
            )


def _read_run(folder: Path) -> PreviousRelease:
    config, remarks = load_config(folder / CONFIG_FILE), list[str]()
    sections = config.model_dump(mode="json", exclude_defaults=True)
    release = RunFolder(folder.resolve()).release
    for name in ("name", "target", "posts", "shard", "paper"):
        sections.pop(name, None)
    newest = list[dict[str, Any]]()
    if is_complete(release):
        sections["analysis"] = {**sections.get("analysis", {}), "before": str(release)}
        newest = _carry_outputs(read_manifest(release), str(release)).get("carry", [])
    else:
        remarks.append(f"analysis.before: {str(folder)!r} holds no release to compare with")
    sections.pop("carry", None)
    if carry := [*_list_earlier(config.carry, folder.resolve(), remarks), *newest]:
        sections["carry"] = carry
    if files := sum(entry.search is None for entry in config.posts):
        remarks.append(
            f"posts: {pluralize(files, 'file')} of posts about {config.target.name} left out"
        )
    if file_systems := [system.name for system in config.systems if system.adapter == "files"]:
        remarks.append(f"systems: the images of {', '.join(file_systems)} are of the last samples")
    searches = {entry.source: entry.search for entry in config.posts if entry.search}
    return PreviousRelease(config.target, searches, sections, tuple(remarks), engines=True)


def _move_search(
    search: Search, old: Target, names: Iterable[str], model: str, released: datetime.date | None
) -> dict[str, Any]:
    """Return a search with windows as far from the new release as they were from the old one."""
    moved: dict[str, Any] = search.model_dump(mode="json", exclude_defaults=True)
    spans = phase_dates(search.phases, old.released)
    for section, phase, span in zip(moved["phases"], search.phases, spans, strict=True):
        section["terms"] = list(dict.fromkeys(_rename(term, names, model) for term in phase.terms))
        if phase.start is not None:
            offset = phase.start - old.released
            placeholder = f"{FILL_IN} the day {abs(offset.days)} days "
            placeholder += f"{'before' if offset.days < 0 else 'after'} the release"
            section["start"] = placeholder if released is None else (released + offset).isoformat()
        if phase.until is not None:
            del section["until"]
            section["days"] = (phase.until - span.start).days
    return moved


def _rename(term: str, names: Iterable[str], model: str) -> str:
    """Replace the model's names in a search term by the new one; as one word after a hash."""
    alternatives = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = rf"(?P<hash>#?)(?<![a-z0-9])(?:{alternatives})(?![a-z0-9])"

    def replace_name(match: re.Match[str]) -> str:
        return "#" + re.sub(r"\W", "", model) if match["hash"] else model

    return re.sub(pattern, replace_name, term, flags=re.IGNORECASE)
