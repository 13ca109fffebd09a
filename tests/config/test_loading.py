"""The one file that describes a benchmark: what is read, and what is refused in which words."""

from __future__ import annotations

import datetime
import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from echo_hf.builder.build import run_until
from echo_hf.builder.steps import STAGES
from echo_hf.config.collection import Span
from echo_hf.config.collection import phase_spans as spans
from echo_hf.config.loading import Config, load_config, parse_config
from echo_hf.config.sections import NAMED, REMOVED, Hazard, in_order
from echo_hf.errors import ConfigError, EchoError
from echo_hf.pipeline.run_folder import RunFolder
from tests.stages_for_tests import ROOT

LEAST: dict[str, Any] = {
    "name": "lumen-2026-03",
    "target": {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"},
    "posts": [{"source": "jsonl", "path": "posts.jsonl"}],
    "engines": {"reader": {"kind": "rules"}},
}
TOP = (
    "analysis, applicability, engines, judges, metrics, name, posts, protocol, release, rights, "
    "splits, stages, systems, target"
)


def _with(path: str, value: Any, data: Any = None) -> Any:
    data = LEAST if data is None else data
    if not path:
        return value
    first, _, rest = path.partition(".")
    if isinstance(data, list):
        return [_with(rest, value, one) if at == int(first) else one for at, one in enumerate(data)]
    return {**data, first: _with(rest, value, data.get(first, {}))}


def _bomb(form: str) -> str:
    """Ten names for ten times what the one before is: 10**9 values in a few lines."""
    lines = (f"x{at}: &x{at} {form.format(', '.join([f'*x{at - 1}'] * 10))}" for at in range(1, 10))
    return "\n".join(["x0: &x0 {a: 1}", *lines, ""])


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in LEAST.items() if name != key}


