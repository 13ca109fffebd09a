"""Config sections of evaluation: systems, judges, metrics and analysis."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    PrivateAttr,
    RootModel,
    SerializeAsAny,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from echo_hf._infra.registry import Registry
from echo_hf.config.checks import (
    UNKNOWN,
    ModelIdentity,
    Name,
    ReadablePath,
    Section,
    Statement,
    StoredEngine,
    StrictInt,
    Words,
    check_distinct,
    check_stand_in,
    check_unequal,
    first_error,
    match_pattern,
    read_yaml,
)
from echo_hf.config.judge_files import JudgeFile, JudgeForm, load_judge_file
from echo_hf.config.rubrics import (
    OVERALL,
    RESERVED,
    RUBRICS,
    TEXT_RENDERING,
    Rubric,
    Scale,
    check_ends,
    read_rubric,
)
from echo_hf.config.sections import RunnerOptions
from echo_hf.config.systems import (
    DrawChoice,
    OutputCount,
    SystemConfig,
    get_config_place,
    load_shared,
    read_shipped_file,
    read_system,
    shipped_configs,
)
from echo_hf.errors import ConfigError, unknown

SectionT = TypeVar("SectionT", bound=BaseModel)
OWN_NAME = "benchmark"
Format = Literal["text", "jsonl", "csv", "tsv", "parquet"]


def _make_list(one_or_several: Any) -> Any:
    return [one_or_several] if isinstance(one_or_several, str | Path) else one_or_several


FilePaths = Annotated[
    tuple[ReadablePath, ...], BeforeValidator(_make_list, ReadablePath | tuple[ReadablePath, ...])
]
HubFiles = Annotated[tuple[Words, ...], BeforeValidator(_make_list, Words | tuple[Words, ...])]


class Reference(Section):
    """A prompt set to compare with: files, or a dataset on the Hub.

    Attributes:
        name: What tables and plots call it.
        path: A file or a list of files, relative to the config; null for a dataset.
        format: `text`, one prompt a line; `jsonl`, `csv`, `tsv` or `parquet`, one a row; null to
            tell it by the name: .jsonl, .csv, .tsv, .parquet, anything else is text.
        column: The column or key that holds the prompt; needed for all but text.
        dataset: `ORGANISATION/NAME` on the Hub.
        file: A file or a list of files of that repository; null to load it as a dataset. Of a
            Parquet file the column of the prompts is fetched, and nothing else.
        config: Its config, null for the default one; not with `file`.
        split: Its split; not with `file`.
        revision: Its tag or commit; needed for a dataset, since a branch may move.
        draw: Most prompts of it, a random draw; null for all.
        sha256: Of its prompts as JSON, a line each, as `analysis.json` has it; null to take what
            the Hub holds. A run keeps what it fetched first either way.
        inputs: Images that each prompt comes with: 1 for a set of edits. It tells rules that a
            prompt without a word about an image is an edit all the same.
    """

    name: Name
    path: FilePaths = ()
    format: Format | None = None
    column: Words | None = None
    dataset: Words | None = None
    file: HubFiles = ()
    config: Words | None = None
    split: Words = "train"
    revision: Words | None = None
    draw: Annotated[StrictInt, Field(ge=1)] | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    inputs: Annotated[StrictInt, Field(ge=0, le=100)] = 0

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        files = [*self.path, *map(Path, self.file)]
        is_on_disk = self.path and not (self.dataset or self.file or self.draw or self.sha256)
        is_on_hub = self.dataset and self.revision and (self.column or files) and not self.path
        if not (is_on_disk or is_on_hub):
            raise ValueError(
                "expected either path, one file or several, or dataset with revision, and with "
                "column or file; draw and sha256 go with dataset"
            )
        if self.file and {"config", "split"} & self.model_fields_set:
            raise ValueError("expected no config and split beside file, which is one of them")
        tables = [file for file in files if self.guess_format(file) != "text"]
        if tables and self.column is None:
            raise ValueError(f"expected the column of {tables[0].name!r} that holds the prompt")
        return self

    def guess_format(self, file: Path) -> Format:
        extension = file.suffix.lower().removeprefix(".")
        formats: dict[str, Format] = {
            format_name: format_name for format_name in get_args(Format) if format_name != "text"
        }
        return self.format or formats.get(extension, "text")


class PerplexityOptions(Section):
    """The language model that says how natural a prompt is.

    Attributes:
        model: A causal language model on the Hub, or its folder; the paper's is Pythia-12B.
        revision: Its tag or commit.
        device: `auto`, spread over what there is, or one as torch names it, such as `cuda:0`.
        dtype: Precision of the weights.
        batch_tokens: Most tokens of a batch, padding included; halved when memory runs out.
        window: Most tokens that the model sees at once; null for what it was trained with.
        stride: New tokens of each further window; null for half of the window.
    """

    model: Words = "EleutherAI/pythia-12b"
    revision: Words | None = None
    device: Words = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    batch_tokens: Annotated[StrictInt, Field(ge=1, le=10_000_000)] = 16_384
    window: Annotated[StrictInt, Field(ge=2)] | None = None
    stride: Annotated[StrictInt, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _check_stride(self) -> Self:
        if self.window and self.stride and self.stride >= self.window:
            raise ValueError(
                f"stride is {self.stride} and window {self.window}: expected a smaller stride, so "
                "that every token but the first has something before it"
            )
        return self


class EmbeddingOptions(Section):
    """The sentence-embedding model that places prompts on a map.

    Attributes:
        model: A text encoder on the Hub, or its folder.
        revision: Its tag or commit.
        device: As torch names it; null for an accelerator where there is one.
        batch_size: Prompts at once.
        longest: Most tokens of a prompt; what is longer is cut, and counted.
    """

    model: Words = "sentence-transformers/all-MiniLM-L6-v2"
    revision: Words | None = None
    device: Words | None = None
    batch_size: Annotated[StrictInt, Field(ge=1, le=4096)] = 32
    longest: Annotated[StrictInt, Field(ge=8, le=32_768)] = 256


class AnalysisOptions(Section):
    """How a benchmark is analyzed.

    Attributes:
        references: Prompt sets to compare with; a file of `eval_configs/references` stands for all
            that it lists.
        perplexity: The language model; null to leave perplexity out.
        embedding: The embedding model; null to leave the map out, and to tell tasks apart by their
            words.
        task_engine: Who says which task each prompt of a reference is, as an engine of a config;
            null for plain rules, which know no phrases for tasks.
        before: The release to compare tasks with, a folder or `ORGANISATION/NAME@TAG`; null for
            the one that `update` replaced, where there is one.
        at: Number of prompts at which first bigrams are compared; null for the smallest set.
        seed: Seed of every random draw.
        draws: Draws of the bootstrap.
        similarity: Share of common three-word runs, 0 to 1, from which prompts are near-duplicates.
        examples: Most examples of each keyword.
        font: A font file for the word cloud; null for wordcloud's own, which has no characters of
            Chinese, Japanese or Korean.
    """

    references: tuple[Reference, ...] = ()
    perplexity: PerplexityOptions | None = None
    embedding: EmbeddingOptions | None = None
    task_engine: StoredEngine | None = None
    before: Words | None = None
    at: Annotated[StrictInt, Field(ge=1)] | None = None
    seed: Annotated[StrictInt, Field(ge=0)] = 0
    draws: Annotated[StrictInt, Field(ge=0, le=100_000)] = 1000
    similarity: Annotated[float, Field(gt=0, le=1)] = 0.8
    examples: Annotated[StrictInt, Field(ge=0, le=1000)] = 5
    font: ReadablePath | None = None

    @field_validator("references")
    @classmethod
    def _check_names(cls, references: tuple[Reference, ...]) -> Any:
        return check_distinct(references, [OWN_NAME])

    def resolve_paths(self, folder: Path) -> AnalysisOptions:
        """Resolve files and model folders relative to a folder."""
        references = tuple(
            reference.model_copy(update={"path": tuple(folder / file for file in reference.path)})
            for reference in self.references
        )
        previous = folder / self.before if self.before else None
        update = {
            "references": references,
            "before": str(previous) if previous and previous.exists() else self.before,
            "font": folder / self.font if self.font else None,
            "perplexity": self.perplexity and _resolve_path(self.perplexity, "model", folder),
            "embedding": self.embedding and _resolve_path(self.embedding, "model", folder),
        }
        return self.model_copy(update=update)


def _resolve_path(options: SectionT, key: str, folder: Path) -> SectionT:
    place = getattr(options, key)
    if place is None or not (folder / place).is_dir():
        return options
    return options.model_copy(update={key: str(folder / place)})


ImageSize = Literal["published", "model_budget"]
JudgeWork = Literal["rate", "compare", "answer", "any"]
MaxTokens = Annotated[StrictInt, Field(ge=16, le=65_536)]


class PairwiseConfig(Section):
    """Which pairs of outputs a judge sees side by side.

    Attributes:
        share: Share of all pairs of outputs of one sample, above 0, at most 1.
        seed: Seed of the draw, which is the same for all judges with this seed; of two shares the
            larger has all pairs of the smaller.
    """

    share: Annotated[float, Field(gt=0, le=1)] = 0.1
    seed: Annotated[StrictInt, Field(ge=0)] = 0


class JudgeConfig(Section):
    """One judge of outputs.

    Attributes:
        name: What the table of ratings calls it.
        developer: Who made its model; systems of the same developer are looked at with care, not
            those of an `unknown` one.
        status: `as_published`: the paper's own, still to be had; `substitute`: stands in for one
            that is gone; `current`: none of the paper's.
        stands_for: The paper's judge that it is, or stands in for.
        note: What is as published, and what is not.
        engine: Who answers: a kind of engine and its options, as under `engines`.
        form: `rating`, a number on a scale, with reasons; `choice`, for a judge that only compares
            two outputs; or `scalar`, for one that gives a number without words on a scale of its
            own: systems are ranked by it, and it is averaged with no other judge's. Null for that
            of `judge_file`, or a rating.
        rubrics: What it rates by: `overall`, by which systems are compared, and other rubrics of
            echo-hf, of the config, or of plug-ins; `echo-hf plugins -v` lists them.
        text_samples: What it rates by `text_rendering`: `applicable`, the samples that somebody
            said have text to render, or those of `text_to_image` while nobody was asked;
            `text_to_image`, that split; or `all`.
        mode: `text`: a free answer that ends with [[rating]]; `structured`: JSON with
            explanation and rating.
        scale: Lowest and highest rating; null for those of each rubric.
        decimals: Whether ratings between whole numbers count.
        prompt_file: Instructions of one's own, in place of those of `overall`; with front matter,
            as a rubric has it, or without.
        judge_file: The whole message of a published judge and the pattern of its answers, in place
            of ours: a Markdown file with front matter, or its content.
        pictures: How images are sent: `published`, with a short side of 512 pixels as JPEG, or
            `model_budget`, as they are, within the engine's own limits; null for that of the
            config's protocol.
        max_tokens: Longest answer.
        repeats: How often each output is rated, and each pair compared.
        share: Share of the samples that it rates, above 0, at most 1: the same samples for all
            judges, at least 10 of each split; of two shares the larger has all samples of the
            smaller. Another judge has to rate all, by the same rubric.
        pairwise: Which pairs it compares, when it is asked to.
    """

    name: Name
    developer: Words = UNKNOWN
    status: Literal["as_published", "substitute", "current"] = "current"
    stands_for: Words | None = None
    note: Statement | None = None
    engine: StoredEngine
    form: JudgeForm | None = None
    rubrics: Annotated[tuple[Name, ...], Field(min_length=1), AfterValidator(check_unequal)] = (
        OVERALL,
    )
    text_samples: Literal["applicable", "text_to_image", "all"] = "applicable"
    mode: Literal["text", "structured"] = "text"
    scale: Annotated[Scale, AfterValidator(check_ends)] | None = None
    decimals: bool = False
    prompt_file: ReadablePath | None = None
    judge_file: Annotated[
        JudgeFile | None, BeforeValidator(load_judge_file, ReadablePath | JudgeFile | None)
    ] = None
    pictures: ImageSize | None = None
    max_tokens: MaxTokens = 2048
    repeats: Annotated[StrictInt, Field(ge=1, le=100)] = 1
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    pairwise: PairwiseConfig = PairwiseConfig()

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        is_whole = self.decimals or all(end.is_integer() for end in self.scale or ())
        if self.scale and not is_whole:
            lowest, highest = self.scale
            raise ValueError(
                f"scale is [{lowest:g}, {highest:g}]: expected whole numbers, or decimals: true"
            )
        expected = "as_published or substitute for a judge of the paper"
        check_stand_in(self.name, self.answered_by, self.note, expected)
        return self

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        file = self.judge_file
        if file is not None and self.form not in (None, file.form):
            raise ValueError(f"form is {self.form!r}, and judge_file is of form {file.form!r}")
        if file is None and self.answer_form == "rating":
            return self
        # The route `score` takes a query and a document: no system message, nothing after an image.
        is_pair = self.engine.kind == "pooling" and self.engine.options.get("route") == "score"
        has_layout = file and not file.system and file.split_message()[-1] == ("output", True)
        if is_pair and not has_layout:
            raise ValueError(
                "has route 'score', which takes words and then one image: expected a judge_file "
                "without system that ends with {output}, such as {task}{inputs}{output}"
            )
        name = f"form {self.answer_form!r}" if file is None else "a judge_file"
        others = {
            "prompt_file": self.prompt_file is not None and self.answer_form != "choice",
            "scale": self.scale is not None,
            "decimals": self.decimals,
            "mode: structured": self.mode == "structured" and self.answer_form != "choice",
        }
        if file is not None:
            others |= {"prompt_file": self.prompt_file is not None}
            others |= {"mode: structured": self.mode == "structured"}
        for key in (key for key, is_set in others.items() if is_set):
            raise ValueError(f"has {name} and {key}: expected one of them")
        if self.rubrics != (OVERALL,):
            raise ValueError(
                f"has {name} and rubrics {list(self.rubrics)!r}: expected [{OVERALL}], by which "
                "systems are compared"
            )
        return self

    @property
    def answer_form(self) -> JudgeForm:
        """The form of its answers: a rating, a choice or a scalar."""
        return self.form or (self.judge_file.form if self.judge_file else "rating")

    def can_do(self, work: JudgeWork) -> bool:
        """Return whether it rates single outputs, compares two, or answers by any rubric."""
        if work == "compare":
            is_ours = self.judge_file is None and self.answer_form == "rating"
            return is_ours or self.answer_form == "choice"
        if work == "any":
            return True
        if work == "answer":
            return self.judge_file is None and self.answer_form == "rating"
        return self.answer_form != "choice"

    @property
    def model(self) -> str | None:
        model = self.engine.options.get("model")
        return None if model is None else str(model)

    @property
    def answered_by(self) -> ModelIdentity:
        return ModelIdentity.model_validate(self, from_attributes=True)


class ApplicabilityConfig(Section):
    """Who says which specialised metric fits which sample.

    Attributes:
        engine: Who answers: a kind of engine and its options, as under `engines`.
        ask: `split`: of samples with inputs, whether faces, colors and layout should stay; of
            the others, whether text should be rendered. `all`: all four of every sample.
        max_tokens: Longest answer.
    """

    engine: StoredEngine
    ask: Literal["split", "all"] = "split"
    max_tokens: MaxTokens = 1024


def read_judge(path: Path) -> JudgeConfig:
    return read_shipped_file(path, JudgeConfig, "judge", "eval_configs/judges/qwen2_5_vl_32b.yaml")


def shipped_judges() -> list[Path]:
    return sorted(shipped_configs().glob("judges/*.yaml"))


class MetricOptions(Section):
    """The options of a metric."""

    # Names of those that may be a folder, relative to the config.
    folders: ClassVar[tuple[str, ...]] = ()


def _list_folder_keys(options: BaseModel) -> tuple[str, ...]:
    keys: tuple[str, ...] = getattr(options, "folders", ())  # of another package's own model
    return keys


# Metrics are subclasses of `echo_hf.metrics.Metric`.
METRICS: Registry[Any, None] = Registry("metric", "echo_hf.metrics", packages=["echo_hf.metrics"])


class MetricsOptions(RootModel[Mapping[str, SerializeAsAny[BaseModel]]]):
    """Options of metrics, by the name of each."""

    model_config = ConfigDict(frozen=True)

    @field_validator("root", mode="wrap")
    @classmethod
    def _read_options(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        names = value if isinstance(value, Mapping) else handler(value)
        options: dict[str, BaseModel] = {}
        for name in map(str, names):
            if name not in METRICS.list_names():
                raise ValueError(unknown("metric", name, METRICS.list_names()))
            own_class: type[BaseModel] = METRICS.find(name).Options
            try:
                section = {} if names[name] is None else names[name]
                options[name] = own_class.model_validate(section)
            except ValidationError as error:
                raise ValueError(first_error(error, f"metrics.{name}", own_class)) from None
        return options

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders that options name, on this machine."""
        folders = (
            getattr(options, key)
            for options in self.root.values()
            for key in _list_folder_keys(options)
        )
        return tuple(path for path in map(Path, filter(None, folders)) if path.is_absolute())

    def resolve_paths(self, folder: Path) -> MetricsOptions:
        resolved = dict(self.root)
        for name, options in resolved.items():
            for key in _list_folder_keys(options):
                resolved[name] = _resolve_path(resolved[name], key, folder)
        return MetricsOptions.model_construct(root=resolved)


