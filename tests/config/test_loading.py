"""The one file that describes a benchmark: what is read, and what is refused in which words."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.checks import parse_yaml
from echo_hf.config.collection import DateRange, phase_dates
from echo_hf.config.loading import Config, load_config, parse_config
from echo_hf.config.sections import Hazard, sort_hazards
from echo_hf.errors import ConfigError
from echo_hf.pipeline.run_folder import RunFolder
from tests.stages_for_tests import ROOT

LEAST: dict[str, Any] = {
    "name": "lumen-2026-03",
    "target": {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"},
    "posts": [{"source": "jsonl", "path": "posts.jsonl"}],
    "engines": {"reader": {"kind": "rules"}},
}
TOP = (
    "analysis, anchors, applicability, board, carry, checks, draws, engines, judges, metrics, "
    "name, outputs, paper, plugins, posts, protocol, release, rights, rubrics, runner, runs, "
    "schedule, shard, slices, splits, stages, success, systems, target"
)
RELEASED = datetime.date(2026, 3, 2)
PHASE = {"window": "1d", "terms": ["a"]}


def _with(path: str, value: Any, data: Any = None) -> Any:
    data = LEAST if data is None else data
    if not path:
        return value
    first, _, rest = path.partition(".")
    if isinstance(data, list):
        return [_with(rest, value, one) if at == int(first) else one for at, one in enumerate(data)]
    return {**data, first: _with(rest, value, data.get(first, {}))}


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in LEAST.items() if name != key}


def _parsed(path: str = "", value: Any = LEAST) -> Config:
    return parse_config(_with(path, value), "c.yaml")


def _refused(data: Any) -> str:
    """What is said of data or a file, in one short line that begins with its name."""
    with pytest.raises(ConfigError) as caught:
        load_config(data) if isinstance(data, Path) else parse_config(data, "c.yaml")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    return message.removeprefix("c.yaml: ")


def _written(config: Config) -> Any:
    return yaml.safe_load(yaml.safe_dump(config.model_dump(mode="json")))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(LEAST), "utf-8")
    return path


def test_the_least_config_has_all_defaults() -> None:
    config = _parsed()
    assert config.target.released == RELEASED
    assert (config.stages.relevance.engine, config.stages.relevance.keep) == ("reader", (4, 5))
    assert (config.splits.seed, config.splits.cap) == (0, 1000)
    assert (config.protocol, config.rights) == ("corrected", {})
    analysis = config.analysis
    assert (analysis.references, analysis.perplexity, analysis.embedding) == ((), None, None)


@pytest.mark.parametrize("path", sorted((ROOT / "eval_configs").glob("*.yaml")), ids=str)
def test_the_configs_that_come_along_can_be_read(path: Path) -> None:
    assert load_config(path).name


def test_paths_are_relative_to_the_config(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "encoder").mkdir()
    places = ("jsonl", "posts.jsonl"), ("jsonl", "/data/x.jsonl"), ("quickstart", None)
    analysis = {
        "references": [{"name": "a", "path": "a.txt"}, {"name": "b", "path": ["b.txt", "/c.txt"]}],
        "font": "cjk.otf",
        "perplexity": {},
        "embedding": {"model": "encoder"},
    }
    engine = {"kind": "recorded", "path": "answers.jsonl"}
    metrics = {"structure_distance": {"model": "encoder"}, "face_identity": {"pack": "none"}}
    data = {
        **_with("engines.reader", engine),
        "posts": [{"source": source, "path": path} for source, path in places],
        "analysis": analysis,
        "metrics": metrics,
    }
    file.write_text(yaml.safe_dump(data), "utf-8")
    monkeypatch.chdir(tmp_path)
    config, here = load_config("c.yaml"), tmp_path.resolve()
    paths = [entry.path for entry in config.posts]
    assert paths == [here / "posts.jsonl", Path("/data/x.jsonl"), None]
    assert config.engines["reader"].options == {"path": str(here / "answers.jsonl")}
    found = config.analysis
    references = [one.path for one in found.references]
    assert references == [(here / "a.txt",), (here / "b.txt", Path("/c.txt"))]
    assert (found.font, found.embedding and found.embedding.model) == (
        here / "cjk.otf",
        str(here / "encoder"),
    )
    assert found.perplexity is not None
    assert found.perplexity.model == "EleutherAI/pythia-12b"
    assert config.metrics.places == (here / "encoder",)


def test_anchors_and_merge_keys_work(file: Path) -> None:
    file.write_text(
        yaml.safe_dump(_without("engines"))
        + "engines:\n"
        + "  text: &shared {kind: vllm, model: a, seed: 1}\n"
        + "  vision: {<<: *shared, model: b}\n"
        + "  guard: {model: c, <<: [*shared, {kind: openai, more: 2}]}\n",
        "utf-8",
    )
    engines = load_config(file).engines
    assert {name: {"kind": one.kind, **one.options} for name, one in engines.items()} == {
        "text": {"kind": "vllm", "model": "a", "seed": 1},
        "vision": {"kind": "vllm", "model": "b", "seed": 1},
        "guard": {"kind": "vllm", "model": "c", "seed": 1, "more": 2},
    }


@pytest.mark.parametrize(
    ("merged", "expected"),
    [
        ("<<: [*big, *left, *small]", {"x": 0, "side": "left", "radius": 10}),
        ("<<: [*small, *left, *big]", {"x": 0, "side": "left", "radius": 1}),
        ("<<: [*big, *left, *small], x: 1", {"x": 1, "side": "left", "radius": 10}),
        ("x: 1, <<: *left", {"x": 1, "side": "left"}),
        ("<<: [*near, *small]", {"x": 3, "side": "left", "radius": 1}),
        ("<<: [*left, *near]", {"x": 0, "side": "left"}),
        ("<<: [*number, *text]", {1: "number", "1": "text"}),
    ],
)
def test_of_merged_mappings_the_earlier_wins(merged: str, expected: dict[str, Any]) -> None:
    """As https://yaml.org/type/merge.html says; and what stands in a mapping wins of all."""
    anchors = (
        "- &left {x: 0, side: left}\n"
        "- &big {radius: 10}\n"
        "- &small {radius: 1}\n"
        "- &near {<<: *left, x: 3}\n"
        "- &number {1: number}\n"
        "- &text {'1': text}\n"
    )
    assert parse_yaml(f"{anchors}- {{{merged}}}\n")[-1] == expected


