"""The card is read by datasets and by people, whatever a config calls its target."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import DatasetInfo, Features
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard, DatasetCardData
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from echo_hf.config.sections import Target
from echo_hf.hub.card import ORIGINS, bibtex, eval_file, render_card
from echo_hf.hub.facts import CONFIGS, ReleaseFacts, SampleCounts
from echo_hf.hub.manifest import ConfigEntry, FileEntry, make_manifest
from echo_hf.tables import SAMPLES, release_features
from tests.markdown_for_tests import cells, shape, shown, split, tokens

ROOT = Path(__file__).resolve().parents[2]
ROWS = {"image_to_image": 0, "text_to_image": 2, "analysis": 1200}
GUARD = "meta-llama/Llama-Guard-4-12B"
VLLM = {"kind": "vllm", "model": "acme/reader"}
RULES = {"kind": "rules"}
HOSTILE = [
    'a"]: x',
    "a | b",
    "a\n---\nconfigs: []",
    "{{x}} ${y} {% z %} `code` ```",
    "<script>alert(1)</script> &amp; [x](https://e.example) ![y](z)",
    "*bold* _it_ ~~no~~ \\| # h",
    "\u2028 \x85 \x0b é 雨 🙂",
    "no",
]


def entry(config: str, rows: int, **values: Any) -> ConfigEntry:
    file = FileEntry(path=f"{config}/test-00000-of-00001.parquet", bytes=10, sha256="0" * 64)
    given = {"pictures": 2 * rows, "loaded_bytes": 100, "digest": "1" * 64, "files": (file,)}
    return ConfigEntry(rows=rows, **{**given, **values})


def card(facts: ReleaseFacts, rows: Mapping[str, int] = ROWS, **people: Any) -> str:
    manifest = make_manifest(facts, {name: entry(name, count) for name, count in rows.items()})
    return render_card(facts, manifest.model_copy(update=people))


def page_of(facts: ReleaseFacts, *configs: str) -> str:
    return shown(split(card(facts, dict.fromkeys(configs, 1) if configs else ROWS))[1])


def made_with(facts: ReleaseFacts, **engines: Any) -> ReleaseFacts:
    stages = {stage: {"digest": "ab" * 32, "engine": one} for stage, one in engines.items()}
    return replace(facts, provenance=stages)


def fences(page: str) -> list[Any]:
    return [token for token in tokens(page) if token.type == "fence"]


def test_every_config_has_files_and_types_in_the_front_matter(facts: ReleaseFacts) -> None:
    data, _ = split(card(facts))
    assert {each["config_name"]: each["data_files"] for each in data["configs"]} == {
        name: [{"split": "test", "path": f"{name}/test-*"}] for name in ROWS
    }
    infos = {each["config_name"]: each for each in data["dataset_info"]}
    assert {name: info["splits"][0]["num_examples"] for name, info in infos.items()} == ROWS
    for info in infos.values():
        assert Features._from_yaml_list(info["features"]) == release_features()
    read = DatasetCard(card(facts)).data
    assert MetadataConfigs.from_dataset_card_data(read).get_default_config_name() == "text_to_image"
    loaded = [DatasetInfo._from_yaml_dict(each) for each in read["dataset_info"]]
    assert {info.config_name: info.splits["test"].num_examples for info in loaded} == ROWS


@pytest.mark.parametrize("name", CONFIGS)
def test_the_front_matter_survives_the_libraries(facts: ReleaseFacts, name: str) -> None:
    data, _ = split(card(facts, {"image_to_image": 1, name: 2}))
    read = DatasetCardData(**data)
    assert DatasetCardData(**split(f"---\n{read.to_yaml()}\n---\n")[0]) == read
    assert DatasetInfosDict.from_dataset_card_data(read)[name].features == (
        CONFIGS[name].table.released_features
    )


def test_the_front_matter_says_what_the_hub_searches_by(facts: ReleaseFacts) -> None:
    data, _ = split(card(facts))
    assert data["pretty_name"] == "ECHO benchmark: Pixelbloom (pixelbloom-2025-03)"
    assert data["language"] == ["en", "no"]
    assert (data["license"], data["license_name"]) == ("other", "posts-belong-to-their-authors")
    assert sorted(data["task_categories"]) == ["image-to-image", "text-to-image"]
    assert data["size_categories"] == ["1K<n<10K"]
    data, page = split(
        card(
            replace(facts, license="cc-by-4.0", license_note="Do as it says."),
            {"analysis": 12, "ratings": 50_000, "responses": 200_000},
        )
    )
    assert (data["license"], data["size_categories"]) == ("cc-by-4.0", ["n<1K"])
    assert not {"license_name", "task_categories"} & set(data)
    assert "Do as it says." in page


@pytest.mark.parametrize(
    ("rows", "default"),
    [
        ({"analysis": 3, "text_to_image": 2, "image_to_image": 1}, "image_to_image"),
        ({"analysis": 3, "text_to_image": 2, "image_to_image": 0}, "text_to_image"),
        ({"analysis": 0, "text_to_image": 0, "image_to_image": 0}, "image_to_image"),
        ({"analysis": 1}, "analysis"),
        ({"ratings": 0, "analysis": 0}, "analysis"),
    ],
)
def test_the_default_is_the_first_config_with_rows(
    facts: ReleaseFacts, rows: Mapping[str, int], default: str
) -> None:
    data, page = split(card(facts, rows))
    assert [each["config_name"] for each in data["configs"] if each.get("default")] == [default]
    assert f'"{default}", split="test"' in fences(page)[0].content


def test_the_tables_show_rows_funnel_and_provenance(facts: ReleaseFacts) -> None:
    rows = cells(card(facts))
    assert ["analysis", "1,200", "2,400"] in [[row[0], *row[2:]] for row in rows]
    assert ["relevance", "rows_in 1,200; kept 340; rejected: repost 60"] in rows
    assert ["extract", "rows_in 340; kept 3"] in rows
    assert ["relevance", "abab" * 4, "efef" * 4, '{"kind": "vllm", "model": "m|n"}'] in rows
    assert ["splits", "cdcd" * 4, "none", "none"] in rows
    bare = cells(card(replace(facts, funnel={}, provenance={}, languages=())))
    assert ["none", ""] in bare
    assert ["none", "", "", ""] in bare


def test_every_column_is_explained(facts: ReleaseFacts) -> None:
    explained = {row[0]: row[1:] for row in cells(card(facts)) if row[0] in SAMPLES.columns}
    assert list(explained) == list(SAMPLES.columns) == list(ORIGINS)
    assert explained["output_images"][0] == "list of image"
    assert explained["input_bboxs"][0] == "list of list of float64"
    for name, column in SAMPLES.columns.items():
        assert explained[name][1] == column.meaning.replace("`", "")
    assert "Columns of" not in card(facts)
    page = split(card(facts, {"text_to_image": 1, "outputs": 2}))[1]
    assert "One row is what one system made of one sample." in page
    assert ["image", "image", "the image it made, null when it made none"] in cells(page)


@pytest.mark.parametrize(
    ("column", "engines", "said"),
    [
        ("task", {"feedback": VLLM}, "a model, in feedback"),
        (
            "task",
            {"feedback": RULES},
            "plain rules or recorded answers instead of a model, in feedback",
        ),
        (
            "prompt",
            {"extract": VLLM, "roles": RULES},
            "a model, or plain rules or recorded answers in its place, in extract and roles",
        ),
        ("safety", {"feedback": VLLM}, "nobody: no safety in this build"),
        ("review", {}, "nobody: no roles or privacy in this build"),
        ("sample_digest", {}, "a fixed rule"),
        ("post_id", {"collect": None}, "copied, in collect"),
    ],
)
def test_who_made_a_column_depends_on_the_build(
    facts: ReleaseFacts, column: str, engines: Mapping[str, Any], said: str
) -> None:
    rows = {row[0]: row[-1] for row in cells(card(made_with(facts, **engines))) if len(row) == 4}
    assert rows[column] == said


@pytest.mark.parametrize(("engine", "said"), [({}, "none"), (None, "none"), (VLLM, "vllm")])
def test_a_stage_without_an_engine_says_none(facts: ReleaseFacts, engine: Any, said: str) -> None:
    rows = cells(card(made_with(facts, quality=engine)))
    (row,) = (one for one in rows if one[0] == "quality" and one[1] == "ab" * 8)
    assert said in row[-1]


@pytest.mark.parametrize(("built", "count"), [(True, 1), (False, 0)])
def test_a_release_made_by_rules_says_so_first(
    facts: ReleaseFacts, built: bool, count: int
) -> None:
    found = tokens(split(card(replace(facts, rules_built=built)))[1])
    assert sum("plain rules" in token.content for token in found) == count
    assert (found[3].type == "blockquote_open") is built


@pytest.mark.parametrize(
    ("values", "said", "unsaid"),
    [
        (
            {},
            ["No author stands in it.", "No sample waits", "has looked at every"],
            ["keyed hashes"],
        ),
        (
            {"open_reviews": 1200, "unscreened": 3400, "hashed_authors": True},
            [
                "Authors stand in it as keyed hashes",
                "Samples that a person still has to look at: 1,200.",
                "Samples that no safety model has looked at: 3,400.",
            ],
            ["No author stands in it", "No sample waits", "has looked at every"],
        ),
    ],
)
def test_what_concerns_people_is_said_in_words(
    facts: ReleaseFacts, values: Mapping[str, Any], said: list[str], unsaid: list[str]
) -> None:
    page = shown(split(card(facts, **values))[1])
    assert [words for words in said if words not in page] == []
    assert [words for words in unsaid if words in page] == []


def test_what_is_there_at_times_is_said_then(facts: ReleaseFacts) -> None:
    assert "streaming=True" in card(facts)
    assert "streaming=True" not in card(facts, {"analysis": 1})
    left = replace(facts, left_out={"ratings": {"not_released": 1200}})
    assert "Left out: 1,200 rows of ratings (its sample is not in the release)." in page_of(left)
    assert "Left out" not in card(facts)
    assert "or write to requests@example.org" in card(facts)
    assert "write to" not in card(replace(facts, contact=None))
    entries = {
        "text_to_image": entry("text_to_image", 1500, dehydrated=800),
        "analysis": entry("analysis", 1500, dehydrated=1450),
    }
    page = split(render_card(facts, make_manifest(facts, entries)))[1]
    assert "In 800 rows of `text_to_image` and 1,450 rows of `analysis` (`dehydrated`" in page
    assert "echo-hf hydrate FOLDER --posts posts.jsonl --to HYDRATED" in page
    assert "not repeated here" not in card(facts)


def test_what_models_made_is_said_with_their_names(facts: ReleaseFacts) -> None:
    page = page_of(made_with(facts, extract=VLLM, roles=VLLM, splits=None), "text_to_image")
    assert "Part of the text in this dataset was made with models." in page
    assert "acme/reader by vllm, in extract, roles\n" in page
    assert "explanations in ratings were written by judges" not in page
    by_rules = page_of(made_with(facts, extract=RULES), "ratings")
    assert "made by plain rules" in by_rules
    assert "made with models" not in by_rules
    assert "explanations in ratings were written by judges" in by_rules
    assert "an unnamed model by openai" in page_of(made_with(facts, extract={"kind": "openai"}))
    assert "is not recorded in this release" in page_of(made_with(facts))
    silent = replace(facts, left_out={"ratings": {"silenced": 1}})
    assert "judges, whose explanations are left out" in page_of(silent, "ratings")


@pytest.mark.parametrize(
    ("engine", "said", "unsaid"),
    [
        ("none", "No safety model has looked at these samples", "were taken out"),
        (RULES, "Plain rules or recorded answers stood in for a safety model.", "Recall"),
        ({"kind": "vllm", "model": GUARD}, "one image 41 % 9 %", "is not known here"),
        ({"kind": "openai", "model": "acme/guard"}, "misses is not known here", "41 %"),
    ],
)
def test_who_looked_for_unsafe_content_is_said_with_what_that_misses(
    facts: ReleaseFacts, engine: Any, said: str, unsaid: str
) -> None:
    """The figures are those of the guard's own card, and of no other model."""
    stages = {} if engine == "none" else {"safety": engine}
    text = card(made_with(facts, **stages))
    page = f"{shown(text)} {' '.join(' '.join(row) for row in cells(text))}"
    assert said in page
    assert unsaid not in page


