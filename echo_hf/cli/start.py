"""Verbs for the first steps: the quickstart, a first config, lists of engines and systems."""

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

from echo_hf._infra.console import make_console, make_table, say, say_under
from echo_hf._infra.text import pluralize
from echo_hf.cli.verb import LOCAL_SERVER, PartlyDoneError, Payload, Runs, choice, open_progress
from echo_hf.errors import ConfigError, EngineError, UnknownSizeError, describe_install, unknown

if TYPE_CHECKING:
    from datasets import Dataset

    from echo_hf.config.systems import SystemConfig

CHOICES = {
    "benchmark": "a config that builds a benchmark from posts, and a few posts to try it on",
    "comparison": "a config that compares image systems on a benchmark, with images you have",
}
EXAMPLE_MODEL = "Qwen/Qwen2.5-VL-32B-Instruct"
MAX_NAMES = 10
REMARKS = {
    "benchmark": "no GPU and no server was found: rules read what posts mark, such as "
    '"Prompt: a fox" or an ALT text "output: a fox", and leave the rest to a model; the file has '
    "other engines",
    "comparison": "no GPU and no server was found, so no judge is named: metrics need none, win "
    "rates need one; the file has three to choose from",
}
IMAGES_FOLDER = "images"
ALIASES_COMMENT = "other names that people use for it: fill them in, and search for them too"
# Threads of the bundled posts: two edits that rules can read, and a prompt that needs a model.
EXAMPLE_THREADS = (
    "https://x.com/hana_hikes/status/9900316480787844284",
    "https://social.example/@old_albums/109942933212661778",
    "https://x.com/mira_draws/status/9900316480379532473",
)
EXAMPLES = 5  # of each split
SYSTEM_TEMPLATE = """\
  - name: {name}
    adapter: files  # images that are there already: {layout}
    developer: unknown  # who made it; a judge by the same maker is told of
    status: replay
    parameters: {{{parameters}}}
"""
FLAT_LAYOUT = "ID.png, named by sample id, with any suffix of an image"
TABLE_LAYOUT = "a CSV with the columns id and path, below its own folder"


def quickstart(runs: Runs = None) -> None:
    """Build and evaluate the bundled benchmark, without a model."""
    from echo_hf.quickstart.run import show_quickstart

    with open_progress() as watch:
        show_quickstart(watch, runs)


def engines(
    fit: Path | None = choice(
        None, "Work out whether each engine of this config fits on a GPU, instead."
    ),
    gpu: float | None = choice(
        None, "With --fit: GiB of one GPU, such as 79.1; else the one here.", min=1, max=10_000
    ),
) -> Payload:
    """List the engines that a config may name, and what they need. --fit: what fits on a GPU."""
    from echo_hf.engines.base import engine_requirements

    if fit is not None:
        return _fit_engines(fit, gpu)
    if gpu is not None:
        raise ConfigError("--gpu goes with --fit CONFIG: add it")
    table, payload = make_table("engine", "for", "state", left=("for", "state")), []
    for name, needs in engine_requirements().items():
        engine = {
            "name": name,
            "about": needs.about,
            "missing": needs.missing,
            "extra": needs.extra,
        }
        state = Text("ready", "green")
        if needs.chooses:
            engine["takes"] = pick = needs.chooses()
            state = Text(f"takes {pick}", "green") if pick else Text("finds neither", "dim")
        elif needs.missing:
            install = describe_install(str(needs.extra))
            state = Text(f"{', '.join(needs.missing)} missing: {install}", "dim")
        table.add_row(Text(name, "bold"), Text(needs.about), state)
        payload.append(engine)
    make_console().print(table)
    return {"engines": payload}


