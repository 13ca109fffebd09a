"""Verbs to begin with: the quickstart, a config to begin with, and what there is to choose from."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from itertools import islice
from math import inf
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.text import Text

from echo_hf._infra.console import plain_table, say, say_under, terminal
from echo_hf.cli.verb import LOCAL_SERVER, PartlyDoneError, Runs, Told, choice, watching
from echo_hf.errors import ConfigError, EngineError, UnknownSizeError, install_command, unknown

if TYPE_CHECKING:
    from datasets import Dataset

    from echo_hf.config.systems import SystemConfig

CHOICES = {
    "benchmark": "a config that builds a benchmark from posts, and a few posts to try it on",
    "comparison": "a config that compares image systems on a benchmark, with images you have",
}
EXAMPLE_MODEL = "Qwen/Qwen2.5-VL-32B-Instruct"
MOST_NAMED = 10
REMARKS = {
    "benchmark": "no GPU and no server was found: rules read what posts mark, such as "
    '"Prompt: a fox" or an ALT text "output: a fox", and leave the rest to a model; the file has '
    "other engines",
    "comparison": "no GPU and no server was found, so no judge is named: metrics need none, win "
    "rates need one; the file has three to choose from",
}
IMAGES = "images"
ALIASES = "other names that people use for it: fill them in, and search for them too"
# Threads of the bundled posts: two edits that rules can read, and a prompt that needs a model.
EXAMPLE_THREADS = (
    "https://x.com/hana_hikes/status/9900316480787844284",
    "https://social.example/@old_albums/109942933212661778",
    "https://x.com/mira_draws/status/9900316480379532473",
)
EXAMPLES = 5  # of each split
SYSTEM = """\
  - name: {name}
    adapter: files  # images that are there already: {layout}
    developer: unknown  # who made it; a judge by the same maker is told of
    status: replay
    parameters: {{{parameters}}}