@pytest.mark.parametrize(
    ("funnel", "removed", "said"),
    [
        ({"rejected": {"flagged": 1200}}, ("S1", "S4"), "config: 1,200 were taken out"),
        ({"rejected": {}}, ("S8", "S1"), "config: 0 were taken out"),
        ({}, None, "how many were taken out is unknown"),
    ],
)
def test_what_was_removed_is_counted(
    facts: ReleaseFacts, funnel: Any, removed: tuple[str, ...] | None, said: str
) -> None:
    stages = made_with(facts, safety={"kind": "vllm", "model": GUARD})
    page = page_of(replace(stages, funnel={"splits": funnel}, removed_categories=removed))
    assert said in page
    meanings = {
        "S1": "violent crimes",
        "S4": "sexual exploitation of children",
        "S8": "intellectual property",
    }
    if removed is None:
        assert "which categories those are is not stated by this build" in page
    else:
        assert f"Removed: {', '.join(f'{one} ({meanings[one]})' for one in removed)}." in page
    kept = removed is not None and "S8" not in removed
    assert ("S8 (intellectual property) is named and not removed" in page) is kept


@pytest.mark.parametrize("masked", [False, True])
def test_masking_and_cleaning_are_claimed_only_where_they_were_done(
    facts: ReleaseFacts, masked: bool
) -> None:
    stages = made_with(facts, **({"privacy": None} if masked else {}))
    counts = {"privacy": {"noted": {"image_not_cleaned": 1200}}}
    page = page_of(replace(stages, metadata_stripper=1 if masked else None, funnel=counts))
    assert ("are masked." in page) is masked
    assert ("Feedback stands as it was posted" in page) is not masked
    assert ("1,200 could not be cleaned" in page) is masked
    assert ("Images are the very bytes that were posted or drawn" in page) is not masked