MODULE = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
ModuleRule = match_pattern(MODULE, "the name of a module that can be imported, such as my_metrics")
Modules = Annotated[tuple[Annotated[Words, ModuleRule], ...], AfterValidator(check_unequal)]


class PluginModules(Section):
    """The key of a config that is read before all others."""

    plugins: Modules = ()


class CarriedRelease(Section):
    """An older release whose samples are asked about again.

    Attributes:
        release: The folder of a release or its run, or `ORGANISATION/NAME@TAG` on the Hub.
        samples: How many of each of its benchmark splits are drawn at random.
        seed: Seed of the draw; of two numbers of samples the larger has all of the smaller.
    """

    release: Annotated[Words, Field(min_length=1)]
    samples: Annotated[StrictInt, Field(ge=1)] = 50
    seed: Annotated[StrictInt, Field(ge=0)] = 0


class SuccessOptions(Section):
    """The rule by which outputs succeed, where a sample has several.

    Attributes:
        rule: `rating`, at least the threshold by most judges; `checks`, all kept checks passed; or
            the bounds of metrics, such as `color_shift: 5`, on the side that is better.
        threshold: The rating from which on an output succeeds.
    """

    rule: Literal["rating", "checks"] | dict[str, FiniteFloat] = "rating"
    threshold: FiniteFloat = 7.0

    @field_validator("rule")
    @classmethod
    def _check_metrics(cls, rule: Any) -> Any:
        names = METRICS.list_names()
        if rule == {}:
            raise ValueError("expected a metric and its bound, such as color_shift: 5")
        for name in () if isinstance(rule, str) else rule:
            if name not in names:
                raise ValueError(unknown("metric", name, names))
        return rule


