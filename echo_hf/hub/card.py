"""The dataset card: front matter that datasets reads, a page that people read, and `eval.yaml`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import yaml
from datasets import DatasetInfo, Image, List
from datasets.info import DatasetInfosDict
from datasets.splits import SplitDict, SplitInfo
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCardData, metadata_load
from pydantic import TypeAdapter

from echo_hf._infra.regular_file import open_regular
from echo_hf._infra.text import escaped, one_line, share, table
from echo_hf.config.checks import AnsweredBy
from echo_hf.config.collection import Search
from echo_hf.config.sections import Hazard
from echo_hf.engines.base import abstains
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import (
    ALL,
    BENCHMARK_CONFIGS,
    CONFIGS,
    SAMPLE_CONFIGS,
    ReleaseFacts,
    SampleCounts,
    default_config,
    languages,
)
from echo_hf.hub.manifest import MOST_TEXT_BYTES, SPLIT, Manifest, readable
from echo_hf.hub.run_tables import models_of
from echo_hf.reasons import LeftOut
from echo_hf.tables import OF_POST

FRAMEWORK = "echo-hf"
TASKS = {"text_to_image": "text-to-image", "image_to_image": "image-to-image"}
SEARCHES = "searches"
SEARCHED = TypeAdapter(dict[str, Search])
TAGS = ["benchmark", "echo", "image-editing", "image-generation", "social-media"]
SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
PAPER = """@inproceedings{ge2026constantly,
  title     = {Constantly Improving Image Models Need Constantly Improving Benchmarks},
  author    = {Ge, Jiaxin and Luo, Grace and Lee, Heekyung and Malpani, Nishant and Lian, Long and
               Wang, XuDong and Holynski, Aleksander and Darrell, Trevor and Min, Sewon and
               Chan, David M.},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year      = {2026},
  url       = {https://openreview.net/forum?id=nOcy5NvNI1}
}"""


def render_card(
    facts: ReleaseFacts,
    manifest: Manifest,
    models: Mapping[str, Mapping[str, AnsweredBy]] | None = None,
) -> str:
    configs = {name: manifest.configs[name] for name in CONFIGS if name in manifest.configs}
    asked = [one["engine"] for one in facts.provenance.values() if one.get("engine")]
    page = card_template().render(
        facts=facts,
        manifest=manifest,
        configs=configs,
        about=CONFIGS,
        sample_configs=SAMPLE_CONFIGS,
        default=default_config({name: entry.rows for name, entry in configs.items()}),
        title=_title(facts),
        target=facts.target,
        left_out_for={str(reason): reason.meaning for reason in LeftOut},
        engines=_engines(facts),
        models=models or models_of(None),
        built_without_models=bool(asked) and all(map(abstains, asked)),
        hazards={str(one): one.meaning for one in Hazard},
        leanings=_leanings(facts.measured),
        doubts={
            "all": _doubts(facts.measured, ALL),
            "benchmark": _doubts(facts.measured, *BENCHMARK_CONFIGS),
        },
        paper=PAPER,
    )
    return f"---\n{front_matter(facts, manifest)}\n---\n{page}"


def _engines(facts: ReleaseFacts) -> dict[str, list[str]]:
    """The stages that asked each engine, by what it is called."""
    found: dict[str, list[str]] = {}
    for stage, made in facts.provenance.items():
        if engine := made.get("engine"):
            kind = engine.get("kind") or "an unnamed engine"
            named = f"{engine.get('model') or 'an unnamed model'} by {kind}"
            named = f"{kind}, which is not a model" if abstains(engine) else named
            found.setdefault(named, []).append(stage)
    return found


@cache
def card_template() -> jinja2.Template:
    """The template, from the installed package or, where it runs from its sources, beside it."""
    package = Path(str(files("echo_hf")))
    paths = [folder / "dataset_card" / "card.md" for folder in (package, package.parent)]
    environment = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  # Markdown: filter `md` escapes what others wrote
    )
    environment.filters |= {"md": escaped, "n": "{:,}".format, "json": json.dumps}
    environment.filters |= {"fenced": fenced, "bibtex": bibtex, "key": key}
    tools = (abstains, columns, counted, made_by)
    environment.globals |= {tool.__name__: tool for tool in tools}
    found = next(path for path in paths if path.is_file())
    return environment.from_string(found.read_text("utf-8"))


def front_matter(facts: ReleaseFacts, manifest: Manifest) -> str:
    """The YAML that the Hub and `load_dataset` read."""
    entries = manifest.configs
    samples = sum(entries[name].rows for name in SAMPLE_CONFIGS if name in entries)
    data = DatasetCardData(
        pretty_name=_title(facts),
        language=languages(facts.languages) or None,
        license=facts.license,
        license_name=facts.license_name if facts.license == "other" else None,
        annotations_creators=["machine-generated"],
        language_creators=["found"],
        source_datasets=["original"],
        task_categories=[task for name, task in TASKS.items() if name in entries] or None,
        size_categories=[next((size for limit, size in SIZES if samples < limit), "n>1M")],
        tags=TAGS,
    )
    infos = {
        name: DatasetInfo(
            config_name=name,
            features=CONFIGS[name].table.released_features,
            splits=SplitDict({SPLIT: SplitInfo(SPLIT, entry.loaded_bytes, entry.rows)}),
            download_size=sum(file.bytes for file in entry.files),
            dataset_size=entry.loaded_bytes,
        )
        for name, entry in entries.items()
    }
    DatasetInfosDict(infos).to_dataset_card_data(data)
    found: dict[str, dict[str, Any]] = {
        name: {"data_files": [{"split": SPLIT, "path": f"{name}/{SPLIT}-*"}]} for name in entries
    }
    found[default_config({name: entry.rows for name, entry in entries.items()})]["default"] = True
    MetadataConfigs(found).to_dataset_card_data(data)
    if facts.searches:  # here, where versions that do not know them read the release all the same
        data[SEARCHES] = {
            platform: search.model_dump(mode="json", exclude_defaults=True)
            for platform, search in facts.searches.items()
        }
    return data.to_yaml()


def searches_in(card: Path) -> dict[str, Search]:
    """What the platforms were asked, by a card that may come from anywhere."""
    with readable(card):
        try:
            open_regular(card, card.parent, most_bytes=MOST_TEXT_BYTES).close()
            told = metadata_load(card) or {}
        except (ValueError, yaml.YAMLError) as error:
            raise ReleaseError(
                f"{str(card)!r} has no front matter: {one_line(error)[:200]}"
            ) from None
        return SEARCHED.validate_python(told.get(SEARCHES, {}))


def eval_file(manifest: Manifest) -> str | None:
    """`eval.yaml`, null where no config of the benchmark has a sample."""
    entries = manifest.configs
    held = [name for name in BENCHMARK_CONFIGS if name in entries and entries[name].rows]
    if not held:
        return None
    target = one_line(manifest.target.name)
    configs = "; ".join(f"{name}: {CONFIGS[name].about}" for name in held)
    data = {
        "name": f"ECHO: {target}",
        "description": f"What people asked of {target} in public posts, to compare image models "
        "on. A system is scored by its win rate against the others: the value depends on which "
        f"systems and judges took part. {configs}.",
        "evaluation_framework": FRAMEWORK,
        "tasks": [{"id": name, "config": name, "split": SPLIT} for name in held],
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000)


def _title(facts: ReleaseFacts) -> str:
    return f"ECHO benchmark: {one_line(facts.target.name)} ({one_line(facts.name)})"


def counted(counts: Mapping[str, int | Mapping[str, Any]], separator: str = ", ") -> str:
    """Counts by name, those of another level after a colon."""
    return separator.join(
        f"{escaped(name)}: {counted(value)}"
        if isinstance(value, Mapping)
        else f"{escaped(name)} {value:,}"
        for name, value in counts.items()
        if value != {}
    )


def columns(config: str) -> Iterator[list[str]]:
    declared = CONFIGS[config].table
    for name, column in declared.columns.items():
        kind = type_name(declared.released_features[name])
        yield [f"`{name}`", kind, column.meaning.replace("|", "\\|")]


def type_name(feature: Any) -> str:
    if isinstance(feature, List):
        return f"list of {type_name(feature.feature)}"
    if isinstance(feature, dict):
        inner = ", ".join(f"{name}: {type_name(each)}" for name, each in feature.items())
        return f"{{{inner}}}"
    return "image" if isinstance(feature, Image) else str(feature.dtype)


# Who decides a column's values, and in which stages; no stage where none alone does.
COPIED, RULE, MODEL = "copied", "a fixed rule", "a model"
ORIGINS: Mapping[str, tuple[str, str]] = {
    "id": (RULE, "extract roles"),
    "post_id": (COPIED, "collect"),
    "post_urls": (MODEL, "extract roles"),
    **dict.fromkeys(OF_POST, (COPIED, "collect")),
    "author": (RULE, "privacy"),
    "target": (COPIED, ""),
    "prompt": (MODEL, "extract roles screenshots"),
    "prompt_sha256": (RULE, "privacy"),
    "prompt_spans": (RULE, "privacy"),
    "prompt_modified": (RULE, "extract roles screenshots"),
    "prompt_fill_blank": (MODEL, "roles"),
    "quality": (MODEL, "extract roles"),
    "community_feedback": (MODEL, "extract feedback"),
    **dict.fromkeys(("input_images", "output_images"), (MODEL, "roles screenshots")),
    "screenshot": (MODEL, "roles"),
    **dict.fromkeys(("is_screenshot", "input_bboxs", "output_bboxs"), (MODEL, "screenshots")),
    "picture_sources": (RULE, "privacy"),
    "has_nsfw": (RULE, "safety"),
    "safety": (MODEL, "safety"),
    "review": (MODEL, "roles privacy"),
    "doubts": (MODEL, "roles screenshots"),
    **dict.fromkeys(("kind", "task", "task_phrase"), (MODEL, "feedback")),
    **dict.fromkeys(("sample_digest", "dehydrated", "provenance"), (RULE, "")),
}


def made_by(column: str, provenance: Mapping[str, Mapping[str, Any]]) -> str:
    """Who decided a column's values in a build with these stages."""
    maker, stages = ORIGINS[column][0], ORIGINS[column][1].split()
    ran = [stage for stage in stages if stage in provenance]
    if stages and not ran:
        return f"nobody: this build has no `{'`, `'.join(stages)}`"
    if maker == MODEL:
        without = [abstains(provenance[stage].get("engine")) for stage in ran]
        if all(without):
            maker = "plain rules or recorded answers instead of a model"
        elif any(without):
            maker = "a model, or plain rules or recorded answers in its place"
    return f"{maker}, in `{'`, `'.join(ran)}`" if ran else maker


MOST_NAMES = 12


def _leanings(measured: Mapping[str, SampleCounts]) -> str:
    """The table of what was counted in the samples, empty where nothing was."""
    if not measured:
        return ""
    parts = {name: counts for name, counts in measured.items() if name != ALL}
    every = list(parts.values())
    everything = measured.get(ALL, next(iter(measured.values())))

    def row(name: str, *pairs: tuple[int, int]) -> list[str]:
        shares = (f"{part:,} ({share(part, whole)})" if part else "0" for part, whole in pairs)
        return [name, *shares]

    rows = [["samples", *(f"{counts.samples:,}" for counts in every)]]
    for kind in ("language", "platform", "task", "doubt"):
        field = f"{kind}s"
        order = list(getattr(everything, field))
        lines = {f"{kind}: {escaped(name)}": [name] for name in order[:MOST_NAMES]}
        if others := order[MOST_NAMES:]:
            lines[f"{kind}: {len(others):,} others"] = others
        for title, names in lines.items():
            found = [sum(getattr(one, field).get(name, 0) for name in names) for one in every]
            rows.append(row(title, *zip(found, [one.samples for one in every], strict=True)))
    rows.append(["authors", *(f"{counts.authors:,}" for counts in every)])
    several = [(counts.repeated_authors, counts.authors) for counts in every]
    rows.append(row("authors of several samples", *several))
    unknown = [(counts.unknown_authors, counts.samples) for counts in every]
    rows.append(row("samples of an unknown author", *unknown))
    return table(["", *(f"`{name}`" for name in parts)], rows, numbers=len(parts))


def _doubts(measured: Mapping[str, SampleCounts], *configs: str) -> Mapping[str, int]:
    counts = (measured[name].doubts for name in configs if name in measured)
    return sum(map(Counter, counts), Counter[str]())


def bibtex(text: object) -> str:
    """Text as the value of a BibTeX field, which LaTeX prints as it is."""
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    shown = re.sub(
        r"[\\~^{}%$#&_]", lambda found: words.get(found[0], f"\\{found[0]}"), one_line(text)
    )
    return shown.replace("`", "'")


def key(name: str) -> str:
    """A name as a part of a key of BibTeX."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def fenced(text: str) -> str:
    """BibTeX as a block of code, its fence longer than any run of backticks inside."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", text))])
    return f"{fence}bibtex\n{text}\n{fence}"
