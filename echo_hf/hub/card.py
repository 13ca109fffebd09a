"""The dataset card: front matter that datasets reads, a page that people read, and `eval.yaml`."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from datasets import DatasetInfo
from datasets.info import DatasetInfosDict
from datasets.splits import SplitDict, SplitInfo
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCardData

from echo_hf._infra.text import escaped, one_line, table
from echo_hf.hub.card_sections import (
    citation_text,
    measured_text,
    model_text,
    other_columns,
    people_text,
    privacy_text,
    provenance_table,
    safety_text,
    sample_columns,
    screening_text,
)
from echo_hf.hub.facts import (
    BENCHMARK_CONFIGS,
    CONFIGS,
    SAMPLE_CONFIGS,
    Counts,
    ReleaseFacts,
    default_config,
    languages,
)
from echo_hf.hub.manifest import SPLIT, ConfigEntry, Manifest
from echo_hf.reasons import LeftOut

FOLDER = "dataset_card"
NAME = "card.md"


def card_template() -> string.Template:
    """The template, from the installed package or, where it runs from its sources, beside it."""
    package = files("echo_hf")
    installed: Traversable = package / FOLDER / NAME
    found = installed if installed.is_file() else Path(str(package)).parent / FOLDER / NAME
    return string.Template(found.read_text("utf-8"))


TASKS = {"text_to_image": "text-to-image", "image_to_image": "image-to-image"}
TAGS = ["benchmark", "echo", "image-editing", "image-generation", "social-media"]
SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
RULES_WARNING = (
    "> **Built without a model.** What is a sample, and what its prompt is, was decided by plain "
    "rules or recorded answers: good for a trial, not for measuring anything.\n\n"
)
EMPTY_NOTE = (
    "A config without rows has its file and columns, but datasets prepares no split without rows: "
    "load it with `streaming=True`.\n\n"
)
CLEANED = "Images have the pixels that were posted, in files without metadata (see Privacy below);"
NOT_CLEANED = "Posted images are the very bytes that were posted;"
MEANINGS = {str(reason): reason.meaning for reason in LeftOut}
NO_CONTACT = " No other address is given for this release."
NOT_COMPARED = "Not compared: this revision was written without an earlier one beside it."
DEHYDRATED_NOTE = string.Template(
    "**Posts that are not repeated here.** The terms of some platforms forbid passing their posts "
    "on. In $rows (`dehydrated` is true) the words and images of posts are left out; there are "
    "addresses, what was found out about them, digests, places in the posts, and of each "
    "image a signature: its size, and means and contrasts of the colors in 16 x 16 blocks. That "
    "is a thumbnail of 16 x 16 colored squares, in which large shapes may be guessed. Who has the "
    "posts gets the rows back with\n\n"
    "```bash\necho-hf hydrate FOLDER --posts posts.jsonl --to HYDRATED\n```\n\n"
)


def render_card(facts: ReleaseFacts, manifest: Manifest) -> str:
    body = card_template().substitute(_fields(facts, manifest))
    return f"---\n{front_matter(facts, manifest)}\n---\n{body}"


def front_matter(facts: ReleaseFacts, manifest: Manifest) -> str:
    """The YAML that the Hub and `load_dataset` read."""
    tasks = [task for config, task in TASKS.items() if config in manifest.configs]
    data = DatasetCardData(
        pretty_name=_title(facts),
        language=languages(facts.languages) or None,
        license=facts.license,
        license_name=facts.license_name if facts.license == "other" else None,
        annotations_creators=["machine-generated"],
        language_creators=["found"],
        source_datasets=["original"],
        task_categories=tasks or None,
        size_categories=[size_category(_samples(manifest))],
        tags=TAGS,
    )
    infos = {name: _info(name, entry) for name, entry in manifest.configs.items()}
    DatasetInfosDict(infos).to_dataset_card_data(data)
    default = _default(manifest)
    configs = {name: _data_files(name, name == default) for name in manifest.configs}
    MetadataConfigs(configs).to_dataset_card_data(data)
    return data.to_yaml()


def size_category(rows: int) -> str:
    return next((name for limit, name in SIZES if rows < limit), "n>1M")


def _info(name: str, entry: ConfigEntry) -> DatasetInfo:
    split = SplitInfo(SPLIT, num_bytes=entry.loaded_bytes, num_examples=entry.rows)
    return DatasetInfo(
        config_name=name,
        features=CONFIGS[name].table.released_features,
        splits=SplitDict({SPLIT: split}),
        download_size=sum(file.bytes for file in entry.files),
        dataset_size=entry.loaded_bytes,
    )


def _data_files(name: str, is_default: bool) -> dict[str, Any]:
    found = {"data_files": [{"split": SPLIT, "path": f"{name}/{SPLIT}-*"}]}
    return {**found, "default": True} if is_default else found


def _samples(manifest: Manifest) -> int:
    entries = manifest.configs
    return sum(entries[name].rows for name in SAMPLE_CONFIGS if name in entries)


def _default(manifest: Manifest) -> str:
    return default_config({name: entry.rows for name, entry in manifest.configs.items()})


def _fields(facts: ReleaseFacts, manifest: Manifest) -> dict[str, str]:
    configs, default = manifest.configs, _default(manifest)
    return {
        "title": escaped(_title(facts)),
        "warning": RULES_WARNING if facts.rules_built else "",
        "about": _about(facts),
        "configs": _configs(manifest, default),
        "empty": EMPTY_NOTE if not all(entry.rows for entry in configs.values()) else "",
        "left_out": _left_out(facts),
        "dehydrated": _dehydrated_note(configs),
        "images": NOT_CLEANED if facts.metadata_stripper is None else CLEANED,
        "repository": json.dumps(facts.repository or "ORGANISATION/NAME"),
        "config": json.dumps(default),
        "revision": json.dumps(facts.name),
        "target": _target(facts),
        "protocol": facts.protocol,
        "funnel": _funnel(facts),
        "columns": sample_columns(facts),
        "other_columns": other_columns(manifest),
        "model_text": model_text(facts, manifest),
        "provenance": provenance_table(facts),
        "version": escaped(manifest.echo_hf),
        "safety": f"{screening_text(manifest)}\n\n{safety_text(facts)}",
        "privacy": f"{people_text(manifest)}\n\n{privacy_text(facts)}",
        "measured": measured_text(facts.measured),
        "license_note": facts.license_note.strip(),
        "citation": citation_text(facts),
        "rights": "".join(_right(*each) for each in sorted(facts.rights.items())),
        "contact": f", or write to {escaped(facts.contact)}" if facts.contact else "",
        "no_contact": "" if facts.contact else NO_CONTACT,
        "changes": NOT_COMPARED,
    }


def _dehydrated_note(configs: Mapping[str, ConfigEntry]) -> str:
    # A sample may be in two configs, so that there is no sum of them.
    held = [
        f"{entry.dehydrated:,} row{'s' * (entry.dehydrated > 1)} of `{name}`"
        for name, entry in configs.items()
        if entry.dehydrated
    ]
    return DEHYDRATED_NOTE.substitute(rows=_listed(held)) if held else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _right(platform: str, statement: str) -> str:
    return f"\n\nPosts from `{platform}` are passed on because: {escaped(statement)}"


def _title(facts: ReleaseFacts) -> str:
    return f"ECHO benchmark: {one_line(facts.target.name)} ({one_line(facts.name)})"


def _about(facts: ReleaseFacts) -> str:
    target = facts.target
    return (
        f"What people asked of {escaped(target.name)}, an image model by "
        f"{escaped(target.developer)} released on {target.released.isoformat()}, when they posted "
        "about it in public: their prompts, the images they gave it, the images it made, and "
        "what others said about the result. A benchmark drawn from use, to compare image models on."
    )


def _target(facts: ReleaseFacts) -> str:
    target = facts.target
    rows = {
        "Name": target.name,
        "Developer": target.developer,
        "Released": target.released.isoformat(),
        "Also called": ", ".join(target.aliases),
        "Told apart from": ", ".join(target.others),
        "Screenshots of": target.chat_window or "",
    }
    return table(["", ""], ([name, escaped(value) or "none"] for name, value in rows.items()))


def _configs(manifest: Manifest, default: str) -> str:
    held = [name for name in CONFIGS if name in manifest.configs]
    rows = [_config_row(name, manifest.configs[name], name == default) for name in held]
    return table(["Config", "What it holds", "Rows", "Images"], rows, numbers=2)


def _config_row(name: str, entry: ConfigEntry, is_default: bool) -> list[str]:
    about = f"{CONFIGS[name].about}{' (the default)' if is_default else ''}"
    return [f"`{name}`", about, f"{entry.rows:,}", f"{entry.pictures:,}"]


def _left_out(facts: ReleaseFacts) -> str:
    said = [
        f"{count:,} rows of `{name}` ({MEANINGS[reason]})"
        for name, counts in facts.left_out.items()
        for reason, count in counts.items()
    ]
    return f"Left out: {'; '.join(said)}.\n\n" if said else ""


def _funnel(facts: ReleaseFacts) -> str:
    rows = [_funnel_row(*row) for row in facts.funnel.items()]
    return table(["Stage", "Counts"], rows or [["none", ""]])


def _funnel_row(stage: str, counts: Counts) -> list[str]:
    shown = (_count(name, value) for name, value in counts.items() if value != {})
    return [escaped(stage), "; ".join(shown)]


def _count(name: str, value: int | Mapping[str, int]) -> str:
    if isinstance(value, Mapping):
        return f"{escaped(name)}: {', '.join(_count(*each) for each in value.items())}"
    return f"{escaped(name)} {value:,}"


FRAMEWORK = "echo-hf"


def eval_file(facts: ReleaseFacts, manifest: Manifest) -> str | None:
    held = [name for name in BENCHMARK_CONFIGS if name in manifest.configs]
    tasks = [
        {"id": name, "config": name, "split": SPLIT} for name in held if manifest.configs[name].rows
    ]
    if not tasks:
        return None
    data = {
        "name": f"ECHO: {one_line(facts.target.name)}",
        "description": _description(facts, [str(task["config"]) for task in tasks]),
        "evaluation_framework": FRAMEWORK,
        "tasks": tasks,
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000)


def _description(facts: ReleaseFacts, configs: list[str]) -> str:
    held = "; ".join(f"{name}: {CONFIGS[name].about}" for name in configs)
    return (
        f"What people asked of {one_line(facts.target.name)} in public posts, to compare image "
        f"models on. A system is scored by its win rate against the others: the value depends on "
        f"which systems and judges took part. {held}."
    )