def _fit_engines(path: Path, gpu_gib: float | None) -> Payload:
    """Estimate the GPU memory of each engine of a config; a model of unknown size is no error."""
    from echo_hf.config.loading import Config
    from echo_hf.engines.memory import estimate_engine_memory
    from echo_hf.systems.benchmark import load_evaluation
    from echo_hf.systems.registry import parse_options
    from echo_hf.systems.rewrite import RewriteOptions

    config, console = load_evaluation(path), make_console()
    engines_by_name = dict(config.engines) if isinstance(config, Config) else {}
    engines_by_name |= {f"judge {judge.name}": judge.engine for judge in config.judges}
    if config.applicability:
        engines_by_name["applicability"] = config.applicability.engine
    if config.analysis.task_engine:
        engines_by_name["analysis.task_engine"] = config.analysis.task_engine
    for system in config.systems:
        if system.adapter == "rewrite":
            engines_by_name[f"writer of {system.name}"] = parse_options(
                system, RewriteOptions
            ).writer
    if not engines_by_name:
        raise ConfigError(f"{str(path)!r} names no engine and no judge: nothing is to fit")
    report = list[Payload]()
    for name, engine in engines_by_name.items():
        say(console, name, "bold")
        try:
            fit = estimate_engine_memory(engine, gpu_gib, ask=True)
        except UnknownSizeError as error:
            say(console, f"  {error}", "yellow")
            report.append({"name": name, "fits": None, "unknown": str(error)})
            continue
        fits = None if fit.available_memory is None else fit.fits
        report.append(
            {"name": name, "fits": fits, "requests": fit.concurrent_requests, **asdict(fit)}
        )
        say(console, f"  {fit}")
        if fit.image_tokens:
            say(console, f"  {fit.image_tokens:,} of the tokens may be images", "dim")
        if fits is None:
            say(console, "  no GPU is known here: --gpu 79.1 asks about one of 80 GB", "yellow")
        elif fits:
            say(console, f"  {fit.concurrent_requests:.1f} such requests fit at once", "green")
        else:
            say(console, f"  no room: {fit.advice}", "yellow")
    if refused := [repr(fit["name"]) for fit in report if fit["fits"] is False]:
        message = f"no room for one request in {', '.join(refused)}: see above"
        raise PartlyDoneError(message, {"engines": report})
    return {"engines": report}


def systems(
    config: Annotated[
        Path | None,
        typer.Argument(help="Show only the systems that this file names; else all included ones."),
    ] = None,
) -> Payload:
    """List systems under test, and what is missing to run them."""
    from echo_hf.cli.evaluation_view import list_remedies, make_system_table
    from echo_hf.systems.generate import list_systems

    console, listings = make_console(), list_systems(config)
    console.print(make_system_table(listings))
    for line in list_remedies(listings):
        console.print(line, style="dim", soft_wrap=True)
    configs = [listing.config.model_dump(mode="json") for listing in listings]
    listed = [
        {**vars(listing), "config": body} for listing, body in zip(listings, configs, strict=True)
    ]
    return {"systems": [{"name": listing["config"]["name"], **listing} for listing in listed]}


def plugins(
    config: Annotated[
        Path | None, typer.Argument(help="Import the plug-ins that this config names, too.")
    ] = None,
) -> Payload:
    """List the plug-ins that are there, and where each comes from. -v: all built-in parts."""
    from echo_hf._infra.registry import OWN_PACKAGE
    from echo_hf.collect.sources.base import SOURCES
    from echo_hf.config.collection import PLATFORMS
    from echo_hf.config.evaluation import METRICS
    from echo_hf.config.rubrics import RUBRICS
    from echo_hf.config.sections import STAGES
    from echo_hf.engines.base import ENGINES
    from echo_hf.judging.imports import READERS
    from echo_hf.report.export import FORMATS
    from echo_hf.systems.benchmark import load_evaluation
    from echo_hf.systems.registry import SYSTEMS

    if config is not None:
        load_evaluation(config)
    console, members = make_console(), list[dict[str, str]]()
    for registry in (
        *(ENGINES, FORMATS, METRICS, READERS, PLATFORMS, RUBRICS, SOURCES, STAGES, SYSTEMS),
    ):
        kind = registry.group.rpartition(".")[2]
        members += [
            {"kind": kind, "name": name, "from": origin}
            for name, origin in registry.list_origins().items()
        ]
    brought = [member for member in members if member["from"] != OWN_PACKAGE]
    table = make_table("kind", "name", "from", left=("name", "from"))
    for member in members if console.details else brought:
        table.add_row(*map(Text, member.values()))
    if table.row_count:
        console.print(table)
    if not console.details:
        say(console, f"{pluralize(len(brought), 'plug-in')}; -v lists what is built in, too")
    return {"plugins": members}


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
            say(make_console(), f"{name:<12}{about}")
        raise ConfigError(f"init what? expected `echo-hf init {'|'.join(CHOICES)} [FOLDER]`")
    if what not in CHOICES:
        raise ConfigError(unknown("config", what, CHOICES, "init"))
    config = _check_new_path(folder / f"{what}.yaml")
    fields, remarks = detect_engine(what, judge, server_model)
    fields |= {"file": shlex.quote(str(config)), "schema": schema_uri()}
    if what == "benchmark":
        fields["name"] = _choose_run_name(folder, what, "lumen-2026-03")
        next_command, written = f"build {fields['file']}", dict(_read_example_posts(folder))
    else:
        next_command = f"eval {fields['file']}{'' if images else f' --limit {EXAMPLES}'}"
        values, written, notes = compare_images(folder, images or (), benchmark)
        fields, remarks = fields | values, [*notes, *remarks]
    text = Template(read_template(what)).substitute(fields)
    _write_files({config: text.encode(), **written}, folder, remarks, next_command)