def _refused(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    return message


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.yaml"


class TestReading:
    def test_the_least_config_has_all_defaults(self, file: Path) -> None:
        file.write_text(yaml.safe_dump(LEAST), "utf-8")
        config = load_config(file)
        assert config.target.released == datetime.date(2026, 3, 2)
        assert {name: choice.kind for name, choice in config.engines.items()} == {"reader": "rules"}
        assert (config.stages.relevance.engine, config.stages.relevance.keep) == ("reader", (4, 5))
        assert (config.splits.seed, config.splits.cap) == (0, 1000)
        assert config.protocol == "corrected"
        assert config.rights == {}

    def test_a_right_is_stated_by_platform(self) -> None:
        config = parse_config(_with("rights", {"x": f" by contract {'x' * 900} "}), "c.yaml")
        assert config.rights == {"x": f"by contract {'x' * 900}"}

    @pytest.mark.parametrize("path", sorted((ROOT / "eval_configs").glob("*.yaml")), ids=str)
    def test_the_configs_that_come_along_can_be_read(self, path: Path) -> None:
        assert load_config(path).name

    def test_paths_are_relative_to_the_config(self, file: Path, tmp_path: Path) -> None:
        more = [{"source": "jsonl", "path": "/data/x.jsonl"}, {"source": "quickstart"}]
        file.write_text(yaml.safe_dump({**LEAST, "posts": [*LEAST["posts"], *more]}), "utf-8")
        paths = [entry.path for entry in load_config(file).posts]
        assert paths == [tmp_path / "posts.jsonl", Path("/data/x.jsonl"), None]

    def test_a_relative_config_gives_absolute_paths(
        self, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text(yaml.safe_dump(LEAST), "utf-8")
        monkeypatch.chdir(tmp_path)
        assert load_config("c.yaml").posts[0].path == tmp_path.resolve() / "posts.jsonl"

    def test_engine_options_are_passed_on(self) -> None:
        choice = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-32B-Instruct", "max_num_seqs": 64}
        config = parse_config(_with("engines.reader", choice), "c.yaml")
        assert config.engines["reader"].kind == "vllm"
        assert config.engines["reader"].options == {
            "model": "Qwen/Qwen2.5-VL-32B-Instruct",
            "max_num_seqs": 64,
        }

    def test_anchors_and_merge_keys_work(self, file: Path) -> None:
        file.write_text(
            yaml.safe_dump(_without("engines"))
            + "engines:\n"
            + "  text: &shared {kind: vllm, model: a, seed: 1}\n"
            + "  vision: {<<: *shared, model: b}\n"
            + "  guard: {model: c, <<: [*shared, {kind: openai, more: 2}]}\n",
            "utf-8",
        )
        engines = load_config(file).engines
        said = {name: {"kind": one.kind, **one.options} for name, one in engines.items()}
        assert said == {
            "text": {"kind": "vllm", "model": "a", "seed": 1},
            "vision": {"kind": "vllm", "model": "b", "seed": 1},
            "guard": {"kind": "vllm", "model": "c", "seed": 1, "more": 2},
        }

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
    def test_names_in_any_script_are_read(self, file: Path, encoding: str) -> None:
        """The file is UTF-8, with or without the mark that some editors put first."""
        text = yaml.safe_dump(_with("target.aliases", ["画像", "ü"]), allow_unicode=True)
        file.write_text(text, encoding)
        assert load_config(file).target.aliases == ("画像", "ü")

    def test_the_only_engine_answers_every_stage(self, file: Path) -> None:
        data = _with("engines", {"main": {"kind": "rules"}}, _with("stages.roles", {}))
        file.write_text(yaml.safe_dump(_with("stages.relevance.keep", [5], data)), "utf-8")
        stages = load_config(file).stages

        assert {name: stages.engine_of(name) for name, _ in stages} == dict.fromkeys(
            ("download", "privacy")
        ) | (
            dict.fromkeys(
                ("relevance", "extract", "roles", "screenshots", "safety", "feedback"), "main"
            )
        )
        assert (stages.relevance.keep, stages.roles.most_pictures) == ((5,), 16)

    @pytest.mark.parametrize(
        ("names", "words", "images", "hazards"),
        [
            (("text", "vision", "guard"), "text", "vision", "guard"),
            (("reader", "guard"), "reader", "reader", "guard"),
            (("reader", "large"), "reader", "reader", "reader"),
            (("reader", "vision"), "reader", "vision", "reader"),
            (("text", "reader", "guard"), "text", "reader", "guard"),
        ],
    )
    def test_of_several_engines_each_stage_has_its_own(
        self, names: tuple[str, ...], words: str, images: str, hazards: str
    ) -> None:
        engines = {name: {"kind": "rules"} for name in (*names, "other")}
        data = _with("stages.feedback.engine", "other", _with("engines", engines))
        stages = parse_config(data, "c.yaml").stages

        assert {name: stages.engine_of(name) for name in STAGES} == {
            "collect": None,
            "relevance": words,
            "threads": None,
            "download": None,
            "extract": words,
            "roles": images,
            "screenshots": images,
            "feedback": "other",
            "safety": hazards,
            "privacy": None,
            "splits": None,
        }

    def test_the_only_engine_is_written_down(self) -> None:
        config = parse_config(_with("engines", {"main": {"kind": "rules"}}), "c.yaml")
        data = yaml.safe_load(yaml.safe_dump(config.model_dump(mode="json")))
        later = parse_config(_with("engines.more", {"kind": "rules"}, data), "c.yaml")

        assert later.stages == config.stages

    @pytest.mark.parametrize(
        ("safety", "removed"),
        [
            ({}, [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14]),
            ({"remove": "any"}, range(1, 15)),
            ({"remove": ["S8", "S1"]}, [8, 1]),
            ({"remove": []}, []),
        ],
    )
    def test_the_hazards_that_are_removed(self, safety: Any, removed: Iterable[int]) -> None:
        """All but S8 unless the config says otherwise; a run writes them down one by one."""
        config = parse_config(_with("stages.safety", safety), "c.yaml")
        codes = [f"S{number}" for number in removed]
        assert [str(one) for one in config.stages.safety.remove] == codes
        written = yaml.safe_load(yaml.safe_dump(config.model_dump(mode="json")))
        assert written["stages"]["safety"]["remove"] == codes
        assert parse_config(written, "c.yaml") == config

    @pytest.mark.parametrize("value", ["S8", "all", None, 8, {"S8": 1}, ["S15"], ["unknown"], [[]]])
    def test_what_is_no_hazard_is_not_removed(self, value: object) -> None:
        with pytest.raises(ConfigError) as caught:
            parse_config(_with("stages.safety.remove", value), "c.yaml")
        assert str(caught.value) == (
            f"c.yaml: stages.safety.remove is {value!r}: expected any, or a list of codes from S1 "
            "to S14"
        )

    def test_prompt_fields_name_the_target(self) -> None:
        data = _with("target.aliases", ["lumen", "l-image"])
        assert parse_config(data, "c.yaml").target.prompt_fields == {
            "target": "Lumen Image",
            "developer": "Northlight",
            "aliases": '"Lumen Image", "lumen", "l-image"',
            "others": "any other image model",
            "chat_window": "Lumen Image's own window",
        }

    @pytest.mark.parametrize(
        ("section", "field"), [("", "name"), ("target", "name"), ("splits", "cap"), ("stages", "x")]
    )
    def test_a_config_cannot_be_changed(self, section: str, field: str) -> None:
        config = parse_config(LEAST, "c.yaml")
        with pytest.raises(ValidationError, match="frozen"):
            setattr(getattr(config, section) if section else config, field, "other")

    def test_a_release_says_its_licence_contact_and_citation(self, file: Path) -> None:
        file.write_text(
            yaml.safe_dump(LEAST) + "release:\n  license: cc-by-4.0\n  license_note: |\n"
            "    Ours alone.\n\n    Posts are not.\n  contact: posts@example.org\n",
            "utf-8",
        )
        said = load_config(file).release
        assert said.license_note == "Ours alone.\n\nPosts are not."
        assert (said.license, said.contact) == ("cc-by-4.0", "posts@example.org")
        assert (said.license_name, said.citation) == (None, None)

    def test_a_config_reads_back_from_its_own_dump(self) -> None:
        data = _with("engines.reader", {"kind": "vllm", "model": "m"})
        config = parse_config(data, "c.yaml")
        assert parse_config(
            yaml.safe_load(yaml.safe_dump(config.model_dump(mode="json"))), "c"
        ) == (config)


# Where something is wrong, and the whole message after the file's name.
REFUSED = {
    "nmae": ("x", f"unknown key 'nmae'; did you mean 'name'? known: {TOP}"),
    "zzz": (1, f"unknown key 'zzz'; known: {TOP}"),
    "target.realeased": (
        1,
        "unknown key in target 'realeased'; did you mean 'released'? known: aliases, chat_window, "
        "developer, name, others, released",
    ),
    "posts.0.pth": (
        1,
        "unknown key in posts.0 'pth'; did you mean 'path'? known: columns, keywords, path, "
        "search, source",
    ),
    "stages.relevence": (
        {},
        "unknown key in stages 'relevence'; did you mean 'relevance'? known: download, "
        "extract, feedback, privacy, relevance, roles, safety, screenshots",
    ),
    "stages.relevance.keeep": (
        [4],
        "unknown key in stages.relevance 'keeep'; did you mean 'keep'? known: engine, keep",
    ),
    "rights.twitter": (
        "by contract",
        "rights: unknown platform 'twitter'; known: bluesky, discord, hackernews, mastodon, reddit,"
        " web, x",
    ),
    "rights.x": ("", "rights.x is '': string should have at least 1 character"),
    "splits.cpa": (1, "unknown key in splits 'cpa'; did you mean 'cap'? known: cap, seed"),
    "splits.cap": (0, "splits.cap is 0: input should be greater than or equal to 1"),
    "splits.seed": ("zero", "splits.seed is 'zero': input should be a valid integer"),
    "stages.relevance.keep": (
        [6],
        "stages.relevance.keep.0 is 6: input should be less than or equal to 5",
    ),
    "stages.extract.context_characters": (
        10,
        "stages.extract.context_characters is 10: input should be greater than or equal to 2000",
    ),
    "stages.roles.most_pictures": (
        33,
        "stages.roles.most_pictures is 33: input should be less than or equal to 32",
    ),
    "stages.screenshots.convention": (
        "pixels",
        "stages.screenshots.convention is 'pixels': input should be 'auto', 'abs_resized', "
        "'rel_1000', 'rel_1' or 'rel_1000_yx'",
    ),
    "stages.screenshots.inset": (
        -1,
        "stages.screenshots.inset is -1: input should be greater than or equal to 0",
    ),
    "stages.safety.form": (
        "llama-guard",
        "stages.safety.form is 'llama-guard': input should be 'auto', 'llama_guard', 'moderation' "
        "or 'instructed'",
    ),
    "stages.safety.remove": (
        "S8",
        "stages.safety.remove is 'S8': expected any, or a list of codes from S1 to S14",
    ),
    "stages.safety.most_pictures": (
        0,
        "stages.safety.most_pictures is 0: input should be greater than or equal to 1",
    ),
    "stages.feedback.most_pictures": (
        8,
        "unknown key in stages.feedback 'most_pictures'; known: engine",
    ),
    "protocol": ("publshed", "protocol is 'publshed': input should be 'published' or 'corrected'"),
    "name": (
        "../x",
        "name is '../x': expected at most 96 letters from a to z, digits, '.', '_' or '-', a "
        "letter or digit first: it names a folder and a tag",
    ),
    "target.name": ("  ", "target.name is '  ': string should have at least 1 character"),
    "target.aliases": ("lumen", "target.aliases is 'lumen': input should be a list"),
    "target.released": (["soon"], "target.released is ['soon']: input should be a valid date"),
    "posts": ([], "posts is []: list should have at least 1 item after validation, not 0"),
    "engines": ([], "engines is []: expected a mapping, for example {reader: {kind: rules}}"),
    "target": (
        "Zeph",
        "target is 'Zeph': expected a mapping, for example {name: Lumen Image, developer: "
        "Northlight, released: 2026-03-02}",
    ),
    "posts.0": (
        "a.jsonl",
        "posts.0 is 'a.jsonl': expected a mapping, for example {source: jsonl, path: posts.jsonl}",
    ),
    "engines.reader": ({"model": "m"}, "engines.reader.kind is missing: field required"),
    "stages.extract.engine": (
        "raeder",
        "stages.extract.engine: unknown engine 'raeder'; did you mean 'reader'? known: reader",
    ),
    "release.licence": (
        "mit",
        "unknown key in release 'licence'; did you mean 'license'? known: citation, contact, "
        "license, license_name, license_note",
    ),
    "release.license": (
        "cc-by-4.0",
        "release is {'license': 'cc-by-4.0'}: expected a license_note, which says what the license "
        "covers",
    ),
    "release.contact": (
        "a@b.example\x1b[31m",
        "release.contact is 'a@b.example\\x1b[31m': expected words without control or formatting "
        "characters",
    ),
    "release.citation": (
        "@misc{a\x00}",
        "release.citation is '@misc{a\\x00}': expected words without control or formatting "
        "characters",
    ),
}


SECTIONS = (
    "target",
    "posts.0",
    "engines",
    "engines.reader",
    "stages",
    "splits",
    "release",
    "rights",
)
STAGES_WITH_OPTIONS = ("relevance", "extract", "roles", "screenshots", "safety", "feedback")


class TestRefusing:
    @pytest.mark.parametrize("path", REFUSED)
    def test_what_is_wrong_is_named(self, file: Path, path: str) -> None:
        value, message = REFUSED[path]
        file.write_text(yaml.safe_dump(_with(path, value)), "utf-8")
        assert _refused(file) == f"{file}: {message}"

    @pytest.mark.parametrize("value", ["rules", 3, None, [1]])
    @pytest.mark.parametrize("path", [*SECTIONS, *(f"stages.{n}" for n in STAGES_WITH_OPTIONS)])
    def test_a_section_is_shown_by_an_example_that_works(self, path: str, value: object) -> None:
        with pytest.raises(ConfigError) as caught:
            parse_config(_with(path, value), "c.yaml")
        told, _, example = str(caught.value).partition(": expected a mapping, for example ")
        assert told == f"c.yaml: {path} is {value!r}"
        assert parse_config(_with(path, yaml.safe_load(example)), "c.yaml").name == LEAST["name"]

    @pytest.mark.parametrize("key", sorted(LEAST))
    def test_a_missing_key_is_named(self, file: Path, key: str) -> None:
        file.write_text(yaml.safe_dump(_without(key)), "utf-8")
        expected = {"engines": "kind", "posts": "source", "target": "developer"}
        said = _refused(file)
        assert said.startswith(f"{file}: {key} is missing: ")
        assert expected.get(key, "required") in said

    def test_a_misspelt_key_is_not_told_as_a_missing_one(self, file: Path) -> None:
        file.write_text(yaml.safe_dump({**_without("name"), "nmae": "x"}), "utf-8")
        assert _refused(file) == f"{file}: {REFUSED['nmae'][1]}"

    def test_a_missing_key_inside_is_named(self, file: Path) -> None:
        file.write_text(yaml.safe_dump(_with("target", {"name": "Lumen"})), "utf-8")
        assert _refused(file) == f"{file}: target.developer is missing: field required"

    def test_a_stage_needs_an_engine_that_is_there(self, file: Path) -> None:
        for names, message in {
            ("main", "vision"): "stages.relevance.engine: unknown engine 'reader'",
            ("text", "guard"): "stages.roles.engine: unknown engine 'reader'",
            ("text", "vision"): "stages.safety.engine: unknown engine 'reader'",
        }.items():
            engines = {name: {"kind": "rules"} for name in names}
            file.write_text(yaml.safe_dump(_with("engines", engines)), "utf-8")
            assert _refused(file) == f"{file}: {message}; known: {', '.join(sorted(names))}"

    @pytest.mark.parametrize("value", [True, 1.0, "1"])
    def test_a_number_is_written_as_a_number(self, value: object) -> None:
        with pytest.raises(
            ConfigError, match=r"splits\.cap is .*: input should be a valid integer"
        ):
            parse_config(_with("splits.cap", value), "c.yaml")

    @pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\n", "-a", "a" * 97, "a b", "ä"])
    def test_a_name_is_a_folder_and_a_tag(self, name: str) -> None:
        with pytest.raises(ConfigError, match="name is"):
            parse_config(_with("name", name), "c.yaml")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "expected a mapping with name, target and posts, got None"),
            ("- a\n- b\n", "expected a mapping with name, target and posts, got ['a', 'b']"),
            ("name: a\nname: b\n", "not valid YAML: line 1: key 'name' is given twice"),
            (
                "name: a\ntarget: {name: b, developer: c, name: d}\n",
                "not valid YAML: line 2: key 'name' is given twice",
            ),
            (
                "posts:\n- {source: a, source: b}\n",
                "not valid YAML: line 2: key 'source' is given twice",
            ),
            (
                "target: {released: 2026-02-30}\n",
                "not valid YAML: line 1: '2026-02-30' is not a timestamp",
            ),
        ],
    )
    def test_yaml_that_says_something_else_is_refused(
        self, file: Path, text: str, message: str
    ) -> None:
        file.write_text(text, "utf-8")
        assert _refused(file) == f"{file}: {message}"

    @pytest.mark.parametrize(
        "text",
        [
            "a: [1\n",
            "a: b: c\n",
            "\tname: a\n",
            "a: 1\n---\nb: 2\n",
            "a: *nobody\n",
            "a: &a [*a]\nb: {<<: 3}\n",
            "? [a, b]\n: 1\n",
            "? {a: b}\n: 1\n",
            "=: 1\n",
            "a: !!int many\n",
            "a: !!timestamp soon\n",
            "a: !!float much\n",
            "a: \x00\n",
            "[" * 5000,
            "a: !!python/object/apply:os.system ['true']\n",
            "a: !!python/name:os.system\n",
            "!!python/object/new:tuple [[1]]\n",
            "a: !!bool foo\n",
            'a: !!int ""\n',
            'a: !!float ""\n',
            "a: !!map [1]\n",
            "a: !!set {b}\n",
            "a: !!binary aGk=\n",
            "a: !!binary /w==\n",
            "a: [!!pairs [b: c], !!omap [b: c]]\n",
            f"a: {'9' * 5000}\n",
            f"a: 0x{'9' * 5000}\n",
            f"a: 0b1{'0' * 63}\n",
            f"a: {'1:' * 4000}1\n",
            'a: "\\ud800"\n',
            _bomb("[{}]"),
            _bomb("{{<<: [{}]}}"),
        ],
        ids=lambda text: ascii(text[:30]),
    )
    def test_what_is_not_plain_yaml_is_refused(self, file: Path, text: str) -> None:
        file.write_text(text, "utf-8")
        assert _refused(file).startswith(f"{file}: not valid YAML: ")

    def test_a_large_file_is_refused_before_it_is_parsed(self, file: Path) -> None:
        file.write_text("[" * 30_000_000, "utf-8")
        assert _refused(file) == (
            f"config {str(file)!r} has more than 1,000,000 bytes: expected a YAML file, such as "
            "eval_configs/quickstart.yaml"
        )

    @pytest.mark.parametrize("key", ["config", "posts", "systems", "judges"])
    def test_a_link_to_itself_is_named(self, file: Path, tmp_path: Path, key: str) -> None:
        loop = tmp_path / "loop"
        loop.symlink_to(loop)
        given = [{"source": "jsonl", "path": "loop"}] if key == "posts" else ["loop"]
        file.write_text(yaml.safe_dump({**LEAST, key: given}), "utf-8")
        with pytest.raises(EchoError, match=f"cannot read.*{loop}") as caught:
            run_until(loop if key == "config" else file, "collect", runs=tmp_path)
        assert len(str(caught.value).splitlines()) == 1

    def test_a_tag_runs_nothing(self, file: Path, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        file.write_text(f"a: !!python/object/apply:os.system ['touch {mark}']\n", "utf-8")
        _refused(file)
        assert not mark.exists()

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "none.yaml"
        assert _refused(path) == (
            f"no config {str(path)!r}: expected a YAML file, for example "
            "eval_configs/quickstart.yaml"
        )

    def test_a_folder_is_no_config(self, tmp_path: Path) -> None:
        assert _refused(tmp_path).startswith(f"config {str(tmp_path)!r} is not a regular file: ")

    def test_a_binary_file_is_no_config(self, file: Path) -> None:
        file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
        assert _refused(file).startswith(f"cannot read config {str(file)!r}: 'utf-8' codec can't")

    def test_a_long_file_makes_no_long_message(self, file: Path) -> None:
        file.write_text("all the posts of a day, in one line " * 5000, "utf-8")
        assert "got 'all the posts" in _refused(file)

    @given(st.dictionaries(st.sampled_from([*LEAST, "splits", "a"]), st.integers() | st.text()))
    @settings(suppress_health_check=[HealthCheck.too_slow])
    def test_no_mapping_breaks_the_reading(self, data: dict[str, Any]) -> None:
        try:
            assert isinstance(parse_config(data, "c.yaml"), Config)
        except ConfigError as error:
            assert str(error).splitlines() == [str(error)]  # noqa: PT017 - both are right


@pytest.mark.parametrize(
    "key", ["api_key", "apikey", "key", "hf_token", "Authorization", "api-key"]
)
def test_a_secret_is_refused_and_not_repeated(key: str) -> None:
    data = {
        "name": "a",
        "target": {"name": "A", "developer": "B", "released": "2026-01-01"},
        "posts": [{"source": "quickstart"}],
        "engines": {"text": {"kind": "rules", key: "sk-very-secret"}},
    }

    with pytest.raises(ConfigError, match="environment variable") as raised:
        parse_config(data, "c.yaml")
    assert "sk-very-secret" not in str(raised.value)


def test_a_limit_in_tokens_is_no_secret() -> None:
    data = {
        "name": "a",
        "target": {"name": "A", "developer": "B", "released": "2026-01-01"},
        "posts": [{"source": "quickstart"}],
        "engines": {"text": {"kind": "rules", "max_tokens": 3, "eos_token": "a"}},
    }

    assert parse_config(data, "c.yaml").engines["text"].options == {
        "max_tokens": 3,
        "eos_token": "a",
    }


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"Authorization": "sk-hidden"}},
        {"base_url": "https://me:sk-hidden@example.org/v1"},
    ],
)
def test_a_secret_inside_an_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="environment variable") as raised:
        parse_config(_with("engines.reader", {"kind": "rules", **options}), "c.yaml")
    assert "sk-hidden" not in str(raised.value)


