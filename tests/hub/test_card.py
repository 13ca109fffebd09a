"""The card is read by datasets and by people, whatever a config calls its target."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from datasets import DatasetInfo, Features
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard, DatasetCardData

from echo_hf.config.sections import Target
from echo_hf.hub.card import render_card
from echo_hf.hub.facts import CONFIGS, ReleaseFacts, SampleCounts
from echo_hf.hub.manifest import ConfigEntry, FileEntry, ReleaseCounts, make_manifest
from echo_hf.tables import SAMPLES, release_features
from tests.markdown_for_tests import cells, shape, shown, split, tokens

ROWS = {"image_to_image": 0, "text_to_image": 2, "analysis": 1200}
HOSTILE = [
    'a"]: x',
    "a | b",
    "a\n---\nconfigs: []",
    "{{x}} ${y} $title `code` ```",
    "<script>alert(1)</script> &amp; [x](https://e.example) ![y](z)",
    "*bold* _it_ ~~no~~ \\| # h",
    "\u2028 \x85 \x0b é 雨 🙂",
    "no",
]


def entry(config: str, rows: int) -> ConfigEntry:
    """An entry of the manifest with a number of rows."""
    file = FileEntry(path=f"{config}/test-00000-of-00001.parquet", bytes=10, sha256="0" * 64)
    return ConfigEntry(
        rows=rows, pictures=2 * rows, loaded_bytes=100, digest="1" * 64, files=(file,)
    )


def card(
    facts: ReleaseFacts, rows: Mapping[str, int] = ROWS, people: ReleaseCounts | None = None
) -> str:
    """The card of a release with so many rows, in which nobody is named and nothing is open."""
    entries = {name: entry(name, count) for name, count in rows.items()}
    return render_card(facts, make_manifest(facts, entries, people or ReleaseCounts()))


def named(facts: ReleaseFacts, name: str) -> ReleaseFacts:
    """The same facts with one text in every place that takes any."""
    target = Target.model_construct(
        name=name,
        developer=name,
        released=datetime.date(2025, 3, 25),
        aliases=(name, name),
        chat_window=name,
    )
    origin = {"digest": "ab" * 32, "engine": {"kind": "vllm", "model": name}}
    counts = SampleCounts(
        samples=3,
        languages={name: 3},
        platforms={name: 3},
        tasks={name: 3},
        authors=1,
        repeated_authors=1,
        unknown_authors=0,
    )
    return replace(
        facts,
        target=target,
        funnel={name: {name: 3, "rejected": {name: 4}}},
        provenance={name: origin, "safety": origin},
        removed_categories=(name,),
        measured={"all": counts, "text_to_image": counts},
        repository=name,
        contact=name,
    )


def test_every_config_has_files_and_types_in_the_front_matter(facts: ReleaseFacts) -> None:
    """YAML alone says where each config's files are and what its columns are."""
    data, _ = split(card(facts))
    assert {each["config_name"]: each["data_files"] for each in data["configs"]} == {
        name: [{"split": "test", "path": f"{name}/test-*"}] for name in ROWS
    }
    assert [each["config_name"] for each in data["configs"] if each.get("default")] == [
        "text_to_image"
    ]
    infos = {each["config_name"]: each for each in data["dataset_info"]}
    assert {name: info["splits"][0]["num_examples"] for name, info in infos.items()} == ROWS
    for info in infos.values():
        assert [column["name"] for column in info["features"]] == list(release_features())
        assert Features._from_yaml_list(info["features"]) == release_features()


def test_datasets_and_the_hub_client_read_the_front_matter(facts: ReleaseFacts) -> None:
    """The libraries that a user has find the same in it."""
    data = DatasetCard(card(facts)).data
    assert MetadataConfigs.from_dataset_card_data(data).get_default_config_name() == "text_to_image"
    infos = [DatasetInfo._from_yaml_dict(each) for each in data["dataset_info"]]
    assert {info.config_name: info.splits["test"].num_examples for info in infos} == ROWS


@pytest.mark.parametrize("name", CONFIGS)
def test_the_front_matter_of_every_config_survives_the_libraries(
    facts: ReleaseFacts, name: str
) -> None:
    """Read by the Hub's client and by datasets, and dumped again, it says the same."""
    data, _ = split(card(facts, {"image_to_image": 1, name: 2}))
    read = DatasetCardData(**data)
    assert DatasetCardData(**split(f"---\n{read.to_yaml()}\n---\n")[0]) == read
    info = DatasetInfosDict.from_dataset_card_data(read)[name]
    assert info.features == CONFIGS[name].table.released_features
    assert info.splits["test"].num_examples == 2
    assert MetadataConfigs.from_dataset_card_data(read)[name]["data_files"] == [
        {"split": "test", "path": f"{name}/test-*"}
    ]


