"""The one file that describes a benchmark: target, posts, engines, options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, create_model

from echo_hf.config.checks import Statement, StoredEngine, first_error, format_value, read_yaml
from echo_hf.config.collection import PLATFORMS, SITES, phase_dates
from echo_hf.config.evaluation import EvaluationBase, load_named_files
from echo_hf.config.paper import PaperOptions, find_differences
from echo_hf.config.plugins import load_plugins
from echo_hf.config.runs import EXAMPLE_CONFIG, find_config_file
from echo_hf.config.sections import (
    DEFAULT_ENGINE,
    ChecksOptions,
    ModelStageOptions,
    PostsSource,
    ReleaseOptions,
    ScheduleOptions,
    Shard,
    SplitOptions,
    Stages,
    Target,
    extend_stages,
    guard_form,
)
from echo_hf.errors import ConfigError, unknown


class Config(EvaluationBase):
    """A benchmark, from posts to release, and the systems that are measured on it.

    Attributes:
        target: The model that people talk about.
        posts: Where the posts are.
        engines: Who answers, by a name that the stages use.
        stages: Options of each stage.
        splits: How the splits are drawn.
        release: What the release says of itself.
        rights: By platform whose terms forbid passing posts on, what permits it nevertheless; the
            card repeats it. Without it, samples from there are published without posted content.
        schedule: What the loop that keeps it current may do; null where none does.
        shard: Which part of a benchmark this is; null for a whole one.
        checks: How complaints become questions to judges, which `update` and the loop then keep up;
            null where only `echo-hf checks` does so.
        paper: Says that this config reproduces the paper, and where it differs; null for one that
            does not.
    """

    target: Target
    posts: Annotated[tuple[PostsSource, ...], Field(min_length=1)]
    engines: Annotated[Mapping[str, StoredEngine], Field(min_length=1)]
    stages: Stages = Stages()
    splits: SplitOptions = SplitOptions()
    release: ReleaseOptions = ReleaseOptions()
    rights: Mapping[str, Statement] = {}
    schedule: ScheduleOptions | None = None
    shard: Shard | None = None
    paper: PaperOptions | None = None
    checks: ChecksOptions | None = None


def load_config(config: Config | Path | str) -> Config:
    """Read a config file; a config that is read already stays as it is.

    Args:
        config: A YAML file; the paths in it are relative to its folder. `eval_configs/...` that is
            not there is the one that echo-hf brings. Or the folder of a run, or of its release.

    Returns:
        The config, its paths made absolute.

    Raises:
        ConfigError: The file cannot be read, is not YAML, or holds an unknown key or a bad value.
    """
    if isinstance(config, Config):
        return config
    path = find_config_file(config)
    data = read_yaml(path, "config", EXAMPLE_CONFIG)
    load_plugins(data, path)
    folder = path.resolve().parent
    parsed = parse_config(load_named_files(data, folder), str(path))
    return resolve_paths(parsed, folder).read_from(path)


def parse_config(data: Any, place: str) -> Config:
    """Validate a config that is already data."""
    if not isinstance(data, dict):
        text = format_value(data)
        raise ConfigError(f"{place}: expected a mapping with name, target and posts, got {text}")
    if "benchmark" in data and "posts" not in data:
        raise ConfigError(
            f"{place} compares systems on a benchmark that is there already, and builds none: "
            "expected a config with posts; `echo-hf eval --dry-run` says what this one would ask"
        )
    model: type[Config] = Config
    if (stages := extend_stages(data.get("stages"))) is not Stages:
        model = create_model("Config", __base__=Config, stages=(stages, ...))
    try:
        config: Config = model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(first_error(error, place, model)) from None
    _check_searches(config, place)
    platforms = sorted({*SITES.list_names(), "web"}) if config.rights else []
    for platform in config.rights:
        if platform not in platforms:
            raise ConfigError(unknown("platform", platform, platforms, f"{place}: rights"))
    config = _set_engines(config)
    for stage, options in config.stages:
        if isinstance(options, ModelStageOptions) and options.engine not in config.engines:
            engine_place = f"{place}: stages.{stage}.engine"
            raise ConfigError(unknown("engine", options.engine, config.engines, engine_place))
    try:
        guard_form(config)
        find_differences(config)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None
    return config


def _check_searches(config: Config, place: str) -> None:
    searched: set[str] = set()
    for number, entry in enumerate(config.posts):
        if entry.search is None:
            continue
        entry_place = f"{place}: posts.{number}"
        PLATFORMS.check(entry.source, f"{entry_place}.source")
        if entry.source in searched:
            raise ConfigError(
                f"{entry_place}: {entry.source!r} is searched twice: put all phases into one "
                "search; one with a start of its own may overlap others"
            )
        searched.add(entry.source)
        phase_dates(entry.search.phases, config.target.released, f"{entry_place}.search")


def _set_engines(config: Config) -> Config:
    only, *others = config.engines
    defaults = {
        stage: options.model_copy(update={"engine": DEFAULT_ENGINE if others else only})
        for stage, options in config.stages
        if isinstance(options, ModelStageOptions)
        and "engine" not in options.model_fields_set
        and not (others and options.engine in config.engines)
    }
    return config.model_copy(update={"stages": config.stages.model_copy(update=defaults)})


def resolve_paths(config: Config, folder: Path) -> Config:
    """Make the files of a config absolute."""
    posts = tuple(
        entry.model_copy(update={"path": folder / entry.path}) if entry.path else entry
        for entry in config.posts
    )
    engines = {
        name: choice.model_copy(update={"path": str(folder / path)})
        if isinstance(path := choice.options.get("path"), str)
        else choice
        for name, choice in config.engines.items()
    }
    metrics, analysis = config.metrics.resolve_paths(folder), config.analysis.resolve_paths(folder)
    carry = tuple(
        each.model_copy(update={"release": str(folder / each.release)})
        if (folder / each.release).exists()
        else each
        for each in config.carry
    )
    update: dict[str, Any] = {"posts": posts, "engines": engines, "carry": carry}
    update |= {"metrics": metrics, "analysis": analysis}
    return config.model_copy(update=update)