def test_nobody_answers_unless_named() -> None:
    with pytest.raises(ConfigError, match=r"c.yaml: engines is missing: .*kind: rules"):
        parse_config(_without("engines"), "c.yaml")


BASE = """
name: some
target: {name: Lumen Image, developer: Northlight, released: 2026-03-02}
posts: [{source: quickstart}]
engines: {text: {kind: rules}}
"""


def _written(folder: Path, analysis: object) -> Path:
    file = folder / "config.yaml"
    file.write_text(BASE + yaml.safe_dump({"analysis": analysis}), "utf-8")
    return file


def test_files_are_relative_to_the_config(tmp_path: Path) -> None:
    section = {
        "references": [{"name": "a", "path": "a.txt"}, {"name": "b", "path": ["b.txt", "/c.txt"]}],
        "font": "cjk.otf",
        "perplexity": {},
        "embedding": {"model": "encoder"},
    }
    (tmp_path / "encoder").mkdir()
    options = load_config(_written(tmp_path, section)).analysis
    assert [one.path for one in options.references] == [
        (tmp_path / "a.txt",),
        (tmp_path / "b.txt", Path("/c.txt")),
    ]
    assert options.font == tmp_path / "cjk.otf"
    assert options.embedding is not None
    assert options.embedding.model == str(tmp_path / "encoder")
    assert options.perplexity is not None
    assert options.perplexity.model == "EleutherAI/pythia-12b"


