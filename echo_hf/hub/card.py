"""The dataset card: front matter for datasets, a page for people, and `eval.yaml`."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import yaml
from datasets import Dataset, DatasetInfo, Image, List
from datasets.info import DatasetInfosDict
from datasets.splits import SplitDict, SplitInfo
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCardData, metadata_load
from pydantic import TypeAdapter

from echo_hf._infra.regular_file import open_regular
from echo_hf._infra.text import (
    escape_markdown,
    format_interval,
    format_rounded,
    format_share,
    format_table,
    one_line,
    percent,
)
from echo_hf.config.checks import ModelIdentity
from echo_hf.config.collection import Search
from echo_hf.config.sections import STAGES, Hazard
from echo_hf.engines.base import abstains
from echo_hf.errors import ReleaseError
from echo_hf.hub.check_changes import find_deciding, select_newest
from echo_hf.hub.facts import (
    ALL,
    BENCHMARK_CONFIGS,
    CONFIGS,
    SAMPLE_CONFIGS,
    LeftOut,
    ReleaseFacts,
    SampleCounts,
    choose_default_config,
    get_table,
    known_languages,
)
from echo_hf.hub.manifest import MAX_TEXT_BYTES, SPLIT, Manifest, catch_read_errors
from echo_hf.hub.run_tables import released_models
from echo_hf.pipeline.stage import BY_MODEL, BY_RULE, COPIED

TASKS = {"text_to_image": "text-to-image", "image_to_image": "image-to-image"}
SEARCHES_KEY = "searches"
SEARCHES_ADAPTER = TypeAdapter(dict[str, Search])
TAGS = ["benchmark", "echo", "image-editing", "image-generation", "social-media"]
SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
PAPER_BIBTEX = """@inproceedings{ge2026constantly,
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
    models: Mapping[str, Mapping[str, ModelIdentity]] | None = None,
    checks: Dataset | None = None,
) -> str:
    configs = {name: manifest.configs[name] for name in CONFIGS if name in manifest.configs}
    engines = [stage["engine"] for stage in facts.provenance.values() if stage.get("engine")]
    page = read_template().render(
        facts=facts,
        columns=partial(list_columns, facts),
        made_by=partial(describe_maker, facts),
        manifest=manifest,
        configs=configs,
        about=CONFIGS,
        sample_configs=SAMPLE_CONFIGS,
        default=choose_default_config({name: entry.rows for name, entry in configs.items()}),
        title=_title(facts),
        target=facts.target,
        left_out_for={str(reason): reason.meaning for reason in LeftOut},
        engines=_group_engines(facts),
        models=models or released_models(None),
        checks=_build_checks(checks),
        built_without_models=bool(engines) and all(map(abstains, engines)),
        hazards={str(hazard): hazard.meaning for hazard in Hazard},
        leanings=_build_leanings(facts.measured),
        doubts={
            "all": _count_doubts(facts.measured, ALL),
            "benchmark": _count_doubts(facts.measured, *BENCHMARK_CONFIGS),
        },
        paper=PAPER_BIBTEX,
    )
    return f"---\n{build_front_matter(facts, manifest)}\n---\n{page}"


MAX_CHECKS = 10


def _build_checks(checks: Dataset | None) -> str:
    """Build the table of the newest version of each check, with the certificate that decides.

    Kept ones come first, then those that most threads complain of; the last ones are counted.
    """
    columns = ["name", "version", "title", "question", "status", "certificates"]
    rows = [] if checks is None else checks.select_columns(columns).to_list()
    lines = list[tuple[bool, int, list[str]]]()
    for row in select_newest(rows).values():
        proof = defaultdict(lambda: None, find_deciding(row["certificates"]))
        low, high = proof["low"], proof["high"]
        key = f"{row['name']}@{row['version']}"
        words = (
            f"{row['title']} ({key})",
            row["question"],
            row["status"],
            proof["judge"] or "none",
        )
        figures = (
            *(percent(proof["sensitivity"]), percent(proof["specificity"])),
            format_rounded(proof["j"], 2),
            format_interval(None if low is None or high is None else (low, high), 2),
            f"{proof['complaint_threads'] or 0:,} + {proof['praise_threads'] or 0:,}",
        )
        cells = [*map(escape_markdown, words), *figures]
        lines.append((row["status"] != "kept", -(proof["complaint_threads"] or 0), cells))
    heads = ["check", "question", "status", "judge", "sensitivity", "specificity", "J", "95 %"]
    shown = [cells for *_, cells in sorted(lines)[:MAX_CHECKS]]
    table = format_table([*heads, "threads"], shown, numbers=5) if lines else ""
    others = len(lines) - len(shown)
    return f"{table}\n\n{others:,} more are in the config `checks`." if others else table