@pytest.mark.parametrize(
    ("names", "words", "images", "hazards"),
    [
        (("main",), "main", "main", "main"),
        (("text", "vision", "guard", "other"), "text", "vision", "guard"),
        (("reader", "guard", "other"), "reader", "reader", "guard"),
        (("reader", "large", "other"), "reader", "reader", "reader"),
        (("reader", "vision", "other"), "reader", "vision", "reader"),
        (("text", "reader", "guard"), "text", "reader", "guard"),
    ],
)
def test_each_stage_has_an_engine(
    names: tuple[str, ...], words: str, images: str, hazards: str
) -> None:
    """The only one, the one that is named as it likes, or `reader`; it is written down."""
    data = _with("engines", {name: {"kind": "rules"} for name in names})
    config = parse_config(_with("stages.feedback.engine", names[-1], data), "c.yaml")
    asking = dict.fromkeys(("relevance", "extract"), words)
    asking |= dict.fromkeys(("roles", "screenshots"), images)
    asking |= {"safety": hazards, "feedback": names[-1]}
    asking |= dict.fromkeys(("collect", "threads", "download", "privacy", "splits"))
    assert {name: config.stages.get_engine(name) for name in asking} == asking
    later = _with("engines.more", {"kind": "rules"}, _written(config))
    assert parse_config(later, "c.yaml").stages == config.stages


@pytest.mark.parametrize(
    ("safety", "removed"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14]),
        ({"remove": "any"}, range(1, 15)),
        ({"remove": ["S8", "S1"]}, [8, 1]),
        ({"remove": []}, []),
    ],
)
def test_the_hazards_that_are_removed(safety: Any, removed: Iterable[int]) -> None:
    """All but S8 unless the config says otherwise; a run writes them down one by one."""
    config = _parsed("stages.safety", safety)
    codes = [f"S{number}" for number in removed]
    assert _written(config)["stages"]["safety"]["remove"] == codes
    given = (Hazard.UNKNOWN, Hazard.HATE, Hazard.NON_VIOLENT_CRIMES, Hazard.HATE)
    assert sort_hazards(iter(given)) == ["S2", "S10", "unknown"]


def test_prompt_fields_name_the_target() -> None:
    assert _parsed("target.aliases", ["lumen", "l-image"]).target.prompt_fields == {
        "target": "Lumen Image",
        "developer": "Northlight",
        "aliases": '"Lumen Image", "lumen", "l-image"',
        "others": "any other image model",
        "chat_window": "Lumen Image's own window",
    }