DATES = r"\d{4}-\d{2}-\d{2}\.\.\d{4}-\d{2}-\d{2}"
DemandRule = match_pattern(
    rf"all|[1-9][0-9]{{0,2}}d|{DATES}", "all, days before the newest post such as 90d, or FROM..TO"
)


def _read_day(value: Any) -> Any:
    if isinstance(value, str):
        with suppress(ValueError):
            return datetime.date.fromisoformat(value)
    elif value is None or type(value) is datetime.date:
        return value
    raise ValueError("expected a day, such as 2026-04-01")


class SliceOptions(Section):
    """Boards beside that of all samples: by slice, since a day, and by what people ask for.

    Attributes:
        by: Columns of the samples, each value of which is a slice: `task_family`, `language`,
            `platform`, `month`, `doubts`, or any other that has kinds, also those of plug-ins.
        since: Only samples that were posted on this day or later count here.
        demand: The time in which it counts how often a task was asked for: `all`, so many days
            before the newest post, such as `90d`, or two days, `2026-03-01..2026-04-30`; null for
            no board by demand.
    """

    by: Annotated[tuple[Words, ...], AfterValidator(check_unequal)] = ()
    since: Annotated[datetime.date | None, BeforeValidator(_read_day)] = None
    demand: Annotated[str, DemandRule] | None = None

    @field_validator("demand")
    @classmethod
    def _check_dates(cls, demand: str | None) -> str | None:
        if demand and ".." in demand:
            first, last = map(datetime.date.fromisoformat, demand.split(".."))
            if last < first:
                raise ValueError("expected the earlier day first")
        return demand

    def replace(self, **given: Any) -> SliceOptions:
        """Return a copy with the options of a command in place of its own; null keeps them."""
        changes = {name: value for name, value in given.items() if value is not None}
        try:
            return SliceOptions.model_validate({**self.model_dump(), **changes})
        except ValidationError as error:
            raise ConfigError(first_error(error, "slices", SliceOptions)) from None

    @property
    def is_empty(self) -> bool:
        return not (self.by or self.since or self.demand)