def _group_engines(facts: ReleaseFacts) -> dict[str, list[str]]:
    """Group the stages by the engine that they asked."""
    found: dict[str, list[str]] = {}
    for stage, origin in facts.provenance.items():
        if engine := origin.get("engine"):
            kind = engine.get("kind") or "an unnamed engine"
            name = f"{engine.get('model') or 'an unnamed model'} by {kind}"
            name = f"{kind}, which is not a model" if abstains(engine) else name
            found.setdefault(name, []).append(stage)
    return found


@cache
def read_template() -> jinja2.Template:
    """Read the card's template, from the installed package or the sources."""
    package = Path(str(files("echo_hf")))
    paths = [folder / "dataset_card" / "card.md" for folder in (package, package.parent)]
    environment = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  # Markdown: filter `md` escapes what others wrote
    )
    environment.filters |= {"md": escape_markdown, "n": "{:,}".format, "json": json.dumps}
    environment.filters |= {"fenced": fence_bibtex, "bibtex": escape_bibtex, "key": make_key}
    environment.globals |= {"abstains": abstains, "counted": format_counts}
    found = next(path for path in paths if path.is_file())
    return environment.from_string(found.read_text("utf-8"))


def build_front_matter(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Build the YAML front matter that the Hub and `load_dataset` read."""
    entries = manifest.configs
    samples = sum(entries[name].rows for name in SAMPLE_CONFIGS if name in entries)
    data = DatasetCardData(
        pretty_name=_title(facts),
        language=known_languages(facts.languages) or None,
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
            features=get_table(name, facts.columns).released_features,
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
    found[choose_default_config({name: entry.rows for name, entry in entries.items()})][
        "default"
    ] = True
    MetadataConfigs(found).to_dataset_card_data(data)
    if facts.searches:  # here, where versions that do not know them read the release all the same
        data[SEARCHES_KEY] = {
            platform: search.model_dump(mode="json", exclude_defaults=True)
            for platform, search in facts.searches.items()
        }
    return data.to_yaml()


def read_searches(card: Path) -> dict[str, Search]:
    """Read the searches of the platforms from an untrusted card."""
    with catch_read_errors(card):
        try:
            open_regular(card, card.parent, max_bytes=MAX_TEXT_BYTES).close()
            metadata = metadata_load(card) or {}
        except (ValueError, yaml.YAMLError) as error:
            raise ReleaseError(
                f"{str(card)!r} has no front matter: {one_line(error)[:200]}"
            ) from None
        return SEARCHES_ADAPTER.validate_python(metadata.get(SEARCHES_KEY, {}))


def render_eval_file(manifest: Manifest) -> str | None:
    """Render `eval.yaml`, by which the Hub makes a board; null where no config has a sample.

    It names no `evaluation_framework`: none that the Hub knows computes win rates by judges.
    """
    entries = manifest.configs
    names = [name for name in BENCHMARK_CONFIGS if name in entries and entries[name].rows]
    if not names:
        return None
    target = one_line(manifest.target.name)
    configs = "; ".join(f"{name}: {CONFIGS[name].about}" for name in names)
    data = {
        "name": f"ECHO: {target}",
        "description": f"What people asked of {target} in public posts, to compare image models "
        "on. A system is scored by its win rate against the others: the value depends on which "
        f"systems and judges took part. {configs}.",
        "tasks": [{"id": name, "config": name, "split": SPLIT} for name in names],
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000)


def _title(facts: ReleaseFacts) -> str:
    return f"ECHO benchmark: {one_line(facts.target.name)} ({one_line(facts.name)})"


def format_counts(counts: Mapping[str, int | Mapping[str, Any]], separator: str = ", ") -> str:
    """Format counts by name, nested ones after a colon."""
    return separator.join(
        f"{escape_markdown(name)}: {format_counts(value)}"
        if isinstance(value, Mapping)
        else f"{escape_markdown(name)} {value:,}"
        for name, value in counts.items()
        if value != {}
    )


def list_columns(facts: ReleaseFacts, config: str) -> Iterator[list[str]]:
    declared = get_table(config, facts.columns)
    for name, column in declared.columns.items():
        type_text = describe_type(declared.released_features[name])
        meaning = escape_markdown(column.meaning) if column.content else column.meaning
        yield [f"`{name}`", type_text, re.sub(r"(?<!\\)\|", r"\|", meaning)]


def describe_type(feature: Any) -> str:
    if isinstance(feature, List):
        return f"list of {describe_type(feature.feature)}"
    if isinstance(feature, dict):
        fields = ", ".join(f"{name}: {describe_type(member)}" for name, member in feature.items())
        return f"{{{fields}}}"
    return "image" if isinstance(feature, Image) else str(feature.dtype)


@cache
def read_column_origins() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return who decides each column's values, and in which stages, as the stages say."""
    origins: dict[str, tuple[str, tuple[str, ...]]] = {"target": (COPIED, ())}
    origins |= dict.fromkeys(("sample_digest", "dehydrated", "provenance"), (BY_RULE, ()))
    for stage in STAGES.modules:
        for maker, columns in STAGES.find(stage).decides.items():
            for column in columns:
                earlier, stages = origins.get(column, (maker, ()))
                origins[column] = BY_MODEL if maker == BY_MODEL else earlier, (*stages, stage)
    return origins


def describe_maker(facts: ReleaseFacts, column: str) -> str:
    """Describe who decided a column's values in a build with these stages."""
    provenance = facts.provenance
    maker, stages = read_column_origins().get(column, (BY_RULE, ()))
    if entry := facts.columns.get(column):
        asks = provenance.get(entry.stage, {}).get("engine") is not None
        maker, stages = BY_MODEL if asks else BY_RULE, (entry.stage,)
    ran = [stage for stage in stages if stage in provenance]
    if stages and not ran:
        return f"nobody: this build has no `{'`, `'.join(stages)}`"
    if maker == BY_MODEL:
        is_modelless = [abstains(provenance[stage].get("engine")) for stage in ran]
        if all(is_modelless):
            maker = "plain rules or recorded answers instead of a model"
        elif any(is_modelless):
            maker = "a model, or plain rules or recorded answers in its place"
    return f"{maker}, in `{'`, `'.join(ran)}`" if ran else maker


MAX_NAMES = 12


def _build_leanings(measured: Mapping[str, SampleCounts]) -> str:
    """Build the table of counts over the samples, empty where nothing was counted."""
    if not measured:
        return ""
    parts = {name: counts for name, counts in measured.items() if name != ALL}
    groups = list(parts.values())
    total = measured.get(ALL, next(iter(measured.values())))

    def make_row(name: str, *pairs: tuple[int, int]) -> list[str]:
        shares = (
            f"{part:,} ({format_share(part, whole)})" if part else "0" for part, whole in pairs
        )
        return [name, *shares]

    rows = [["samples", *(f"{counts.samples:,}" for counts in groups)]]
    for kind in ("language", "platform", "task", "doubt"):
        field = f"{kind}s"
        order = list(getattr(total, field))
        lines = {f"{kind}: {escape_markdown(name)}": [name] for name in order[:MAX_NAMES]}
        if others := order[MAX_NAMES:]:
            lines[f"{kind}: {len(others):,} others"] = others
        for title, names in lines.items():
            sums = [sum(getattr(group, field).get(name, 0) for name in names) for group in groups]
            rows.append(
                make_row(title, *zip(sums, [group.samples for group in groups], strict=True))
            )
    rows.append(["authors", *(f"{counts.authors:,}" for counts in groups)])
    repeated = [(counts.repeated_authors, counts.authors) for counts in groups]
    rows.append(make_row("authors of several samples", *repeated))
    unknown = [(counts.unknown_authors, counts.samples) for counts in groups]
    rows.append(make_row("samples of an unknown author", *unknown))
    return format_table(["", *(f"`{name}`" for name in parts)], rows, numbers=len(parts))


def _count_doubts(measured: Mapping[str, SampleCounts], *configs: str) -> Mapping[str, int]:
    counts = (measured[name].doubts for name in configs if name in measured)
    return sum(map(Counter, counts), Counter[str]())


def escape_bibtex(text: object) -> str:
    """Escape text for a BibTeX field, which LaTeX prints as it is."""
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    escaped = re.sub(
        r"[\\~^{}%$#&_]", lambda found: words.get(found[0], f"\\{found[0]}"), one_line(text)
    )
    return escaped.replace("`", "'")


def make_key(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def fence_bibtex(text: str) -> str:
    """Fence BibTeX as a code block, longer than any run of backticks inside."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", text))])
    return f"{fence}bibtex\n{text}\n{fence}"