def test_a_saved_config_reads_as_it_was(file: Path, tmp_path: Path) -> None:
    references = [
        {"name": "a", "path": "a.csv", "column": "p", "inputs": 1},
        {"name": "b", "dataset": "o/b", "column": "p", "revision": "v1"},
    ]
    engine = {"kind": "openai", "model": "m", "max_tokens": 3, "eos_token": "a"}
    analysis = {"references": references, "embedding": {}, "task_engine": engine}
    data = _with("analysis", analysis, _with("engines.reader", engine))
    file.write_text(yaml.safe_dump(data), "utf-8")
    config = load_config(file)
    RunFolder(tmp_path).save_config(config)
    assert load_config(tmp_path / "config.yaml") == config


LICENSE = "expected a license_note, which says what the license covers"
PRINTABLE = "expected words without control or formatting characters"
AN_ENGINE = "expected no secret: a config is kept beside its results; put the secret into an "
# Where something is wrong, what stands there, and what is said of it.
REFUSED: list[tuple[str, Any, str]] = [
    ("nmae", "x", f"unknown key 'nmae'; did you mean 'name'? known: {TOP}"),
    ("target.realeased", 1, "unknown key in target 'realeased'; did you mean 'released'?"),
    ("stages.relevance.keeep", [4], "unknown key in stages.relevance 'keeep'; did you mean 'keep'"),
    ("analysis.embedding.modle", 1, "unknown key in analysis.embedding 'modle'; did you mean 'mod"),
    ("rights.twitter", "a", "rights: unknown platform 'twitter'; known: bluesky, discord, hackern"),
    ("rights.x", "", "rights.x is '': string should have at least 1 character"),
    ("target", {"name": "L"}, "target.developer and target.released are missing: fields required"),
    ("target.aliases", "lumen", "target.aliases is 'lumen': input should be a list"),
    ("posts.0.path", "a\x07", "posts.0.path is 'a\\x07': expected the name of a file"),
    ("engines.reader", {"model": "m"}, "engines.reader.kind is missing: field required"),
    *(
        (path, 3, f"{path} is 3: expected a mapping, such as {{key: value}}")
        for path in ("target", "posts.0", "engines", "engines.reader", "stages.safety", "rights")
    ),
    (
        "engines",
        {name: {"kind": "rules"} for name in ("text", "vision")},
        "stages.safety.engine: unknown engine 'reader'; known: text, vision",
    ),
    ("splits.cap", 0, "splits.cap is 0: input should be greater than or equal to 1"),
    *(("splits.cap", value, "input should be a valid integer") for value in (True, 1.0, "1")),
    ("stages.extract.engine", "raeder", "stages.extract.engine: unknown engine 'raeder'; did you"),
    ("runner", {"actors": 2}, "runner is {'actors': 2}: has 'actors', which only kind 'ray'"),
    ("runner", {"kind": "ray", "processes": 2}, "has 'processes', which only kind 'local'"),
    *(
        ("runner", {"kind": "ray", "address": value}, "expected auto, local, or HOST:PORT of a clu")
        for value in ("head", "ray://head:10001", "head:", "", "a b:1")
    ),
    ("release.license", "mit", f"release is {{'license': 'mit'}}: {LICENSE}"),
    ("release.contact", "a\x1b[31m", f"release.contact is 'a\\x1b[31m': {PRINTABLE}"),
    ("release.citation", "@{a\x00}", f"release.citation is '@{{a\\x00}}': {PRINTABLE}"),
    *(
        ("name", name, "expected at most 96 letters from a to z, digits, '.', '_' or '-', a letter")
        for name in ("../x", "..", "", "a/b", "a\n", "-a", "a" * 97, "a b", "ä")
    ),
    *(
        ("stages.safety.remove", value, f"is {value!r}: expected any, or a list of codes from S1")
        for value in ("S8", "all", None, 8, {"S8": 1}, ["S15"], ["unknown"], [[]])
    ),
    ("analysis.references", [{"name": "a"}], "expected either path"),
    ("analysis.references", [{"name": "a", "path": "a", "dataset": "b/c"}], "expected either path"),
    ("analysis.references", [{"name": "a", "dataset": "b/c", "column": "p"}], "with revision"),
    ("analysis.references", [{"name": "a", "path": "a.csv"}], "expected the column of 'a.csv'"),
    ("analysis.references", [{"name": "benchmark", "path": "a"}], "'benchmark' is taken"),
    ("analysis.references", [{"name": "a", "path": "a"}] * 2, "'a' is taken"),
    ("analysis.perplexity", {"window": 8, "stride": 8}, "expected a smaller stride"),
    *(
        (place, {"kind": "openai", **options}, AN_ENGINE)
        for place in ("engines.reader", "analysis.task_engine")
        for options in (
            *({key: "sk-hidden"} for key in ("api_key", "apikey", "key", "hf_token", "api-key")),
            {"headers": {"Authorization": "sk-hidden"}},
            {"base_url": "https://me:sk-hidden@example.org/v1"},
            {"extra": ["sk-hidden-abcdefghijkl"]},
        )
    ),
]