def read_template(name: str) -> str:
    return files("echo_hf.cli").joinpath(f"templates/{name}.yaml").read_text("utf-8")


def schema_uri() -> str:
    return (Path(str(files("echo_hf.config"))) / "config.schema.json").as_uri()


def _write_files(
    written: Mapping[Path, bytes], folder: Path, remarks: Iterable[str], next_command: str
) -> None:
    console = make_console()
    for path in written:
        _check_new_path(path)
    for path, data in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for place in dict.fromkeys(path if path.parent == folder else path.parent for path in written):
        say(console, f"wrote {place}")
    for line in remarks:
        say_under(console, "-", line)
    say(console, f"next: echo-hf {next_command}")


def _write_next(folder: Path, model: str | None, last: str | None, released: str | None) -> None:
    """Write the config of the next release, and print what to check in it."""
    import datetime

    from echo_hf.builder.successor import derive_config

    if model is None or last is None:
        raise ConfigError("--next MODEL and --from LAST go together, also with --released: add it")
    for name, argument in {"--next": model, "--from": last}.items():
        if not argument.isprintable() or not argument.strip():
            raise ConfigError(f"{name} is {argument!r}: expected a name that can be printed")
    try:
        day = None if released is None else datetime.date.fromisoformat(released)
    except ValueError:
        message = f"--released is {released!r}: expected a day, such as 2026-03-02"
        raise ConfigError(message) from None
    release = derive_config(last, model.strip(), day)
    path, remarks = folder / f"{release.sections['name']}.yaml", list(release.remarks)
    head = f"# yaml-language-server: $schema={schema_uri()}\n# {model}, after {release.last.name}"
    text = "".join(
        yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=inf)
        for name, value in release.sections.items()
    ).replace("\n  aliases: []\n", f"\n  aliases: []  # {ALIASES_COMMENT}\n", 1)
    verb = "collect" if "\n  search:" in text else "build"
    if not release.engines:
        fields, notes = detect_engine("benchmark")
        source = read_template("benchmark")
        text += Template(source[source.index("engines:") :]).substitute(fields)
        remarks += notes
    written = {path: f"{head}: made from {last}\n{text}".encode()}
    _write_files(written, folder, remarks, f"{verb} {shlex.quote(str(path))}")


def _check_new_path(path: Path) -> Path:
    """Return a path where no file is yet, and whose name can stand in a config."""
    if not str(path).isprintable():
        raise ConfigError(f"{str(path)!r}: expected a name that can be printed")
    if os.path.lexists(path):
        raise ConfigError(f"{str(path)!r} is there already: name another folder, or move it away")
    return path


def _choose_run_name(folder: Path, what: str, default: str) -> str:
    """Name a run after its folder, unless that is no valid name or another config has it."""
    from echo_hf.config.checks import FOLDER_AND_TAG

    folder_name = folder.resolve().name if folder != Path() else ""
    if any((folder / f"{name}.yaml").exists() for name in CHOICES if name != what):
        folder_name = f"{folder_name}-{what}"
    return quote(folder_name if FOLDER_AND_TAG.fullmatch(folder_name) else default)


def quote(text: str) -> str:
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=inf).strip()