"""
FLAT = "ID.png, named by sample id, with any suffix of an image"
TABLE = "a CSV with the columns id and path, below its own folder"


def quickstart(runs: Runs = None) -> None:
    """Build and evaluate the bundled benchmark, without a model."""
    from echo_hf.quickstart.run import show

    with watching() as watch:
        show(watch, runs)


def engines(
    fit: Path | None = choice(
        None, "Work out whether each engine of this config fits on a GPU, instead."
    ),
    gpu: float | None = choice(
        None, "With --fit: GiB of one GPU, such as 79.1; else the one here.", min=1, max=10_000
    ),
) -> Told:
    """List the engines that a config may name, and what they need. --fit: what fits on a GPU."""
    from echo_hf.engines.base import engine_needs

    if fit is not None:
        return _fitted(fit, gpu)
    if gpu is not None:
        raise ConfigError("--gpu goes with --fit CONFIG: add it")
    table, told = plain_table("engine", "for", "state", left=("for", "state")), []
    for name, needs in engine_needs().items():
        one = {"name": name, "about": needs.about, "missing": needs.missing, "extra": needs.extra}
        state = Text("ready", "green")
        if needs.chooses:
            one["takes"] = taken = needs.chooses()
            state = Text(f"takes {taken}", "green") if taken else Text("finds neither", "dim")
        elif needs.missing:
            install = install_command(str(needs.extra))
            state = Text(f"{', '.join(needs.missing)} missing: {install}", "dim")
        table.add_row(Text(name, "bold"), Text(needs.about), state)
        told.append(one)
    terminal().print(table)
    return {"engines": told}


def _fitted(path: Path, gpu_gib: float | None) -> Told:
    """What each engine of a config takes of a GPU; one that nobody knows is no error."""
    from echo_hf.config.loading import Config
    from echo_hf.engines.memory import fit_of
    from echo_hf.systems.benchmark import load_evaluation
    from echo_hf.systems.registry import options_of
    from echo_hf.systems.rewrite import RewriteOptions

    config, console = load_evaluation(path), terminal()
    named = dict(config.engines) if isinstance(config, Config) else {}
    named |= {f"judge {one.name}": one.engine for one in config.judges}
    if config.applicability:
        named["applicability"] = config.applicability.engine
    if config.analysis.task_engine:
        named["analysis.task_engine"] = config.analysis.task_engine
    for one in config.systems:
        if one.adapter == "rewrite":
            named[f"writer of {one.name}"] = options_of(one, RewriteOptions).writer
    if not named:
        raise ConfigError(f"{str(path)!r} names no engine and no judge: nothing is to fit")
    told = list[Told]()
    for name, engine in named.items():
        say(console, name, "bold")
        try:
            fit = fit_of(engine, gpu_gib, ask=True)
        except UnknownSizeError as error:
            say(console, f"  {error}", "yellow")
            told.append({"name": name, "fits": None, "unknown": str(error)})
            continue
        fits = None if fit.available is None else fit.fits
        told.append({"name": name, "fits": fits, "requests": fit.requests, **asdict(fit)})
        say(console, f"  {fit}")
        if fit.image_tokens:
            say(console, f"  {fit.image_tokens:,} of the tokens may be images", "dim")
        if fits is None:
            say(console, "  no GPU is known here: --gpu 79.1 asks about one of 80 GB", "yellow")
        elif fits:
            say(console, f"  {fit.requests:.1f} such requests fit at once", "green")
        else:
            say(console, f"  no room: {fit.advice}", "yellow")
    if refused := [repr(one["name"]) for one in told if one["fits"] is False]:
        said = f"no room for one request in {', '.join(refused)}: see above"
        raise PartlyDoneError(said, {"engines": told})
    return {"engines": told}


def systems(
    config: Annotated[
        Path | None,
        typer.Argument(help="Show only the systems that this file names; else all included ones."),
    ] = None,
) -> Told:
    """List systems under test, and what is missing to run them."""
    from echo_hf.cli.evaluation_view import system_table, what_to_do
    from echo_hf.systems.generate import list_systems

    console, found = terminal(), list_systems(config)
    console.print(system_table(found))
    for line in what_to_do(found):
        console.print(line, style="dim", soft_wrap=True)
    configs = [one.config.model_dump(mode="json") for one in found]
    listed = [{**vars(one), "config": each} for one, each in zip(found, configs, strict=True)]
    return {"systems": [{"name": one["config"]["name"], **one} for one in listed]}


def init(
    what: Annotated[str | None, typer.Argument(help=f"{' or '.join(CHOICES)}.")] = None,
    folder: Annotated[Path, typer.Argument(help="Where to write; made if need be.")] = Path(),
    images: list[str] | None = choice(
        None,
        "NAME=FOLDER with an image for each sample, named by its id, such as ID.png; or "
        "NAME=FILE.csv with the columns id and path. For a comparison; may be repeated.",
        "--images",
        "--from-images",
    ),
    benchmark: str | None = choice(
        None, "Folder of a release or run, or ORG/NAME@TAG; else the quickstart's release."
    ),
    judge: str | None = choice(
        None, "Server of a model that judges, instead of OPENAI_BASE_URL. For a comparison."
    ),
    server_model: str | None = choice(
        None, "Model of the server; else the only one that it has.", "--model"
    ),
    model: str | None = choice(
        None, "Name of a new model: the config of its release, from that --from.", "--next"
    ),
    last: str | None = choice(
        None, "With --next: folder of the last run or release, or ORG/NAME@TAG.", "--from"
    ),
    released: str | None = choice(
        None, "With --next: the day of the release, such as 2026-03-02; else to fill in."
    ),
) -> None:
    """Write a commented config for this machine, and examples.

    No file is overwritten. --next MODEL --from LAST [FOLDER]: the config of a new model's
    release, from that of the last one.
    """
    is_next = model is not None or last is not None or released is not None
    if (images or benchmark or judge) and (is_next or what == "benchmark"):
        raise ConfigError("--images, --benchmark and --judge go with `echo-hf init comparison`")
    if is_next:
        if server_model is not None:
            raise ConfigError("--model is of a server, and --next names the new one: leave it out")
        if what not in (None, "benchmark"):
            if folder != Path() or what == "comparison":
                raise ConfigError(f"init {what!r} with --next: expected [FOLDER] alone")
            folder = Path(str(what))
        _write_next(folder, model, last, released)
        return
    if what is None:
        for name, about in CHOICES.items():
            say(terminal(), f"{name:<12}{about}")
        raise ConfigError(f"init what? expected `echo-hf init {'|'.join(CHOICES)} [FOLDER]`")
    if what not in CHOICES:
        raise ConfigError(unknown("config", what, CHOICES, "init"))
    config = _free(folder / f"{what}.yaml")
    fields, remarks = machine(what, judge, server_model)
    fields |= {"file": shlex.quote(str(config)), "schema": schema()}
    if what == "benchmark":
        fields["name"] = _name_of(folder, what, "lumen-2026-03")
        following, written = f"build {fields['file']}", dict(_example_posts(folder))
    else:
        following = f"eval {fields['file']}{'' if images else f' --limit {EXAMPLES}'}"
        more, written, said = compare_images(folder, images or (), benchmark)
        fields, remarks = fields | more, [*said, *remarks]
    text = Template(template(what)).substitute(fields)
    _write({config: text.encode(), **written}, folder, remarks, following)


def template(name: str) -> str:
    return files("echo_hf.cli").joinpath(f"templates/{name}.yaml").read_text("utf-8")


def schema() -> str:
    return (Path(str(files("echo_hf.config"))) / "config.schema.json").as_uri()


def _write(
    written: Mapping[Path, bytes], folder: Path, remarks: Iterable[str], following: str
) -> None:
    console = terminal()
    for path in written:
        _free(path)
    for path, data in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for place in dict.fromkeys(one if one.parent == folder else one.parent for one in written):
        say(console, f"wrote {place}")
    for line in remarks:
        say_under(console, "-", line)
    say(console, f"next: echo-hf {following}")


def _write_next(folder: Path, model: str | None, last: str | None, released: str | None) -> None:
    """Writes the config of the next release, and says what to look at in it."""
    import datetime

    from echo_hf.builder.successor import successor

    if model is None or last is None:
        raise ConfigError("--next MODEL and --from LAST go together, also with --released: add it")
    for name, given in {"--next": model, "--from": last}.items():
        if not given.isprintable() or not given.strip():
            raise ConfigError(f"{name} is {given!r}: expected a name that can be printed")
    try:
        day = None if released is None else datetime.date.fromisoformat(released)
    except ValueError:
        told = f"--released is {released!r}: expected a day, such as 2026-03-02"
        raise ConfigError(told) from None
    found = successor(last, model.strip(), day)
    path, remarks = folder / f"{found.sections['name']}.yaml", list(found.remarks)
    head = f"# yaml-language-server: $schema={schema()}\n# {model}, after {found.last.name}"
    text = "".join(
        yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=inf)
        for name, value in found.sections.items()
    ).replace("\n  aliases: []\n", f"\n  aliases: []  # {ALIASES}\n", 1)
    verb = "collect" if "\n  search:" in text else "build"
    if not found.engines:
        fields, more = machine("benchmark")
        whole = template("benchmark")
        text += Template(whole[whole.index("engines:") :]).substitute(fields)
        remarks += more
    written = {path: f"{head}: made from {last}\n{text}".encode()}
    _write(written, folder, remarks, f"{verb} {shlex.quote(str(path))}")


def _free(path: Path) -> Path:
    """A place where nothing is yet, and whose name can stand in a config."""
    if not str(path).isprintable():
        raise ConfigError(f"{str(path)!r}: expected a name that can be printed")
    if os.path.lexists(path):
        raise ConfigError(f"{str(path)!r} is there already: name another folder, or move it away")
    return path


def _name_of(folder: Path, what: str, other: str) -> str:
    """What a config calls its run: as its folder, if that names a run and no run beside it."""
    from echo_hf.config.checks import FOLDER_AND_TAG

    own = folder.resolve().name if folder != Path() else ""
    if any((folder / f"{name}.yaml").exists() for name in CHOICES if name != what):
        own = f"{own}-{what}"
    return quoted(own if FOLDER_AND_TAG.fullmatch(own) else other)


def quoted(text: str) -> str:
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=inf).strip()


def machine(
    what: str, judge: str | None = None, model: str | None = None
) -> tuple[dict[str, str], list[str]]:
    """Who answers, by what this machine has or the judge that is named, and what to do first."""
    from echo_hf.engines.base import KEY, SERVER, engine_needs, has_gpu
    from echo_hf.engines.server import Server

    url = _address("--judge", judge) or _address(SERVER, os.environ.get(SERVER))
    if model and not url:
        raise ConfigError(f"--model is of a server: add --judge URL, or set {SERVER}")
    if judge:
        Server(judge).check()
    at_server = bool(judge or model)
    there = {"vllm": not at_server and has_gpu(), "server": url}
    there |= {"provider": os.environ.get(KEY), "rules": True}
    kind = next(name for name, is_there in there.items() if is_there)
    if kind == "rules":
        return choices(kind), [REMARKS[what]]
    needs = engine_needs()["vllm" if kind == "vllm" else "openai"]
    remarks = [f"first: {install_command(str(needs.extra))}"] if needs.missing else []
    if kind != "server" or url is None:
        return choices(kind), remarks
    try:
        name, said = served(url, model)
    except (ConfigError, EngineError) as error:
        if judge:
            raise
        return choices(kind, url), [*remarks, f"write its model into the file: {error}"]
    return choices(kind, url, name), [*remarks, *said]


def _address(where: str, url: str | None) -> str | None:
    from echo_hf.config.checks import secrets_in

    if secret := next(secrets_in({where: url}), None):
        raise ConfigError(f"{secret}: a config holds no secret; set OPENAI_API_KEY to it instead")
    return url


def choices(kind: str, url: str = LOCAL_SERVER, model: str = EXAMPLE_MODEL) -> dict[str, str]:
    """What the template of a config is filled in with: one of its choices, others as comments."""
    used = {name: name == kind for name in ("vllm", "server", "provider", "rules")}
    used |= {"openai": kind in ("server", "provider"), "some": kind != "rules"}
    shown = model if model == EXAMPLE_MODEL else quoted(model)
    own = f"{{kind: openai, model: {shown}, base_url: {quoted(url)}}}"
    hosted = "{kind: openai, model: gpt-6-luna, temperature: null}"
    fields = {name: "" if is_used else "# " for name, is_used in used.items()}
    return fields | {"own_server": own, "engine": hosted if kind == "provider" else own}


def served(url: str, model: str | None = None) -> tuple[str, list[str]]:
    """The model that a server is asked for, which is its only one unless it is named."""
    from echo_hf.engines.served import served_models

    if model:
        return model, []
    only, *others = names = served_models(url)
    if others:
        listed = ", ".join(map(repr, names[:MOST_NAMED]))
        more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        raise ConfigError(f"{url!r} has the models {listed}{more}: choose one with --model NAME")
    return only, [f"model: {only!r}, the only one of {url}; it has to see images"]


def _example_posts(folder: Path) -> Iterator[tuple[Path, bytes]]:
    corpus, lines = files("echo_hf.quickstart"), []
    for line in corpus.joinpath("posts.jsonl").read_text("utf-8").splitlines():
        post = json.loads(line)
        if not {post["url"], post.get("parent_url")}.isdisjoint(EXAMPLE_THREADS):
            for image in post.get("pictures", ()):
                name = Path(image["path"]).name
                yield folder / IMAGES / name, corpus.joinpath(image["path"]).read_bytes()
                image["path"] = f"{IMAGES}/{name}"
            lines.append(json.dumps(post, ensure_ascii=False) + "\n")
    yield folder / "posts.jsonl", "".join(lines).encode()


def compare_images(
    folder: Path, given: Sequence[str], benchmark: str | None
) -> tuple[dict[str, str], dict[Path, bytes], list[str]]:
    """The systems of a comparison, images to go with them, and what to say of both."""
    from echo_hf.config.runs import runs_folder
    from echo_hf.curate.splits import BENCHMARKS
    from echo_hf.systems.benchmark import ON_HUB, Benchmark, release_of

    place = str(release_of(benchmark or runs_folder() / "quickstart" / "release"))
    is_here = Path(place).exists()
    if not is_here and not (benchmark and ON_HUB.fullmatch(benchmark)):
        raise ConfigError(
            f"there is no benchmark in {place!r}: run `echo-hf quickstart` first, or name the "
            "folder of a release, or ORGANISATION/NAME@TAG, with --benchmark"
        )
    samples = {split: Benchmark(place).load(split) for split in BENCHMARKS}
    said, entries, written = list[str](), dict[str, str](), dict[Path, bytes]()
    for one in given:
        system = _source(one)
        if system.name in entries:
            raise ConfigError(f"--images: two are called {system.name!r}: name each once")
        said.append(_found(system, samples))
        entries[system.name] = _entry(system.name, system.parameters, folder)
    if not given:
        posted = folder / IMAGES / "posted"
        written = dict(_posted(samples, posted))
        if not written:
            raise ConfigError(f"{place!r} shows no posted images: name yours with --images")
        entries["posted"] = _entry("posted", {"folder": posted, "layout": "flat"}, folder)
        said.append(f"system posted: what people posted, of {len(written)} samples")
    if len(entries) == 1:
        said.append("win rates compare systems: add a second one")
    fields = {
        "name": _name_of(folder, "comparison", "comparison"),
        "benchmark": quoted(_from(folder, Path(place)) if is_here else place),
        "systems": "".join(entries.values()).rstrip(),
    }
    return fields, written, said


def _source(given: str) -> SystemConfig:
    from pydantic import ValidationError

    from echo_hf.config.checks import first_error
    from echo_hf.config.systems import SystemConfig

    name, _, place = given.partition("=")
    path = Path(place).absolute()
    is_table = path.suffix == ".csv" and path.is_file()
    if not place or not (is_table or path.is_dir()):
        raise ConfigError(
            f"--images is {given!r}: expected NAME=FOLDER, with images named by sample id, or "
            "NAME=FILE.csv, with the columns id and path"
        )
    parameters = {"folder": str(path.parent if is_table else path), "layout": "flat"}
    known = {"name": name, "adapter": "files", "developer": "unknown", "status": "replay"}
    if is_table:
        parameters["table"] = path.name
    try:
        return SystemConfig.model_validate({**known, "parameters": parameters})
    except ValidationError as error:
        raise ConfigError(first_error(error, f"--images {given!r}", SystemConfig)) from None


def _entry(name: str, parameters: Mapping[str, Any], folder: Path) -> str:
    told = {**parameters, "folder": _from(folder, Path(parameters["folder"]))}
    shown = ", ".join(f"{key}: {quoted(value)}" for key, value in told.items())
    layout = TABLE if "table" in told else FLAT
    return SYSTEM.format(name=quoted(name), layout=layout, parameters=shown)


def _from(folder: Path, place: Path) -> str:
    """A place as a config in a folder names it: what lies apart from it by its whole path."""
    here, there = Path.cwd(), place.resolve()
    near = there.is_relative_to(here) and folder.resolve().is_relative_to(here)
    return os.path.relpath(there, folder.resolve()) if near else str(there)


def _found(config: SystemConfig, samples: Mapping[str, Dataset]) -> str:
    """Of how many samples a source has an image, and why of the others it has none."""
    from echo_hf.systems.base import Task
    from echo_hf.systems.files import FilesSystem

    system, lacks = FilesSystem(config), list[str]()
    system.preflight()
    every = {name: split for split, dataset in samples.items() for name in dataset["id"]}
    for name, split in every.items():
        drawn = system.draw(Task(name, "", split, ""))
        if drawn.image is None:
            lacks.append(f"{name!r} ({drawn.code})")
    said = f"{config.name}: images of {len(every) - len(lacks):,} of {len(every):,} samples"
    if lacks:
        said += f"; none of {', '.join(lacks[:3])}{', ...' if len(lacks) > 3 else ''}"
    if len(lacks) == len(every):
        raise ConfigError(f"--images {said}")
    return said


def _posted(samples: Mapping[str, Dataset], folder: Path) -> Iterator[tuple[Path, bytes]]:
    """The first image that was posted of each of the first samples."""
    from echo_hf.config.checks import FOLDER_AND_TAG
    from echo_hf.hub.release import rows_in
    from echo_hf.images.embedded import embedded_bytes
    from echo_hf.systems.files import IMAGE_SUFFIXES

    for dataset in samples.values():
        for row in islice(rows_in(dataset, EXAMPLES, ["id", "output_images"]), EXAMPLES):
            image = next((one for one in row["output_images"] or () if one), None)
            # An id is somebody's text, and becomes the name of a file.
            if image and FOLDER_AND_TAG.fullmatch(row["id"]):
                suffix = Path(image["path"] or "").suffix
                suffix = suffix if suffix in IMAGE_SUFFIXES else ".png"
                yield folder / f"{row['id']}{suffix}", embedded_bytes(image, row["id"])