@pytest.mark.parametrize(("path", "value", "said"), REFUSED, ids=lambda one: ascii(one)[:30])
def test_what_is_wrong_is_named(path: str, value: Any, said: str) -> None:
    message = _refused(_with(path, value))
    assert said in message
    assert "hidden" not in message


def test_all_keys_that_are_missing_are_named_at_once() -> None:
    target = {"name": "L", "developer": "N"}
    told = "name, target.released and engines are missing: fields required"
    assert _refused({"target": target, "posts": LEAST["posts"]}) == told


def test_a_name_and_an_adapter_or_engine_are_a_system_or_judge() -> None:
    """What nobody said is said to be unknown, and none of the paper's."""
    data = _with("systems", [{"name": "mine", "adapter": "files"}])
    data["judges"] = [{"name": "ours", "engine": {"kind": "vllm", "model": "m"}}]
    config = parse_config(data, "here")
    told = [(one.developer, one.status, one.note) for one in (*config.systems, *config.judges)]
    assert told == [("unknown", "current", None)] * 2
    for key, given in (("systems", {"name": "mine"}), ("judges", {"engine": {"kind": "vllm"}})):
        lacks = {"systems": "systems.0.adapter", "judges": "judges.0.name"}[key]
        assert _refused(_with(key, [given])) == f"{lacks} is missing: field required"
    said = _refused(_with("systems", [{}]))
    assert said == "systems.0.name and systems.0.adapter are missing: fields required"


def test_a_missing_key_is_named_unless_another_is_misspelt() -> None:
    for key in ("engines", "name"):
        assert _refused(_without(key)) == f"{key} is missing: field required"
    assert _refused({**_without("name"), "nmae": "x"}).startswith("unknown key 'nmae'; did you")


# --- files ---


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a mapping with name, target and posts, got None"),
        ("- a\n- b\n", "expected a mapping with name, target and posts, got ['a', 'b']"),
        ("name: &a [*a]\n", "not valid YAML: a value cannot be read: Circular reference"),
        ("name: a\nname: b\n", "not valid YAML: line 1: key 'name' is given twice"),
        (
            f"a: 1\nname: 0x{'f' * 5000}\n",
            "not valid YAML: line 2: '0xffffffffffffffffff...' is an",
        ),
        ("a: 1\nt: {n: b, d: c, n: d}\n", "not valid YAML: line 2: key 'n' is given twice"),
        ("a: 1\n<<: [b]\n", "not valid YAML: line 2: << takes a mapping or a list of mappings"),
        *(
            (text, "not valid YAML: ")
            for text in (
                *("a: [1\n", "\tname: a\n", "a: 1\n---\nb: 2\n", "a: *nobody\n", "a: \x00\n"),
                *("? [a, b]\n: 1\n", "t: {r: 2026-02-30}\n", "a: !!timestamp soon\n"),
                *("[" * 1200, "a: !!python/name:os.system\n", f"a: {'9' * 5000}\n"),
            )
        ),
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_what_is_not_a_mapping_in_plain_yaml_is_refused(file: Path, text: str, said: str) -> None:
    file.write_text(text, "utf-8")
    assert _refused(file).startswith(f"{file}: {said}")