def detect_engine(
    what: str, judge: str | None = None, model: str | None = None
) -> tuple[dict[str, str], list[str]]:
    """Choose the engine that this machine or `--judge` offers, and list the first steps to take."""
    from echo_hf.engines.base import KEY_VARIABLE, SERVER_VARIABLE, engine_requirements, has_gpu
    from echo_hf.engines.server import Server

    url = _check_address("--judge", judge) or _check_address(
        SERVER_VARIABLE, os.environ.get(SERVER_VARIABLE)
    )
    if model and not url:
        raise ConfigError(f"--model is of a server: add --judge URL, or set {SERVER_VARIABLE}")
    if judge:
        Server(judge).check()
    at_server = bool(judge or model)
    available = {"vllm": not at_server and has_gpu(), "server": url}
    available |= {"provider": os.environ.get(KEY_VARIABLE), "rules": True}
    kind = next(name for name, is_available in available.items() if is_available)
    if kind == "rules":
        return fill_choices(kind), [REMARKS[what]]
    needs = engine_requirements()["vllm" if kind == "vllm" else "openai"]
    remarks = [f"first: {describe_install(str(needs.extra))}"] if needs.missing else []
    if kind != "server" or url is None:
        return fill_choices(kind), remarks
    try:
        name, model_remarks = choose_model(url, model)
    except (ConfigError, EngineError) as error:
        if judge:
            raise
        return fill_choices(kind, url), [*remarks, f"write its model into the file: {error}"]
    return fill_choices(kind, url, name), [*remarks, *model_remarks]


def _check_address(where: str, url: str | None) -> str | None:
    from echo_hf.config.checks import find_secrets

    if secret := next(find_secrets({where: url}), None):
        raise ConfigError(f"{secret}: a config holds no secret; set OPENAI_API_KEY to it instead")
    return url


def fill_choices(kind: str, url: str = LOCAL_SERVER, model: str = EXAMPLE_MODEL) -> dict[str, str]:
    """Return the fields of a config template: one engine active, the others as comments."""
    chosen = {name: name == kind for name in ("vllm", "server", "provider", "rules")}
    chosen |= {"openai": kind in ("server", "provider"), "some": kind != "rules"}
    model_text = model if model == EXAMPLE_MODEL else quote(model)
    own = f"{{kind: openai, model: {model_text}, base_url: {quote(url)}}}"
    hosted = "{kind: openai, model: gpt-6-luna, temperature: null}"
    fields = {name: "" if is_used else "# " for name, is_used in chosen.items()}
    return fields | {"own_server": own, "engine": hosted if kind == "provider" else own}


def choose_model(url: str, model: str | None = None) -> tuple[str, list[str]]:
    """Return the model to ask a server for: the named one, else its only one."""
    from echo_hf.engines.served import list_served_models

    if model:
        return model, []
    only, *others = names = list_served_models(url)
    if others:
        listed = ", ".join(map(repr, names[:MAX_NAMES]))
        tail = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
        raise ConfigError(f"{url!r} has the models {listed}{tail}: choose one with --model NAME")
    return only, [f"model: {only!r}, the only one of {url}; it has to see images"]


def _read_example_posts(folder: Path) -> Iterator[tuple[Path, bytes]]:
    corpus, lines = files("echo_hf.quickstart"), []
    for line in corpus.joinpath("posts.jsonl").read_text("utf-8").splitlines():
        post = json.loads(line)
        if not {post["url"], post.get("parent_url")}.isdisjoint(EXAMPLE_THREADS):
            for image in post.get("pictures", ()):
                name = Path(image["path"]).name
                yield folder / IMAGES_FOLDER / name, corpus.joinpath(image["path"]).read_bytes()
                image["path"] = f"{IMAGES_FOLDER}/{name}"
            lines.append(json.dumps(post, ensure_ascii=False) + "\n")
    yield folder / "posts.jsonl", "".join(lines).encode()