def test_what_the_samples_lean_towards_is_shown_side_by_side(facts: ReleaseFacts) -> None:
    codes = [f"{a}{b}" for a in "abc" for b in "abcde"]
    some = {"platforms": {"x": 3}, "tasks": {}, "authors": 2, "repeated_authors": 1}
    every = SampleCounts(samples=15, languages=dict.fromkeys(codes, 1), **some, unknown_authors=5)
    few = SampleCounts(samples=3, languages={"aa": 1}, **some, unknown_authors=0)
    measured = {"all": every, "text_to_image": few, "analysis": every}
    rows = cells(card(replace(facts, measured=measured)))
    assert ["", "text_to_image", "analysis"] in rows
    for row in (
        ["samples", "3", "15"],
        ["language: aa", "1 (33 %)", "1 (7 %)"],
        ["language: 3 others", "0", "3 (20 %)"],
        ["platform: x", "3 (100 %)", "3 (20 %)"],
        ["authors of several samples", "1 (50 %)", "1 (50 %)"],
        ["samples of an unknown author", "0", "5 (33 %)"],
    ):
        assert row in rows
    assert sum(row[0].startswith("language: ") for row in rows) == 13
    assert "Not counted: this release was written without the posts" in card(facts)


def named(facts: ReleaseFacts, name: str) -> ReleaseFacts:
    target = Target.model_construct(
        name=name,
        developer=name,
        released=datetime.date(2025, 3, 25),
        aliases=(name, name),
        others=(),
        chat_window=name,
    )
    counts = SampleCounts(
        samples=3,
        languages={name: 3},
        platforms={name: 3},
        tasks={name: 3},
        authors=1,
        repeated_authors=1,
        unknown_authors=0,
    )
    engine = {"kind": "vllm", "model": name}
    return replace(
        made_with(facts, **{name: engine, "safety": engine}),
        target=target,
        funnel={name: {name: 3, "rejected": {name: 4}}},
        removed_categories=(name,),
        measured={"all": counts, "text_to_image": counts},
        repository=name,
        contact=name,
        rights={"x": name},
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(facts: ReleaseFacts, name: str) -> None:
    line = " ".join(name.split())
    data, page = split(card(named(facts, name)))
    usual, usual_page = split(card(named(facts, "Pixelbloom")))
    assert data.pop("pretty_name") == f"ECHO benchmark: {line} (pixelbloom-2025-03)"
    usual.pop("pretty_name")
    assert data == usual
    assert shape(page) == shape(usual_page)
    assert ["Name", line] in cells(page)
    assert [line, f"{line} 3; rejected: {line} 4"] in cells(page)
    said = json.dumps({"kind": "vllm", "model": name}, sort_keys=True, ensure_ascii=False)
    assert [row for row in cells(page) if row[-1] == " ".join(said.split())]
    assert [f"language: {line}", "3 (100 %)"] in cells(page)
    assert f"Removed: {line} (on no list of ours)." in shown(page)
    assert f"The safety stage asked {line} about" in shown(page)
    assert f"Posts from x are passed on because: {line}" in shown(page)
    compile(fences(page)[0].content, "card", "exec")
    assert len(fences(page)[0].content.strip().splitlines()) == 3
    paper, dataset = (one.content for one in fences(page) if one.info == "bibtex")
    assert balanced(paper)
    assert balanced(dataset)
    assert len(dataset.splitlines()) == 5


def balanced(text: str) -> bool:
    depth, plain = 0, text.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30))
