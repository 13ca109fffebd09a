"""A config to begin with: what is written, what it says of images, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import datasets
import pytest
import yaml
from jsonschema import Draft202012Validator
from PIL import Image
from typer.testing import CliRunner, Result

from echo_hf.builder.build import build
from echo_hf.cli import app
from echo_hf.config.evaluation import EvaluationConfig
from echo_hf.config.loading import load_config
from echo_hf.errors import EchoError
from echo_hf.hub.load import load_benchmark
from echo_hf.images.store import ImageStore
from echo_hf.systems.benchmark import load_evaluation
from tests.engines.openai.loopback_server import Answer, LoopbackServer, closed_port, running
from tests.systems.runs_for_tests import benchmark, png, sample, written
from tests.test_cli import echo_hf

SCHEMA = re.compile(
    r"# yaml-language-server: \$schema=file:///\S*/echo_hf/config/config\.schema\.json"
)
SERVER = "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def init(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["init", *arguments])


def refused(*arguments: str) -> str:
    done = init(*arguments)
    assert isinstance(done.exception, EchoError), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    benchmark(tmp_path, texts=2, edits=1)
    folder = tmp_path / "drawn"
    folder.mkdir()
    for name in ("e0", "t0", "t1"):
        Image.new("RGB", (8, 8), (90, 10, 10)).save(folder / f"{name}.png")
    return folder


def compared(*sources: str) -> Result:
    given = [part for source in sources for part in ("--images", source)]
    return init("comparison", "mine", "--benchmark", "release", *given)


def test_it_says_what_there_is_to_choose_and_what_cannot_be() -> None:
    done = echo_hf("init", cwd=Path())
    assert done.returncode == 2
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["benchmark", "comparison"]
    assert done.stderr.count("\n") == 1
    assert "echo-hf init benchmark|comparison [FOLDER]" in done.stderr
    assert "did you mean 'benchmark'?" in refused("benchmarks")
    assert "echo-hf init comparison" in refused("benchmark", "--benchmark", "x")
    assert "can be printed" in refused("benchmark", "two\nlines")


def faults(config: str) -> list[str]:
    """What an editor marks in a config by the schema that its first line names."""
    text = Path(config).read_text("utf-8")
    assert SCHEMA.fullmatch(text.splitlines()[0])
    address = urlsplit(text.splitlines()[0].partition("$schema=")[2])
    schema = json.loads(Path(url2pathname(address.path)).read_text("utf-8"))
    plain = json.loads(json.dumps(yaml.safe_load(text), default=str))  # dates are text in JSON
    return [error.message for error in Draft202012Validator(schema).iter_errors(plain)]


@pytest.mark.parametrize("name", ["it's a😀", 'a "b"', "0x1f"])
def test_a_folder_of_any_name_is_written_so_that_it_is_read(images: Path, name: str) -> None:
    images.rename(name)
    done = compared(f"lumen={name}")
    assert done.exit_code == 0, done.output
    (system,) = load_evaluation(Path("mine/comparison.yaml")).systems
    assert Path(system.parameters["folder"]).resolve() == Path(name).resolve()


def test_a_benchmark_is_built_as_it_was_written() -> None:
    done = init("benchmark", "mine")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "next: echo-hf build mine/benchmark.yaml"
    assert "rules read what posts mark" in done.output
    assert faults("mine/benchmark.yaml") == []
    assert len(Path("mine/benchmark.yaml").read_text("utf-8").splitlines()) <= 45
    posts = [json.loads(one) for one in Path("mine/posts.jsonl").read_text("utf-8").splitlines()]
    shown = {Path("mine") / image["path"] for one in posts for image in one.get("pictures", ())}
    assert shown == set(Path("mine/images").iterdir())
    assert any("Prompt: " in one["text"] for one in posts)
    release = build("mine/benchmark.yaml").path
    (sample, *_) = load_benchmark(release, "image_to_image")
    assert sample["prompt"].startswith("Turn this photo into a night scene")
    assert len(sample["input_images"]) == 1


def test_a_run_is_named_by_the_folder_of_its_config(images: Path) -> None:
    """Of a benchmark and a comparison in one folder, each has a run of its own."""
    init("benchmark", "mine")
    init("benchmark")
    assert load_config("mine/benchmark.yaml").name == "mine"
    assert load_config("benchmark.yaml").name == "lumen-2026-03"
    assert compared(f"lumen={images}").exit_code == 0
    assert load_evaluation("mine/comparison.yaml").name == "mine-comparison"


def commented(text: str, *first: str) -> str:
    return "\n".join(
        line[2:] if line.startswith("#") and line[2:].strip().startswith(first) else line
        for line in text.splitlines()
    )


def test_other_engines_stand_beside_the_rules() -> None:
    init("benchmark")
    text = Path("benchmark.yaml").read_text("utf-8").replace("  reader: {kind: rules}\n", "")
    models = {"vllm": ("reader: {kind: vllm", "guard:"), "openai": ("reader: {kind: openai",)}
    for kind, first in models.items():
        Path("benchmark.yaml").write_text(commented(text, *first), "utf-8")
        engines = load_config("benchmark.yaml").engines
        assert [one.kind for one in engines.values()] == [kind] * len(first)


@pytest.mark.parametrize(
    ("variable", "value", "engine", "judge"),
    [
        ("OPENAI_BASE_URL", SERVER, {"base_url": SERVER}, "server_judge"),
        ("OPENAI_API_KEY", "a key of nobody", {"model": "gpt-6-luna"}, "gpt_6_luna"),
    ],
)
def test_a_server_in_the_environment_is_taken(
    variable: str,
    value: str,
    engine: dict[str, str],
    judge: str,
    images: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)
    assert init("benchmark").exit_code == 0
    reader = load_config("benchmark.yaml").engines["reader"]
    assert reader.kind == "openai"
    assert engine.items() <= reader.options.items()
    assert compared(f"lumen={images}").exit_code == 0
    config = load_evaluation("mine/comparison.yaml")
    assert [one.name for one in config.judges] == [judge]
    assert engine.items() <= config.judges[0].engine.options.items()
    for path in ("benchmark.yaml", "mine/comparison.yaml"):
        assert "a key of nobody" not in Path(path).read_text("utf-8")


def test_no_secret_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://otto:hidden@127.0.0.1/v1")
    said = refused("benchmark")
    assert "OPENAI_BASE_URL with a name and password in it" in said
    assert "hidden" not in said
    assert not Path("benchmark.yaml").exists()


def test_a_comparison_takes_images_that_are_there(images: Path) -> None:
    done = compared(f"lumen={images}", "umbra=drawn")
    assert done.exit_code == 0, done.output
    assert "lumen: images of 3 of 3 samples" in done.output
    assert "win rates need one" in done.output
    assert done.output.splitlines()[-1] == "next: echo-hf eval mine/comparison.yaml"
    assert faults("mine/comparison.yaml") == []
    text = Path("mine/comparison.yaml").read_text("utf-8")
    config = load_evaluation("mine/comparison.yaml")
    assert isinstance(config, EvaluationConfig)
    assert (config.name, config.judges) == ("mine", ())
    assert Path(config.benchmark).resolve() == Path("release").resolve()
    for one in config.systems:
        assert Path(one.parameters["folder"]).resolve() == images
    # What is commented is right as well.
    judges = ("judges:", "- judges/", "- name: server", "engine:", "rubrics:")
    own = re.sub(r"(?m)^  # (- name|  \w)", r"  \1", text)
    own = commented(own, *judges, "applicability:")
    Path("mine/all.yaml").write_text(own, "utf-8")
    every = load_evaluation("mine/all.yaml")
    assert [one.name for one in every.systems] == ["lumen", "umbra", "my_system"]
    assert [one.name for one in every.judges] == ["qwen3_vl_32b", "gpt_6_luna", "server_judge"]
    assert every.applicability is not None


def test_a_table_of_images_is_taken(images: Path) -> None:
    (images / "e0.png").rename(images / "edit.png")
    (images / "images.csv").write_text("id,path\ne0,edit.png\nt1,t1.png\nzz,t0.png\n")
    done = compared(f"lumen={images / 'images.csv'}")
    assert "lumen: images of 2 of 3 samples; none of 't0' (no_file)" in done.output
    (system,) = load_evaluation("mine/comparison.yaml").systems
    assert system.parameters["table"] == "images.csv"


def test_what_cannot_be_used_is_counted_and_named(images: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    outside.write_bytes(png("secret"))
    (images / "t1.png").unlink()
    (images / "t1.png").symlink_to(outside)
    (images / "t0.png").write_bytes(png("x")[:40])
    done = compared(f"lumen={images}")
    assert done.exit_code == 0, done.output
    told = "lumen: images of 1 of 3 samples; none of 't0' (bad_picture), 't1' (outside)"
    assert told in done.output


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("drawn", "--images is 'drawn': expected NAME=FOLDER"),
        ("lumen=nowhere.csv", "expected NAME=FOLDER"),
        ("lu men=drawn", "--images 'lu men=drawn': name is 'lu men'"),
        ("lumen=empty", "no file 'ID.png'"),
        ("lumen=others", "images of 0 of 3 samples; none of 'e0' (no_file), 't0' (no_file), "),
        ("lumen=bad.csv", "or a CSV with the columns id and path"),
        ("lumen=twice.csv", "line 3 is about 't0', as an earlier one is"),
    ],
)
def test_a_source_that_cannot_be_used_is_one_line(source: str, said: str, images: Path) -> None:
    for name in ("empty", "others"):
        Path(name).mkdir()
    Path("others/unknown.png").write_bytes(png("x"))
    Path("bad.csv").write_text("sample,file\nt0,drawn/t0.png\n")
    Path("twice.csv").write_text("id,path\nt0,drawn/t0.png\nt0,drawn/t0.png\n")
    assert said in refused("comparison", "mine", "--benchmark", "release", "--from-images", source)
    assert not Path("mine").exists()


def test_a_comparison_needs_a_benchmark_and_names(images: Path) -> None:
    twice, release = ["--from-images", "lumen=drawn"] * 2, ["--benchmark", "release"]
    for given, said in (
        ([*release, *twice], "two are called 'lumen'"),
        (["mine", *release], "'release' shows no posted images: name yours with --images"),
        ([], "run `echo-hf quickstart` first"),
        (["--benchmark", "runs/none/release"], "there is no benchmark in 'runs/none/release'"),
    ):
        assert said in refused("comparison", *given)
    assert not Path("comparison.yaml").exists()


def test_posted_images_are_the_example(tmp_path: Path) -> None:
    quickstart = tmp_path / "runs" / "quickstart"
    quickstart.mkdir(parents=True)
    store = ImageStore(quickstart / "pictures")
    names = ("a", "b", "../c", "d", "e", "f")
    rows = [sample(name, output_images=[store.put(png(name))]) for name in names]
    written(quickstart, rows)
    done = init("comparison")
    assert done.exit_code == 0, done.output
    assert "eval comparison.yaml --limit 5" in done.output
    posted = {path.stem: path.read_bytes() for path in Path("images/posted").iterdir()}
    assert posted == {name: png(name) for name in ("a", "b", "d", "e")}  # of the first five
    assert [path for path in tmp_path.rglob("c.*") if "cache" not in path.parts] == []
    assert [one.name for one in load_evaluation("comparison.yaml").systems] == ["posted"]


@pytest.mark.parametrize("there", ["benchmark.yaml", "posts.jsonl", "images/lake_day.jpg"])
def test_no_file_is_overwritten(there: str, tmp_path: Path) -> None:
    path = tmp_path / "mine" / there
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert f"'mine/{there}' is there already" in refused("benchmark", "mine")
    assert [one for one in (tmp_path / "mine").rglob("*") if one.is_file()] == [path]
    assert path.read_text() == "mine"


@pytest.fixture
def served() -> Iterator[LoopbackServer]:
    with running() as loopback:
        loopback.behave = lambda _: Answer({"data": [{"id": "tiny-vl"}]})
        yield loopback


def test_the_only_model_of_a_server_is_taken(
    images: Path, served: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = init("comparison", "at", "--benchmark", "release", "--judge", served.url)
    assert "posted images" in str(done.exception)  # nothing else is in the way
    given = ["--benchmark", "release", "--images", f"lumen={images}"]
    done = init("comparison", "named", *given, "--judge", served.url)
    assert "model: 'tiny-vl', the only one of" in done.output
    monkeypatch.setenv("OPENAI_BASE_URL", served.url)
    assert init("comparison", "there", *given).exit_code == 0
    assert init("benchmark", "built").exit_code == 0
    for folder in ("named", "there"):
        (judge,) = load_evaluation(f"{folder}/comparison.yaml").judges
        assert judge.engine.options == {"model": "tiny-vl", "base_url": served.url}
    assert load_config("built/benchmark.yaml").engines["reader"].options["model"] == "tiny-vl"


def test_of_several_models_one_is_named_or_left_to_fill_in(
    images: Path, served: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"m{number}" for number in range(12)]
    served.behave = lambda _: Answer({"data": [{"id": name} for name in names]})
    given = ["--benchmark", "release", "--images", f"lumen={images}"]
    said = refused("comparison", "a", *given, "--judge", served.url)
    assert "'m0', 'm1'," in said
    assert "'m9' and 2 more: choose one with --model NAME" in said
    monkeypatch.setenv("OPENAI_BASE_URL", served.url)
    assert "write its model into the file" in init("comparison", "a", *given).output
    asked = len(served.asked)
    assert init("comparison", "b", *given, "--model", "m3").exit_code == 0
    assert load_evaluation("b/comparison.yaml").judges[0].model == "m3"
    assert len(served.asked) == asked


def test_a_server_that_is_not_there_is_one_line(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--benchmark", "release", "--images", f"lumen={images}"]
    nobody = closed_port()
    assert "no server answers" in refused("comparison", "a", *given, "--judge", nobody)
    monkeypatch.setenv("OPENAI_BASE_URL", nobody)
    done = init("comparison", "a", *given)
    assert "write its model into the file: no server answers" in done.output
    assert load_evaluation("a/comparison.yaml").judges[0].engine.options["base_url"] == nobody
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert "--model is of a server" in refused("benchmark", "b", "--model", "m")


def test_images_have_their_old_name_too(images: Path) -> None:
    given = ["--benchmark", "release", "--from-images", f"lumen={images}"]
    assert init("comparison", "a", *given).exit_code == 0