def test_a_tag_runs_nothing(file: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    file.write_text(f"a: !!python/object/apply:os.system ['touch {mark}']\n", "utf-8")
    assert _refused(file).startswith(f"{file}: not valid YAML: ")
    assert not mark.exists()


def test_what_is_no_text_file_is_named(file: Path, tmp_path: Path) -> None:
    absent = tmp_path / "none.yaml"
    example = "expected a YAML file, for example eval_configs/quickstart.yaml, or the folder of "
    assert _refused(absent) == f"no config {str(absent)!r}: {example}a run or of its release"
    assert _refused(tmp_path) == f"{str(tmp_path)!r} is no run: {example}a run or of its release"
    file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    assert _refused(file).startswith(f"cannot read config {str(file)!r} ('utf-8' codec can't")


# --- searches ---


def _searched(search: Any, **entry: Any) -> Any:
    return _with("posts", [{"source": "x", "search": search, **entry}])


def test_the_config_of_the_paper_has_its_terms() -> None:
    """Figure D.1 of the paper; its "40" is how text recognition reads "4o"."""
    config = load_config(ROOT / "eval_configs" / "paper.yaml")
    (entry,) = config.posts
    assert entry.search is not None
    first, second = entry.search.phases
    assert (entry.source, config.target.released) == ("x", datetime.date(2025, 3, 25))
    assert set(first.terms) == {"4o", "gpt", "gpt-4o", "openai", "chatgpt"}
    assert (first.window, first.length.days, first.days) == ("1d", 1, 14)
    assert set(second.terms) == {
        *("create image", "gpt image", "4o image", "prompt share", "gpt prompt", "4o prompt"),
        *("create image gpt", "image gen", "生成", "画像"),
    }
    assert (second.window, second.length.days) == ("7d", 7)


def test_phases_follow_each_other() -> None:
    phases = [{"days": 14}, {"until": "2026-06-30"}, {"start": "2026-03-02"}]
    search = parse_config(_searched({"phases": [{**PHASE, **one} for one in phases]}), "c.yaml")
    assert search.posts[0].search is not None
    assert phase_dates(search.posts[0].search.phases, RELEASED) == [
        DateRange(RELEASED, datetime.date(2026, 3, 16)),
        DateRange(datetime.date(2026, 3, 16), datetime.date(2026, 6, 30)),
        DateRange(RELEASED, None),
    ]


SEARCHES: list[tuple[Any, dict[str, Any], str]] = [
    ({"phases": [{**PHASE, "window": "1w"}]}, {}, "window is '1w': expected a number of days from"),
    ({"phases": [{**PHASE, "window": "0d"}]}, {}, "such as 1d or 7d"),
    ({"phases": [{**PHASE, "terms": ["a", "a"]}]}, {}, "'a' is there twice"),
    ({"phases": [{**PHASE, "languages": ["Japanese"]}]}, {}, "two letters of ISO 639-1"),
    ({"phases": [{**PHASE, "days": 2, "until": "2026-04-01"}]}, {}, "expected one of them"),
    ({"phases": [{**PHASE, "until": "2026-03-02"}]}, {}, "expected a day after its start, 2026-03"),
    ({"phases": [PHASE, PHASE]}, {}, "phases.1 begins where the phase before ends"),
    ({"phases": [{**PHASE, "untl": 1}]}, {}, "key in posts.0.search.phases.0 'untl'; did you mean"),
    ({"phases": [{**PHASE, "days": 10**7}]}, {}, "phases.0.days is 10000000: input should be"),
    ({"phases": [PHASE]}, {"source": "blusky"}, "unknown platform 'blusky'; did you mean 'bluesky"),
    ({"phases": [PHASE]}, {"path": "a.jsonl"}, "has path and search: expected a file, or a platfo"),
    ({"phases": [PHASE]}, {"keywords": ["a"]}, "has keywords and search"),
]


@pytest.mark.parametrize(("search", "entry", "said"), SEARCHES, ids=str)
def test_a_mistake_in_a_search_is_named(search: Any, entry: dict[str, Any], said: str) -> None:
    message = _refused(_searched(search, **entry))
    assert said in message
    assert "posts.0" in message


def test_a_platform_has_one_search() -> None:
    entry = {"source": "x", "search": {"phases": [PHASE]}}
    assert _refused(_with("posts", [entry, entry])).startswith("posts.1: 'x' is searched twice")


def test_another_runner_is_named_beside_a_config() -> None:
    config = parse_config({**LEAST, "runner": {"kind": "ray", "actors": 2}}, "here")
    assert config.run_by(None) is config.run_by("ray") is config
    local = config.run_by("local")
    assert local == parse_config(LEAST, "here") != config
    assert (local.run_by("ray").runner.kind, local.run_by("ray").runner.actors) == ("ray", 8)
    with pytest.raises(ConfigError, match=r"^unknown runner 'rya'; did you mean 'ray'\?"):
        config.run_by("rya")


def test_a_config_that_builds_nothing_says_so() -> None:
    with pytest.raises(ConfigError, match=r"^c\.yaml compares systems .*: expected"):
        parse_config({"name": "a", "benchmark": "runs/a/release", "systems": []}, "c.yaml")