def test_no_name_opens_or_closes_a_brace(name: str) -> None:
    said = bibtex(name)
    assert balanced(said)
    assert "\n" not in said
    assert "`" not in said


def test_paper_and_dataset_are_cited(facts: ReleaseFacts) -> None:
    page = card(replace(facts, repository="org/echo_1"))
    paper, dataset = (one.content for one in fences(page) if one.info == "bibtex")
    assert "Constantly Improving Image Models Need Constantly Improving Benchmarks" in paper
    assert paper.count(" and ") + paper.count(" and\n") == 9
    assert dataset.startswith("@misc{echo_pixelbloom_2025_03,")
    assert "{Hugging Face dataset, org/echo\\_1}" in dataset
    assert "is not stated in its config" in page
    given_text = "@misc{a,\n  note = {```}\n}"
    page = card(replace(facts, citation=given_text))
    assert [one.content for one in fences(page)][-1] == given_text + "\n"
    assert "is not stated in its config" not in page


def test_the_sources_hold_the_template_once() -> None:
    assert not list((ROOT / "echo_hf").rglob("card.md"))
    assert (ROOT / "dataset_card" / "card.md").is_file()


class HubTask(BaseModel):
    """A task as the Hub documents it for frameworks other than inspect-ai."""

    model_config = ConfigDict(extra="forbid", strict=True)
    id: str
    config: str = "default"
    split: str = "test"


class HubBenchmark(BaseModel):
    """The file as the Hub documents it: four fields, all of them required."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    description: str
    evaluation_framework: str
    tasks: list[HubTask]


@pytest.mark.parametrize(
    "name", ["Pixelbloom", "no", "a: b # c", "x\ntasks: []", '"', "\u2028 é", "{}", "1"]
)
def test_every_benchmark_config_with_samples_is_a_task(facts: ReleaseFacts, name: str) -> None:
    target = Target.model_construct(name=name, developer="d")
    rows = {"analysis": 9, "image_to_image": 0, "text_to_image": 4, "ratings": 8}
    made = make_manifest(facts, {config: entry(config, count) for config, count in rows.items()})
    text = eval_file(replace(facts, target=target), made)
    found = HubBenchmark.model_validate(yaml.safe_load(text or ""))
    assert [(one.id, one.config, one.split) for one in found.tasks] == [
        ("text_to_image", "text_to_image", "test")
    ]
    assert found.name == f"ECHO: {' '.join(name.split())}"
    empty = {"analysis": entry("analysis", 9), "image_to_image": entry("image_to_image", 0)}
    assert eval_file(facts, make_manifest(facts, empty)) is None