def test_nothing_has_to_be_said(tmp_path: Path) -> None:
    options = load_config(_written(tmp_path, {})).analysis
    assert (options.references, options.perplexity, options.embedding) == ((), None, None)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"referenecs": []}, "did you mean 'references'"),
        ({"references": [{"name": "a"}]}, "expected either path"),
        ({"references": [{"name": "a", "path": "a", "dataset": "b/c"}]}, "expected either path"),
        ({"references": [{"name": "a", "dataset": "b/c", "column": "p"}]}, "expected revision"),
        ({"references": [{"name": "a", "path": "a.csv"}]}, "expected the column of 'a.csv'"),
        ({"references": [{"name": "benchmark", "path": "a"}]}, "expected another name"),
        ({"references": [{"name": "a", "path": "a"}] * 2}, "two are called 'a'"),
        ({"perplexity": {"window": 8, "stride": 8}}, "expected a smaller stride"),
        ({"similarity": 0}, "greater than 0"),
        ({"task_engine": {"kind": "openai", "api_key": "sk-1"}}, "expected no secret"),
        ({"embedding": {"modle": "x"}}, "did you mean 'model'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, section: object, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(_written(tmp_path, section))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_saved_config_reads_as_it_was(tmp_path: Path) -> None:
    references = [
        {"name": "a", "path": "a.csv", "column": "p", "inputs": 1},
        {"name": "b", "dataset": "o/b", "column": "p", "revision": "v1"},
    ]
    engine = {"kind": "openai", "model": "m"}
    section = {"references": references, "embedding": {}, "task_engine": engine}
    config = load_config(_written(tmp_path, section))
    RunFolder(tmp_path).save_config(config)
    assert load_config(tmp_path / "config.yaml") == config


ROOT = Path(__file__).resolve().parent.parent.parent
RELEASED = datetime.date(2025, 3, 25)
PHASE = {"window": "1d", "terms": ["a"]}
# Figure D.1 of the paper; its "40" is how text recognition reads "4o".
BROAD = {"4o", "gpt", "gpt-4o", "openai", "chatgpt"}
NARROW = {
    "create image",
    "gpt image",
    "4o image",
    "prompt share",
    "gpt prompt",
    "4o prompt",
    "create image gpt",
    "image gen",
    "生成",
    "画像",
}


def parsed(search: Any, **entry: Any) -> Any:
    config = parse_config(
        {
            "name": "c",
            "target": {"name": "A", "developer": "B", "released": RELEASED},
            "posts": [{"source": "x", "search": search, **entry}],
            "engines": {"text": {"kind": "rules"}},
        },
        "c.yaml",
    )
    return config.posts[0].search


def test_the_config_of_the_paper_has_its_terms() -> None:
    config = load_config(ROOT / "eval_configs" / "gpt4o_release.yaml")
    (entry,) = config.posts
    assert entry.search is not None
    first, second = entry.search.phases

    assert (entry.source, config.target.released) == ("x", RELEASED)
    assert (set(first.terms), first.window, first.days) == (BROAD, "1d", 14)
    assert (set(second.terms), second.window) == (NARROW, "7d")


def test_the_config_of_a_current_model_asks_two_platforms_in_several_languages() -> None:
    config = load_config(ROOT / "eval_configs" / "nano_banana_2_1_release.yaml")
    found = {entry.source: entry.search for entry in config.posts}

    assert set(found) == {"bluesky", "x"}
    assert all(search and len(search.phases) == 2 for search in found.values())
    assert any(not term.isascii() for one in found.values() if one for term in one.phases[0].terms)
    assert {code for s in found.values() if s for p in s.phases for code in p.languages} > {"ja"}


def test_phases_follow_each_other() -> None:
    search = parsed(
        {
            "phases": [
                {**PHASE, "days": 14},
                {**PHASE, "until": "2025-06-30"},
                {**PHASE, "start": "2025-03-25"},
            ]
        }
    )

    assert spans(search.phases, RELEASED) == [
        Span(RELEASED, datetime.date(2025, 4, 8)),
        Span(datetime.date(2025, 4, 8), datetime.date(2025, 6, 30)),
        Span(RELEASED, None),
    ]


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"phases": []}, "at least 1 item"),
        ({"phases": [{"window": "1d"}]}, "terms is missing"),
        ({"phases": [{"terms": ["a"]}]}, "window is missing"),
        ({"phases": [{**PHASE, "window": "1w"}]}, "window is '1w': expected a number of days"),
        ({"phases": [{**PHASE, "window": "0d"}]}, "such as 1d or 7d"),
        ({"phases": [{**PHASE, "terms": ["a", "a"]}]}, "'a' is there twice"),
        ({"phases": [{**PHASE, "languages": ["Japanese"]}]}, "two letters of ISO 639-1"),
        ({"phases": [{**PHASE, "days": 2, "until": "2025-04-01"}]}, "expected one of them"),
        ({"phases": [{**PHASE, "until": "2025-03-25"}]}, "expected a day after its start, 2025-03"),
        ({"phases": [PHASE, PHASE]}, "phases.1 begins where the phase before ends"),
        ({"phases": [{**PHASE, "untl": 1}]}, "unknown key in posts.0.search.phases.0 'untl'; did"),
        ({"phases": [PHASE], "budgt": {}}, "did you mean 'budget'?"),
        ({"phases": [PHASE], "budget": {"usd": 0}}, "greater than 0"),
        ({"phases": [PHASE], "budget": {"usd": float("inf")}}, "finite"),
        ({"phases": [PHASE], "expand": {"rounds": -1}}, "greater than or equal to 0"),
        ({"phases": [{**PHASE, "days": 10**10}]}, "phases.0.days is 10000000000: expected"),
        ({"phases": [{**PHASE, "days": 10**7}]}, "phases.0.days is 10000000: expected"),
        ({"phases": [PHASE], "token": "abc"}, "unknown key in posts.0.search 'token'"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(search: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(search)

    assert said in str(caught.value)
    assert str(caught.value).startswith("c.yaml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"source": "blusky"}, "unknown platform 'blusky'; did you mean 'bluesky'?"),
        ({"source": "jsonl"}, "unknown platform 'jsonl'"),
        ({"path": "posts.jsonl"}, "has path and search: expected a file, or a platform"),
        ({"keywords": ["a"]}, "has keywords and search"),
    ],
    ids=str,
)
def test_a_platform_is_named_and_no_file(entry: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=r"posts\.0") as caught:
        parsed({"phases": [PHASE]}, **entry)

    assert said in str(caught.value)


def test_a_platform_has_one_search() -> None:
    entry = {"source": "x", "search": {"phases": [PHASE]}}
    data = yaml.safe_load((ROOT / "eval_configs" / "gpt4o_release.yaml").read_text("utf-8"))
    with pytest.raises(ConfigError, match=r"posts.1: 'x' is searched twice"):
        parse_config({**data, "posts": [entry, entry]}, "c.yaml")


def test_the_codes_are_those_of_llama_guard() -> None:
    """S1 to S14, in their order, and one more for what has no code."""
    assert [str(one) for one in Hazard] == [*(f"S{number}" for number in range(1, 15)), "unknown"]
    assert [*NAMED, Hazard.UNKNOWN] == [*Hazard]


def test_all_but_intellectual_property_are_removed() -> None:
    assert set(NAMED) - set(REMOVED) == {Hazard("S8")}
    assert Hazard("S8").meaning == "intellectual property"


@pytest.mark.parametrize("hazard", Hazard)
def test_a_code_is_read_back_with_its_name(hazard: Hazard) -> None:
    assert Hazard(hazard.value) is hazard
    assert pickle.loads(pickle.dumps(hazard)) is hazard  # noqa: S301 - our own bytes
    assert json.dumps(hazard) == f'"{hazard}"'
    assert hazard.meaning.strip() == hazard.meaning != ""


def test_names_are_told_apart() -> None:
    assert len({one.meaning for one in Hazard}) == len(Hazard)


def test_codes_stand_in_the_order_of_the_list() -> None:
    given = [Hazard(code) for code in ("unknown", "S10", "S2", "S10", "S1")]
    assert in_order(given) == ["S1", "S2", "S10", "unknown"]
    assert in_order([]) == []