def compare_images(
    folder: Path, sources: Sequence[str], benchmark: str | None
) -> tuple[dict[str, str], dict[Path, bytes], list[str]]:
    """Return the systems of a comparison, images to write, and remarks on both."""
    from echo_hf.config.runs import find_runs_folder
    from echo_hf.curate.splits import BENCHMARKS
    from echo_hf.systems.benchmark import ON_HUB, Benchmark, find_release_folder
    from echo_hf.systems.files import parse_source

    place = str(find_release_folder(benchmark or find_runs_folder() / "quickstart" / "release"))
    is_here = Path(place).exists()
    if not is_here and not (benchmark and ON_HUB.fullmatch(benchmark)):
        raise ConfigError(
            f"there is no benchmark in {place!r}: run `echo-hf quickstart` first, or name the "
            "folder of a release, or ORGANISATION/NAME@TAG, with --benchmark"
        )
    samples = {split: Benchmark(place).load(split) for split in BENCHMARKS}
    remarks, entries, written = list[str](), dict[str, str](), dict[Path, bytes]()
    for source in sources:
        system = parse_source(source)
        if system.name in entries:
            raise ConfigError(f"--images: two are called {system.name!r}: name each once")
        remarks.append(_describe_source(system, samples))
        entries[system.name] = _format_system(system.name, system.parameters, folder)
    if not sources:
        posted = folder / IMAGES_FOLDER / "posted"
        written = dict(_read_posted(samples, posted))
        if not written:
            raise ConfigError(f"{place!r} shows no posted images: name yours with --images")
        entries["posted"] = _format_system("posted", {"folder": posted, "layout": "flat"}, folder)
        remarks.append(f"system posted: what people posted, of {len(written)} samples")
    if len(entries) == 1:
        remarks.append("win rates compare systems: add a second one")
    fields = {
        "name": _choose_run_name(folder, "comparison", "comparison"),
        "benchmark": quote(_relative(folder, Path(place)) if is_here else place),
        "systems": "".join(entries.values()).rstrip(),
    }
    return fields, written, remarks


def _format_system(name: str, parameters: Mapping[str, Any], folder: Path) -> str:
    settings = {**parameters, "folder": _relative(folder, Path(parameters["folder"]))}
    listed = ", ".join(f"{key}: {quote(value)}" for key, value in settings.items())
    layout = TABLE_LAYOUT if "table" in settings else FLAT_LAYOUT
    return SYSTEM_TEMPLATE.format(name=quote(name), layout=layout, parameters=listed)


def _relative(folder: Path, place: Path) -> str:
    """Format a path for a config in a folder: relative inside the working folder, else absolute."""
    root, target = Path.cwd(), place.resolve()
    is_inside = target.is_relative_to(root) and folder.resolve().is_relative_to(root)
    return os.path.relpath(target, folder.resolve()) if is_inside else str(target)


def _describe_source(config: SystemConfig, samples: Mapping[str, Dataset]) -> str:
    """Say for how many samples a source has an image, and why it has none for the others."""
    from echo_hf.systems.base import Task
    from echo_hf.systems.files import FilesSystem

    system, lacks = FilesSystem(config), list[str]()
    system.preflight()
    splits = {name: split for split, dataset in samples.items() for name in dataset["id"]}
    for name, split in splits.items():
        output = system.draw(Task(name, "", split, ""))
        if output.image is None:
            lacks.append(f"{name!r} ({output.code})")
    message = f"{config.name}: images of {len(splits) - len(lacks):,} of {len(splits):,} samples"
    if lacks:
        message += f"; none of {', '.join(lacks[:3])}{', ...' if len(lacks) > 3 else ''}"
    if len(lacks) == len(splits):
        raise ConfigError(f"--images {message}")
    return message


def _read_posted(samples: Mapping[str, Dataset], folder: Path) -> Iterator[tuple[Path, bytes]]:
    from echo_hf.config.checks import FOLDER_AND_TAG
    from echo_hf.hub.release import iterate_rows
    from echo_hf.images.embedded import read_embedded
    from echo_hf.systems.files import IMAGE_SUFFIXES

    for dataset in samples.values():
        for row in islice(iterate_rows(dataset, EXAMPLES, ["id", "output_images"]), EXAMPLES):
            image = next((cell for cell in row["output_images"] or () if cell), None)
            # An id is somebody's text, and becomes the name of a file.
            if image and FOLDER_AND_TAG.fullmatch(row["id"]):
                suffix = Path(image["path"] or "").suffix
                suffix = suffix if suffix in IMAGE_SUFFIXES else ".png"
                yield folder / f"{row['id']}{suffix}", read_embedded(image, row["id"])