def test_the_front_matter_says_what_the_hub_searches_by(facts: ReleaseFacts) -> None:
    """Name, languages (Norwegian is no boolean), licence, tasks, size."""
    data, _ = split(card(facts))
    assert data["pretty_name"] == "ECHO benchmark: Pixelbloom (pixelbloom-2025-03)"
    assert data["language"] == ["en", "no"]
    assert data["license"] == "other"
    assert data["license_name"] == "posts-belong-to-their-authors"
    assert sorted(data["task_categories"]) == ["image-to-image", "text-to-image"]
    assert data["size_categories"] == ["1K<n<10K"]
    assert data["annotations_creators"] == ["machine-generated"]


def test_only_samples_count_for_the_size(facts: ReleaseFacts) -> None:
    """Ratings and stored answers make no benchmark larger."""
    data, _ = split(card(facts, {"text_to_image": 12, "ratings": 50_000, "responses": 200_000}))
    assert data["size_categories"] == ["n<1K"]


def test_a_named_licence_needs_no_other_name(facts: ReleaseFacts) -> None:
    """Where the licence is one that the Hub knows, only its identifier is given."""
    data, page = split(card(replace(facts, license="cc-by-4.0", license_note="Do as it says.")))
    assert data["license"] == "cc-by-4.0"
    assert "license_name" not in data
    assert "Do as it says." in page


def test_one_config_is_enough(facts: ReleaseFacts) -> None:
    """A single config is the default one, whichever it is, and its task the only task."""
    data, page = split(card(facts, {"analysis": 1}))
    assert data["configs"][0]["default"] is True
    assert data["dataset_info"]["config_name"] == "analysis"
    assert "task_categories" not in data
    assert '"analysis", split="test"' in page


def test_the_tables_show_rows_funnel_and_provenance(facts: ReleaseFacts) -> None:
    """The numbers on the page are the release's own."""
    rows = cells(card(facts))
    assert ["analysis", "1,200", "2,400"] in [[row[0], *row[2:]] for row in rows]
    assert ["image_to_image", "0", "0"] in [[row[0], *row[2:]] for row in rows]
    assert ["relevance", "rows_in 1,200; kept 340; rejected: repost 60"] in rows
    assert ["extract", "rows_in 340; kept 3"] in rows
    assert ["relevance", "abab" * 4, "efef" * 4, '{"kind": "vllm", "model": "m|n"}'] in rows
    assert ["splits", "cdcd" * 4, "none", "none"] in rows


@pytest.mark.parametrize(
    ("rows", "default"),
    [
        ({"analysis": 3, "text_to_image": 2, "image_to_image": 1}, "image_to_image"),
        ({"analysis": 3, "text_to_image": 2, "image_to_image": 0}, "text_to_image"),
        ({"analysis": 0, "text_to_image": 0, "image_to_image": 0}, "image_to_image"),
    ],
)
def test_the_default_config_is_the_first_that_has_rows(
    facts: ReleaseFacts, rows: Mapping[str, int], default: str
) -> None:
    """`image_to_image` unless it is empty; the card's code loads the same one."""
    data, page = split(card(facts, rows))
    found = [each["config_name"] for each in data["configs"] if each.get("default")]
    assert found == [default]
    (code, *_) = [token.content for token in tokens(page) if token.type == "fence"]
    assert f'"{default}", split="test"' in code


def test_the_columns_of_other_configs_are_explained(facts: ReleaseFacts) -> None:
    """What a release holds beside its samples has a table of its columns, and only that."""
    page = split(card(facts, {"text_to_image": 1, "outputs": 2}))[1]
    assert "One row is what one system made of one sample." in page
    assert ["image", "image", "the image it made, null when it made none"] in cells(page)
    assert "Columns of" not in split(card(facts))[1]


def test_what_was_left_out_is_counted_on_the_card(facts: ReleaseFacts) -> None:
    """Rows of a run that its release does not hold are named with their reason."""
    left = replace(facts, left_out={"ratings": {"not_released": 1200}})
    assert "Left out: 1,200 rows of ratings (its sample is not in the release)." in shown(
        card(left)
    )
    assert "Left out" not in card(facts)


