"""The card is read by datasets and by people, whatever a config calls its target."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
import yaml
from datasets import Dataset, DatasetInfo, Features
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard, DatasetCardData
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.checks import ModelIdentity
from echo_hf.hub.card import (
    describe_maker,
    escape_bibtex,
    read_column_origins,
    render_card,
    render_eval_file,
)
from echo_hf.hub.facts import CONFIGS, ReleaseFacts, SampleCounts, choose_default_config
from echo_hf.hub.manifest import ConfigEntry, FileEntry, make_manifest
from echo_hf.systems.checks import VOTE, Check, CheckCertificate
from echo_hf.tables import CHECKS, SAMPLES, release_features
from tests.markdown_for_tests import cells, shape, shown, split, tokens
from tests.systems.test_checks import make

Row = dict[str, Any]
ROWS = {"image_to_image": 0, "text_to_image": 2, "analysis": 1200}
GUARD = "meta-llama/Llama-Guard-4-12B"
VLLM = {"kind": "vllm", "model": "acme/reader"}
RULES = {"kind": "rules"}
STAND_IN = "plain rules or recorded answers"
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


def fences(page: str) -> list[Any]:
    return [token for token in tokens(page) if token.type == "fence"]


def test_a_card_says_which_models_answered(facts: ReleaseFacts) -> None:
    """A substitute in place of another, and what nobody said; nothing where nothing was scored."""
    one = ModelIdentity(model="m-2", developer="P|p", status="substitute", stands_for="Old *M*")
    models = {"systems": {"ash": one, "birch": ModelIdentity()}, "judges": {"jay": one}}
    manifest = make_manifest(facts, {name: entry(name, count) for name, count in ROWS.items()})
    rows = cells(render_card(facts, manifest, models))
    told = ["m-2", "P|p", "substitute", "in place of Old *M*"]
    assert ["system", "ash", *told] in rows
    assert ["judge", "jay", *told] in rows
    assert ["system", "birch", *["not said"] * 3, ""] in rows
    assert "Who was measured" not in card(facts)


def checked(facts: ReleaseFacts, *checks: Check) -> str:
    rows = [json.loads(each.model_dump_json()) for each in checks]
    dataset = Dataset(pa.Table.from_pylist(rows, CHECKS.features.arrow_schema))
    manifest = make_manifest(facts, {name: entry(name, count) for name, count in ROWS.items()})
    return render_card(facts, manifest, checks=dataset)


def test_a_card_names_the_checks_and_what_proves_them(facts: ReleaseFacts) -> None:
    """The newest version of each; of several judges the vote decides."""
    fields = {"kept": True, "complaint_threads": 20, "praise_threads": 31, "low": 0.4, "high": 0.9}
    vote = CheckCertificate(judge=VOTE, sensitivity=0.8, specificity=0.9, j=0.7, **fields)
    own = CheckCertificate(judge="mira", sensitivity=0.2, specificity=0.3, j=-0.5)
    old, new = make(status="replaced"), make(version=2, status="kept", certificates=[own, vote])
    page = checked(facts, make("words", title="Words", question="Is a word wrong?"), old, new)
    rows = cells(page)
    said = ["Is the whole picture tinted?", "kept", "vote", "80 %", "90 %", "0.70", "0.40 to 0.90"]
    assert ["Cast (cast@2)", *said, "20 + 31"] in rows
    assert ["Words (words@1)", "Is a word wrong?", "proposed", "none", *["-"] * 4, "0 + 0"] in rows
    assert "cast@1" not in page
    assert "Questions that complaints became" not in card(facts)


def test_a_card_names_ten_checks_and_counts_the_others(facts: ReleaseFacts) -> None:
    """Kept ones first, whatever their counts; then those that most threads complain of."""
    fields = {"judge": "mira", "praise_threads": 20}
    many = [
        make(
            f"mark_{count}",
            title=f"Mark {count}",
            status="kept" if count == 1 else "fell",
            certificates=[CheckCertificate(complaint_threads=count, **fields)],
        )
        for count in range(1, 13)
    ]
    page = checked(facts, *many)
    named = [row[0].split(" (")[0] for row in cells(page) if row[0].startswith("Mark ")]
    assert named == ["Mark 1", *(f"Mark {count}" for count in range(12, 3, -1))]
    assert "2 more are in the config `checks`." in page
    assert "more are in the config" not in checked(facts, *many[:10])


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_model_wrote_of_a_check_is_text(facts: ReleaseFacts, text: str) -> None:
    written = " ".join(text.split())
    page = checked(facts, make(title=written, question=written))
    assert shape(page) == shape(checked(facts, make(title="no", question="no")))
    assert [f"{written} (cast@1)", written] in [row[:2] for row in cells(page)]


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
    data, _ = split(card(facts, dict.fromkeys(CONFIGS, 2)))
    read = DatasetCardData(**data)
    assert DatasetCardData(**split(f"---\n{read.to_yaml()}\n---\n")[0]) == read
    for name, info in DatasetInfosDict.from_dataset_card_data(read).items():
        assert info.features == CONFIGS[name].table.released_features


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


def test_the_default_is_the_first_config_with_rows(facts: ReleaseFacts) -> None:
    for counts, default in (((1, 2, 3), "image_to_image"), ((0, 0, 1), "analysis")):
        assert choose_default_config(dict(zip(ROWS, counts, strict=True))) == default
    assert choose_default_config({"ratings": 0, "analysis": 0}) == "analysis"
    data, page = split(card(facts))
    named = [each["config_name"] for each in data["configs"] if each.get("default")]
    assert named == ["text_to_image"]
    assert '"text_to_image", split="test"' in fences(page)[0].content


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
    assert list(explained) == list(SAMPLES.columns)
    assert SAMPLES.columns.keys() == read_column_origins().keys()
    assert explained["output_images"][0] == "list of image"
    assert explained["input_bboxs"][0] == "list of list of float64"
    for name, column in SAMPLES.columns.items():
        assert explained[name][1] == column.meaning.replace("`", "")
    assert "Columns of" not in card(facts)
    page = split(card(facts, {"text_to_image": 1, "outputs": 2}))[1]
    assert "One row is what one system made of one sample." in page
    assert ["image", "image", "the image it made, null when it made none"] in cells(page)


def test_who_made_a_column_depends_on_the_build(facts: ReleaseFacts) -> None:
    for column, engines, said in (
        ("task", {"feedback": VLLM}, "a model, in `feedback`"),
        ("task", {"feedback": RULES}, f"{STAND_IN} instead of a model, in `feedback`"),
        (
            "prompt",
            {"extract": VLLM, "roles": RULES},
            f"a model, or {STAND_IN} in its place, in `extract`, `roles`",
        ),
        ("safety", {"feedback": VLLM}, "nobody: this build has no `safety`"),
        ("review", {}, "nobody: this build has no `roles`, `privacy`"),
        ("sample_digest", {}, "a fixed rule"),
        ("post_id", {"collect": None}, "copied, in `collect`"),
    ):
        assert describe_maker(replace(facts, **stages(**engines)), column) == said


def stages(**engines: Any) -> Row:
    made = {stage: {"digest": "ab" * 32, "engine": one} for stage, one in engines.items()}
    return {"provenance": made}


def safe(engine: Row, funnel: Row, *removed: str) -> Row:
    return {
        **stages(safety=engine),
        "funnel": {"splits": funnel},
        "removed_categories": removed or None,
    }


NO_S8 = "S8 (intellectual property) is named and not removed"
KIND = "is not stated by this build"
UNCLEANED = {"funnel": {"privacy": {"noted": {"image_not_cleaned": 1200}}}}
JUDGED = "explanations in ratings were written by judges"
# What a release states, what its card says then, and what it does not.
SAID: dict[str, tuple[Row, list[str], list[str]]] = {
    "by rules": ({"rules_built": True}, ["Built without a model."], []),
    "by models": (
        stages(extract=VLLM, roles=VLLM, splits=None),
        [
            *("was made with models.", "acme/reader by vllm, in extract, roles\n"),
            *("No safety model has looked at", "Feedback stands as it was posted"),
            "Images are the very bytes that were posted or drawn",
        ],
        ["Built without a model.", "explanations in", "are masked.", "were taken out"],
    ),
    "ratings": (stages(extract=RULES), ["made by plain rules", JUDGED], ["made with models"]),
    "silent ratings": (
        {"left_out": {"ratings": {"silenced": 1, "not_released": 1200}}},
        ["whose explanations are left out", "1,200 rows of ratings (its sample is not in the rel"],
        [JUDGED],
    ),
    "unnamed": (stages(extract={"kind": "openai"}), ["an unnamed model by openai"], []),
    "nobody": (stages(), ["is not recorded in this release"], ["Left out:"]),
    "a guard": (
        safe({"kind": "vllm", "model": GUARD}, {}),
        ["one image 41 % 9 %", "how many were taken out is unknown", KIND],
        ["misses is not known here", NO_S8],
    ),
    "another": (
        safe({"kind": "openai", "model": "acme/guard"}, {"rejected": {"flagged": 1200}}, "S1"),
        ["not known here", "config: 1,200 were taken out", "Removed: S1 (violent crimes).", NO_S8],
        ["41 %", "Recall", KIND],
    ),
    "no guard": (
        safe(RULES, {"rejected": {}}, "S8"),
        ["answers stood in for a safety model.", "config: 0 were taken out"],
        ["Recall", NO_S8],
    ),
    "masked and cleaned": (
        {**stages(privacy=None), **UNCLEANED, "metadata_stripper": 1},
        ["are masked.", "1,200 could not be cleaned"],
        ["Feedback stands as it was posted", "Images are the very bytes"],
    ),
    "reached": ({}, ["or write to requests@example.org"], ["No other address"]),
    "not reached": ({"contact": None}, ["No other address"], ["write to"]),
}


@pytest.mark.parametrize(("values", "said", "unsaid"), SAID.values(), ids=SAID)
def test_what_holds_is_said_and_nothing_else(
    facts: ReleaseFacts, values: Row, said: list[str], unsaid: list[str]
) -> None:
    """The figures about a guard are those of its own card, and of no other model."""
    judged = any("explanations" in words for words in said)
    text = card(
        replace(facts, **values), {"text_to_image": 1, **({"ratings": 1} if judged else {})}
    )
    page = f"{shown(split(text)[1])} {' '.join(' '.join(row) for row in cells(text))}"
    assert [words for words in said if words not in page] == []
    assert [words for words in unsaid if words in page] == []


PEOPLE = {"open_reviews": 1200, "unscreened": 3400, "hashed_authors": True}
COUNTED = [
    "Authors stand in it as keyed hashes",
    "Samples that a person still has to look at: 1,200.",
    "Samples that no safety model has looked at: 3,400.",
]
CLEAR = ["No author stands in it.", "No sample waits", "has looked at every"]


def test_what_concerns_people_is_said_in_words(facts: ReleaseFacts) -> None:
    for values, said, unsaid in (({}, CLEAR, COUNTED), (PEOPLE, COUNTED, CLEAR)):
        page = shown(split(card(facts, **values))[1])
        assert [words for words in said if words not in page] == []
        assert [words for words in unsaid if words in page] == []


def test_empty_configs_and_posts_that_are_left_out_are_told(facts: ReleaseFacts) -> None:
    assert "streaming=True" in card(facts)
    assert "streaming=True" not in card(facts, {"analysis": 1})
    assert "not repeated here" not in card(facts)
    dehydrated = {"text_to_image": 800, "analysis": 1450}
    entries = {name: entry(name, 1500, dehydrated=count) for name, count in dehydrated.items()}
    page = split(render_card(facts, make_manifest(facts, entries)))[1]
    assert "In 800 rows of `text_to_image` and 1,450 rows of `analysis` (`dehydrated`" in page
    assert "echo-hf hydrate FOLDER --posts posts.jsonl --to HYDRATED" in page


def test_what_the_samples_lean_towards_is_shown_side_by_side(facts: ReleaseFacts) -> None:
    codes = [f"{a}{b}" for a in "abc" for b in "abcde"]
    some: Row = {"platforms": {"x": 3}, "tasks": {}, "authors": 2, "repeated_authors": 1}
    every = SampleCounts(samples=15, languages=dict.fromkeys(codes, 1), **some, unknown_authors=5)
    few = SampleCounts(samples=3, languages={"aa": 1}, **some, unknown_authors=0)
    measured = {"all": every, "text_to_image": few, "analysis": every}
    rows = cells(card(replace(facts, measured=measured)))
    for row in (
        ["", "text_to_image", "analysis"],
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


@pytest.mark.parametrize(
    ("in_benchmark", "said"),
    [({}, "are in `analysis` alone"), ({"lacks_input": 2}, "all the same: lacks\\_input 2")],
)
def test_what_is_doubtful_is_counted(facts: ReleaseFacts, in_benchmark: Row, said: str) -> None:
    plain: Row = {"languages": {}, "platforms": {}, "tasks": {}, "authors": 0}
    plain |= {"samples": 9, "repeated_authors": 0, "unknown_authors": 9}
    every = SampleCounts(**plain, doubts={"lacks_input": 3, "roles_contradict": 1})
    few = SampleCounts(**plain, doubts=in_benchmark)
    measured = {"all": every, "text_to_image": few, "analysis": every}
    page = card(replace(facts, measured=measured))
    assert "that they seem to be: lacks\\_input 3, roles\\_contradict 1.**" in page
    assert said in page
    row = ["doubt: lacks_input", f"{2} (22 %)" if in_benchmark else "0", "3 (33 %)"]
    assert row in cells(page)
    assert "seem to be" not in card(facts)


def named(facts: ReleaseFacts, name: str) -> ReleaseFacts:
    target = facts.target.model_copy(
        update={"name": name, "developer": name, "aliases": (name, name), "chat_window": name}
    )
    kinds = {kind: {name: 3} for kind in ("languages", "platforms", "tasks", "doubts")}
    authors = {"authors": 1, "repeated_authors": 1, "unknown_authors": 0}
    counts = SampleCounts(samples=3, **kinds, **authors)
    engine = {"kind": "vllm", "model": name}
    return replace(
        facts,
        **stages(**{name: engine, "safety": engine}),
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
    said = escape_bibtex(name)
    assert balanced(said)
    assert not {"\n", "`"} & set(said)


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


# https://huggingface.co/docs/hub/eval-results, "Registering a Benchmark". A framework is one of
# those in packages/tasks/src/eval.ts of huggingface.js, or left out: echo-hf is not among them.
TEXT = {"type": "string", "minLength": 1}
TASK = {"id": TEXT, "config": TEXT, "split": TEXT}
# Without `evaluation_framework`, which takes a name that the Hub knows: it knows none of ours.
EVAL_FILE_SCHEMA = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "description": TEXT,
        "tasks": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": TASK,
                "required": ["id"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["name", "tasks"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", ["Pixelbloom", "x\ntasks: []", '"', "\u2028 é", "1"])
def test_every_benchmark_config_with_samples_is_a_task(facts: ReleaseFacts, name: str) -> None:
    """In `eval.yaml`, as the Hub documents it."""
    target = facts.target.model_copy(update={"name": name})
    rows = {"analysis": 9, "image_to_image": 0, "text_to_image": 4, "ratings": 8}
    named = replace(facts, target=target)
    made = make_manifest(named, {config: entry(config, count) for config, count in rows.items()})
    found = yaml.safe_load(render_eval_file(made) or "")
    jsonschema.validate(found, EVAL_FILE_SCHEMA)
    assert found["name"] == f"ECHO: {' '.join(name.split())}"
    task = {"id": "text_to_image", "config": "text_to_image", "split": "test"}
    assert found["tasks"] == [task]
    empty = {"analysis": entry("analysis", 9), "image_to_image": entry("image_to_image", 0)}
    assert render_eval_file(make_manifest(facts, empty)) is None