class EvaluationBase(Section):
    """The part of a config that evaluates systems on a benchmark.

    Attributes:
        name: Names the run's folder and, for a benchmark, the release's tag.
        runs: Folder of runs, relative to the config; null for `runs` beside it. `--runs` and
            ECHO_HF_RUNS come first.
        systems: The systems under test: files of `eval_configs/systems`, or their content.
        judges: Who rates their outputs: files of `eval_configs/judges`, or their content.
        rubrics: What judges may rate by, beside the rubrics that echo-hf and plug-ins bring:
            Markdown files with front matter, or their content.
        applicability: Who says which metric fits which sample; null where nobody is asked.
        metrics: Options of metrics, by name. One that is not measured by default is where it is
            named; every other one is measured in any case.
        analysis: How prompts, feedback and activity are analyzed.
        protocol: Whose arithmetic is used where the paper's released code and its text differ.
        board: Which board comes first: `ratings` of one output at a time, by win rate, or
            `pairwise`, strengths and decided pairs by choices between two outputs; then `eval` has
            judges choose as well, and `judge --pairwise --budget` spends it on undecided pairs.
        anchors: A board whose Bradley-Terry strengths stay as they are, so that a system that joins
            moves no other: the `results.json` of a run, the folder of a release, or
            `ORGANISATION/NAME@TAG` on the Hub, with the same samples and judges; null for none.
        outputs: How many outputs each system draws of a sample, with seeds that follow each other.
        draws: What boards show: the `first` output of each sample, or `all`, by the mean rating.
        success: What of several outputs is a success, so that one has a price.
        slices: Boards by slice of the samples, since a day, and by what people ask for.
        carry: Older releases, samples of which are carried along: new systems draw them as well,
            and today's judges rate old and new outputs side by side, so that systems of several
            releases compare. They stand in no board, split or difference.
        runner: Where engines and systems compute, and stages are called.
        plugins: Modules of installed packages that register metrics, stages, platforms and more
            when they are imported; what packages declare as entry points is there without a name.
    """

    name: Name
    # A run is found where it lies, and not by what it once was told.
    runs: Annotated[ReadablePath | None, Field(exclude=True)] = None
    systems: tuple[SystemConfig, ...] = ()
    judges: tuple[JudgeConfig, ...] = ()
    applicability: ApplicabilityConfig | None = None
    metrics: MetricsOptions = MetricsOptions({})
    analysis: AnalysisOptions = AnalysisOptions()
    protocol: Literal["published", "corrected"] = "corrected"
    board: Literal["ratings", "pairwise"] = "ratings"
    anchors: Words | None = None
    outputs: OutputCount = 1
    draws: DrawChoice = "first"
    success: SuccessOptions = SuccessOptions()
    slices: SliceOptions = SliceOptions()
    carry: tuple[CarriedRelease, ...] = ()
    runner: RunnerOptions = RunnerOptions()
    plugins: Modules = ()
    rubrics: tuple[Rubric, ...] = ()
    _file: Path | None = PrivateAttr(None)
    _name: str = PrivateAttr("")

    @property
    def file(self) -> Path | None:
        """The file that it was read from; null for one that was made in Python."""
        return self._file

    @property
    def is_renamed(self) -> bool:
        """Whether it has another name than in its file, as a part of it has."""
        return self._file is not None and self.name != self._name

    def __eq__(self, other: object) -> bool:
        """Return whether both say the same, wherever they were read from."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def read_from(self, path: Path) -> Self:
        """Return a copy with its file, and paths resolved relative to it."""
        path = path.resolve()
        runs = self.runs and (path.parent / self.runs).resolve()
        copy = self.model_copy(update={"runs": runs})
        copy._file, copy._name = path, self.name
        return copy

    @field_validator("systems", "judges")
    @classmethod
    def _check_names(cls, members: tuple[Any, ...]) -> Any:
        return check_distinct(members)

    @field_validator("carry")
    @classmethod
    def _check_carried(cls, carried: tuple[CarriedRelease, ...]) -> tuple[CarriedRelease, ...]:
        check_unequal(tuple(each.release for each in carried))
        return carried

    def find_rubric(self, name: str, place: str = "") -> Rubric:
        """Return a rubric of this config, of echo-hf or of a plug-in."""
        own = {rubric.name: rubric for rubric in self.rubrics}
        if name in own:
            return own[name]
        if name not in (known := RUBRICS.list_names()):
            raise ConfigError(unknown("rubric", name, sorted({*own, *known}), place))
        return RUBRICS.find(name)

    @model_validator(mode="after")
    def _check_rubrics(self) -> Self:
        if self.rubrics:
            reserved = RESERVED.union(METRICS.list_names(), RUBRICS.list_names())
            check_distinct(self.rubrics, sorted(reserved))
        for judge in self.judges:
            for name in judge.rubrics:
                if name not in (OVERALL, TEXT_RENDERING):  # which each config has
                    try:
                        self.find_rubric(name, f"judge {judge.name!r}")
                    except ConfigError as error:
                        raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        for judge in self.judges if self.protocol == "published" else ():
            is_own = judge.judge_file is not None or judge.answer_form == "scalar"
            if is_own and judge.can_do("rate"):
                raise ValueError(
                    f"judge {judge.name!r} has a judge_file or form 'scalar', which protocol "
                    "'published' does not know: leave it out, or write protocol: corrected"
                )
        for judge in (judge for judge in self.judges if judge.share < 1):
            if self.protocol == "published":
                raise ValueError(
                    f"judge {judge.name!r} has share {judge.share:g}, which protocol 'published' "
                    "does not know: leave it out, or write protocol: corrected"
                )
            for rubric in judge.rubrics:
                if not any(rubric in other.rubrics and other.share == 1 for other in self.judges):
                    raise ValueError(
                        f"judge {judge.name!r} has share {judge.share:g}, and nobody rates all "
                        f"samples by {rubric!r}: expected a judge with this rubric and without "
                        "share"
                    )
        return self

    def run_by(self, kind: str | None) -> Self:
        """Return a copy with another kind of runner; null for its own."""
        if kind is None or kind == self.runner.kind:
            return self
        if kind not in (kinds := get_args(RunnerOptions.model_fields["kind"].annotation)):
            raise ConfigError(unknown("runner", kind, kinds))
        return self.model_copy(update={"runner": RunnerOptions.model_validate({"kind": kind})})


class EvaluationConfig(EvaluationBase):
    """Evaluates systems on an existing benchmark.

    Attributes:
        benchmark: Folder of a release, or `ORGANISATION/NAME@TAG` on the Hub.
    """

    benchmark: Annotated[Words, Field(min_length=1)]


EXAMPLE_FILE = "eval_configs/references/figure3.yaml"


def load_named_files(data: Any, folder: Path) -> Any:
    """Replace the named files of systems, judges and references by their content."""
    data = load_shared(data, "systems", read_system, folder)
    data = load_shared(data, "judges", read_judge, folder)
    data = load_shared(data, "rubrics", read_rubric, folder)
    analysis = data.get("analysis") if isinstance(data, dict) else None
    analysis = analysis if isinstance(analysis, dict) else {}
    references = analysis.get("references")
    if not isinstance(references, list) or not any(
        isinstance(reference, str) for reference in references
    ):
        return data
    lists = [
        _read_references(get_config_place(reference, folder))
        if isinstance(reference, str)
        else [reference]
        for reference in references
    ]
    return {
        **data,
        "analysis": {
            **analysis,
            "references": [reference for group in lists for reference in group],
        },
    }


def _read_references(path: Path) -> list[Any]:
    references = read_yaml(path, "references", EXAMPLE_FILE)
    if not isinstance(references, list):
        raise ConfigError(f"{path}: expected a list of references, such as {EXAMPLE_FILE}")
    folder = path.resolve().parent
    for reference in references:
        if isinstance(reference, dict) and isinstance(reference.get("path"), str | list):
            reference["path"] = [str(folder / str(file)) for file in _make_list(reference["path"])]
    return references