def test_every_column_is_explained(facts: ReleaseFacts) -> None:
    """The table of columns is the declared one, with the released types."""
    explained = {row[0]: row[1:] for row in cells(card(facts)) if row[0] in SAMPLES.columns}
    assert list(explained) == list(SAMPLES.columns)
    assert explained["output_images"][0] == "list of image"
    assert explained["input_bboxs"][0] == "list of list of float64"
    for name, column in SAMPLES.columns.items():
        assert explained[name][1] == column.meaning.replace("`", "")


@pytest.mark.parametrize(("built", "count"), [(True, 1), (False, 0)])
def test_a_release_made_by_rules_says_so_first(
    facts: ReleaseFacts, built: bool, count: int
) -> None:
    """The warning stands above everything else, and only where it is true."""
    found = tokens(split(card(replace(facts, rules_built=built)))[1])
    assert sum("plain rules" in token.content for token in found) == count
    assert (found[3].type == "blockquote_open") is built


def test_an_empty_config_is_explained(facts: ReleaseFacts) -> None:
    """How to read a config without rows is said only where there is one."""
    assert "streaming=True" in card(facts)
    assert "streaming=True" not in card(facts, {"analysis": 1})


def test_the_way_to_have_a_post_removed_is_named(facts: ReleaseFacts) -> None:
    """The repository's discussions always, an address where one is given."""
    assert "or write to requests@example.org" in card(facts)
    page = card(replace(facts, contact=None))
    assert "Community tab" in page
    assert "write to" not in page


@pytest.mark.parametrize(
    ("people", "said", "unsaid"),
    [
        (
            ReleaseCounts(),
            ["No author stands in it.", "No sample waits for a person", "has looked at every"],
            ["keyed hashes", "still has to look at", "no safety model"],
        ),
        (
            ReleaseCounts(open_reviews=1200, unscreened=3400, hashed_authors=True),
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
    facts: ReleaseFacts, people: ReleaseCounts, said: list[str], unsaid: list[str]
) -> None:
    """Authors, open reviews and unscreened samples, each in one of two ways."""
    page = shown(split(card(facts, people=people))[1])

    assert [words for words in said if words not in page] == []
    assert [words for words in unsaid if words in page] == []


def test_a_run_without_stages_still_has_a_card(facts: ReleaseFacts) -> None:
    """Empty tables say `none`."""
    rows = cells(card(replace(facts, funnel={}, provenance={}, languages=())))
    assert ["none", ""] in rows
    assert ["none", "", "", ""] in rows


def check_harmless(facts: ReleaseFacts, name: str) -> None:
    """A card is the card of a harmless name but for the name itself, and shows it as it is."""
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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(facts: ReleaseFacts, name: str) -> None:
    """Whatever a target is called, the YAML and the tables keep their shape."""
    check_harmless(facts, name)


def test_the_snippet_is_python_whatever_the_repository_is_called(facts: ReleaseFacts) -> None:
    """The lines that load the dataset are the first fenced block, and Python compiles them."""
    for name in (*HOSTILE, None):
        page = split(card(replace(facts, repository=name)))[1]
        (fence, *_) = [token for token in tokens(page) if token.type == "fence"]
        assert fence.info == "python"
        compile(fence.content, "card", "exec")
        assert len(fence.content.strip().splitlines()) == 3


def test_rows_with_content_left_out_are_told_with_the_way_to_get_it(facts: ReleaseFacts) -> None:
    """How many each config has, as a sample may be in two; not a word of it where none are."""
    entries = {
        name: entry(name, 1500).model_copy(update={"dehydrated": rows})
        for name, rows in {"text_to_image": 800, "analysis": 1450}.items()
    }
    _, page = split(render_card(facts, make_manifest(facts, entries)))
    assert "In 800 rows of `text_to_image` and 1,450 rows of `analysis` (`dehydrated`" in page
    assert "a thumbnail of 16 x 16 colored squares" in page
    assert "echo-hf hydrate FOLDER --posts posts.jsonl --to HYDRATED" in page
    assert "not repeated here" not in card(facts)


@pytest.mark.parametrize("statement", [*HOSTILE, "by contract of 2026-03-01"])
def test_a_stated_right_is_repeated_as_it_is(facts: ReleaseFacts, statement: str) -> None:
    """A reader sees the publisher's own words; they are no markup and no new line."""
    _, page = split(card(replace(facts, rights={"x": statement})))
    lines = shown(page).splitlines()
    (line,) = [text for text in lines if text.startswith("Posts from x are passed on because")]
    words = " ".join(statement.split())
    assert line == f"Posts from x are passed on because: {words}".strip()
