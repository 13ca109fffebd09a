"""Config sections: target, posts, stages, splits, release, schedule."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, create_model, model_validator

from echo_hf._infra.registry import Registry
from echo_hf.config.checks import (
    Coordinates,
    License,
    LongText,
    Name,
    ReadablePath,
    Section,
    StrictInt,
    Words,
    match_pattern,
)
from echo_hf.config.collection import FetchPolicy, Search, SourceColumns
from echo_hf.errors import ConfigError, StageError
from echo_hf.reasons import Reason

if TYPE_CHECKING:
    from echo_hf.config.loading import Config


class Hazard(Reason):
    """A hazard's code, with its name."""

    VIOLENT_CRIMES = "S1", "violent crimes"
    NON_VIOLENT_CRIMES = "S2", "crimes without violence"
    SEX_CRIMES = "S3", "sex crimes"
    CHILD_EXPLOITATION = "S4", "sexual exploitation of children"
    DEFAMATION = "S5", "defamation"
    SPECIALIZED_ADVICE = "S6", "advice that only a specialist may give"
    PRIVACY = "S7", "privacy"
    INTELLECTUAL_PROPERTY = "S8", "intellectual property"
    WEAPONS = "S9", "weapons of mass harm"
    HATE = "S10", "hate"
    SELF_HARM = "S11", "suicide and self-harm"
    SEXUAL_CONTENT = "S12", "sexual content"
    ELECTIONS = "S13", "false facts about elections"
    CODE_ABUSE = "S14", "abuse of code interpreters"
    UNKNOWN = "unknown", "a hazard without a name, or with one that no list knows"


NAMED_HAZARDS = tuple(hazard for hazard in Hazard if hazard is not Hazard.UNKNOWN)
REMOVED_HAZARDS = tuple(
    hazard for hazard in NAMED_HAZARDS if hazard is not Hazard.INTELLECTUAL_PROPERTY
)
ANY_HAZARD = "any"


def sort_hazards(hazards: Iterable[Hazard]) -> list[str]:
    """Return the codes of hazards, each once, in the order of the list."""
    codes = set(hazards)
    return [hazard.value for hazard in Hazard if hazard in codes]


def _expand_hazards(codes: Any) -> Any:
    if codes == ANY_HAZARD:
        return NAMED_HAZARDS
    if not isinstance(codes, list | tuple) or any(code not in NAMED_HAZARDS for code in codes):
        raise ValueError(
            f"expected {ANY_HAZARD}, or a list of codes from {NAMED_HAZARDS[0]} to "
            f"{NAMED_HAZARDS[-1]}"
        )
    return codes


DEFAULT_ENGINE = "reader"
HazardCode = Annotated[str, Field(pattern="^S([1-9]|1[0-4])$")]
Hazards = Annotated[
    tuple[Hazard, ...], BeforeValidator(_expand_hazards, Literal["any"] | tuple[HazardCode, ...])
]


class Target(Section):
    """The model that people talk about; a second release is another one of these.

    Attributes:
        name: How it is called in prose.
        developer: Who made it.
        released: The day it was released.
        aliases: Other names that people use for it.
        others: Other image models, whose images are not its own.
        chat_window: The application whose screenshots people share.
    """

    name: Words
    developer: Words
    released: datetime.date
    aliases: tuple[Words, ...] = ()
    others: tuple[Words, ...] = ()
    chat_window: Words | None = None

    @property
    def prompt_fields(self) -> dict[str, str]:
        """Values of the `$name` fields of prompt files."""
        aliases, others = (
            ", ".join(f'"{name}"' for name in names)
            for names in ((self.name, *self.aliases), self.others)
        )
        return {
            "target": self.name,
            "developer": self.developer,
            "aliases": aliases,
            "others": others or "any other image model",
            "chat_window": self.chat_window or f"{self.name}'s own window",
        }


class TablePlace(Section):
    """Where a table is in its file.

    Attributes:
        rows: The key of the rows in a JSON document, such as hits; with dots for keys below keys.
    """

    rows: Words


class PostsSource(Section):
    """One file of posts, or a platform that is asked for them.

    Attributes:
        source: Name of the reader, such as jsonl, x, reddit or table; of the platform for a search.
        path: The file, relative to the config; readers of bundled posts need none.
        keywords: The search terms that found these posts, when the file does not say.
        search: What the platform is asked by `echo-hf collect`; null for a file.
        columns: Which column is what, for source `table` alone.
        table: Where the rows are, for source `table` and JSON that has them below a key.
        unlisted: Whether posts are taken in that everybody may read and whose authors keep them
            out of searches; for Mastodon.
    """

    source: str
    path: ReadablePath | None = None
    keywords: tuple[Words, ...] = ()
    search: Search | None = None
    columns: SourceColumns | None = None
    table: TablePlace | None = None
    unlisted: bool = False

    @property
    def reader(self) -> str:
        """The name of the reader, which may depend on what is taken in."""
        return f"{self.source}_unlisted" if self.unlisted else self.source

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if self.table is not None and self.columns is None:
            raise ValueError("has table and no columns: expected both, for source 'table'")
        if self.search is not None and (self.path is not None or self.keywords):
            key = "path" if self.path is not None else "keywords"
            raise ValueError(f"has {key} and search: expected a file, or a platform to ask")
        return self


class Shard(Section):
    """Which part of a benchmark this config builds; `build --shard` writes it.

    Attributes:
        of: The benchmark's name.
        index: Number of the part, from 0.
        count: How many parts there are.
    """

    of: Name
    index: Annotated[StrictInt, Field(ge=0)]
    count: Annotated[StrictInt, Field(ge=1, le=10_000)]

    @model_validator(mode="after")
    def _check_index(self) -> Self:
        if self.index >= self.count:
            raise ValueError(f"index is {self.index}: expected a part from 0 to {self.count - 1}")
        return self

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class RunnerOptions(Section):
    """Where the work of a run is done; what comes out is the same everywhere.

    Attributes:
        kind: `local`, on this machine; `ray`, on the nodes of a Ray cluster. Models that somebody
            hosts are asked from this machine all the same.
        processes: Processes of this machine that share a stage of 20,000 rows or more, of kind
            `local`; null for as many as there are cores, and at most 16. Only Linux has several.
        address: `auto` for the cluster that this machine is part of, or else one that is started
            on it; `local` always starts one; or HOST:PORT of a cluster it is part of.
        actors: Most workers of an engine or system; those that no node has room for wait.
        gpus_per_actor: GPUs that a worker takes; 0 for a model on the processor.
        cpus_per_actor: CPUs that a worker takes of its node's.
        micro_batch: Most answers of a worker that have not been stored: what is lost with a node.
        shared: Whether all nodes see the folder of runs; null to find out. Where one does not,
            images are sent to it.
    """

    kind: Literal["local", "ray"] = "local"
    processes: Annotated[StrictInt, Field(ge=1, le=256)] | None = None
    address: Annotated[
        str, match_pattern(r"auto|local|[^\s:/]+:\d{1,5}", "auto, local, or HOST:PORT of a cluster")
    ] = "auto"
    actors: Annotated[StrictInt, Field(ge=1, le=10_000)] = 8
    gpus_per_actor: Annotated[float, Field(ge=0, le=64)] = 1
    cpus_per_actor: Annotated[float, Field(ge=0, le=1024)] = 0.5
    micro_batch: Annotated[StrictInt, Field(ge=1, le=10_000)] = 64
    shared: bool | None = None

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        keys = self.model_dump(exclude_defaults=True).keys() - {"kind"}
        if self.kind == "local" and (foreign := keys - {"processes"}):
            raise ValueError(f"has {min(foreign)!r}, which only kind 'ray' takes: add `kind: ray`")
        if self.kind == "ray" and "processes" in keys:
            raise ValueError("has 'processes', which only kind 'local' takes: expected `actors`")
        return self


MAX_POSTS_PER_REQUEST = 64


class StageOptions(Section):
    """Options of a stage; `paper` has the paper's value of each that it states."""

    paper: ClassVar[Mapping[str, str]] = {}


class ModelStageOptions(StageOptions):
    """Who answers a stage's questions.

    Attributes:
        engine: Name of one of the config's engines. Where a config does not say, it is the only
            one, else the one named as the default here, else `reader`.
    """

    engine: str = "text"


class RelevanceOptions(ModelStageOptions):
    """How relevance is judged.

    Attributes:
        keep: Scores, of 1 to 5, that keep a thread.
        posts_per_request: Most posts that a model scores in one answer; each keeps an answer of its
            own, and one that fails is asked about alone. An engine without a model ignores it.
    """

    # Section 3.1, figure D.2.
    paper: ClassVar[Mapping[str, str]] = {"keep": "4, 5", "engine": "gpt-4o"}

    keep: Annotated[tuple[Annotated[StrictInt, Field(ge=1, le=5)], ...], Field(min_length=1)] = (
        4,
        5,
    )
    posts_per_request: Annotated[StrictInt, Field(ge=1, le=MAX_POSTS_PER_REQUEST)] = 1


class DownloadOptions(StageOptions):
    """How images that posts name by their address are fetched.

    Attributes:
        fetch: Whether anybody is asked for them; false uses what earlier runs have fetched.
        limits: Limits of sizes, times and places.
    """

    fetch: bool = True
    limits: FetchPolicy = FetchPolicy()


class ExtractOptions(ModelStageOptions):
    """How samples are extracted.

    Attributes:
        context_characters: Longest rendered thread for one request; a longer one is split.
    """

    paper: ClassVar[Mapping[str, str]] = {"engine": "gpt-4o"}  # figure D.3

    context_characters: Annotated[StrictInt, Field(ge=2000)] = 24_000


class RolesOptions(ModelStageOptions):
    """How input images are told from outputs.

    Attributes:
        engine: Name of one of the config's engines; it has to see images.
        most_pictures: Most images of one request; a sample with more takes several.
    """

    paper: ClassVar[Mapping[str, str]] = {"engine": "gpt-4o"}  # figure D.4

    engine: str = "vision"
    most_pictures: Annotated[StrictInt, Field(ge=2, le=32)] = 16


class ScreenshotsOptions(ModelStageOptions):
    """How screenshots are taken apart.

    Attributes:
        engine: Name of one of the config's engines; it has to see images.
        convention: What the numbers of its boxes mean; `auto` tells it by the engine's
            `coordinates`, else by the model.
        inset: Pixels to leave out along each side of a box, 10 in the released benchmark.
    """

    # The released code, figure D.5.
    paper: ClassVar[Mapping[str, str]] = {"inset": "10", "engine": "qwen2.5-vl"}

    engine: str = "vision"
    convention: Literal["auto", Coordinates] = "auto"
    inset: Annotated[StrictInt, Field(ge=0, le=100)] = 0


class SafetyOptions(ModelStageOptions):
    """How samples are screened for hazards.

    Whatever is removed, every hazard that the guard finds is written into `safety.categories`.

    Attributes:
        engine: Name of one of the config's engines, a guard that sees images.
        form: How it is asked and read: `llama_guard`, `moderation`, or `instructed`, which is any
            model, told by our own instructions; `auto` tells it by the engine's kind and model.
        remove: Codes of hazards that keep a sample out of the benchmark, or `any`, as in the
            paper. The default is all but S8, intellectual property: guards give it to requests in
            the style of a famous studio, a large part of what people really do, and it is a
            question of licences, not of harm.
        most_pictures: Most images of one request; a sample with more takes several.
    """

    # Section 6.
    paper: ClassVar[Mapping[str, str]] = {
        "remove": ", ".join(NAMED_HAZARDS),
        "engine": "llama-guard-4-12b",
    }

    engine: str = "guard"
    form: Literal["auto", "llama_guard", "moderation", "instructed"] = "auto"
    remove: Hazards = REMOVED_HAZARDS
    most_pictures: Annotated[StrictInt, Field(ge=1, le=16)] = 5


class PrivacyOptions(StageOptions):
    """How personal data is removed.

    Attributes:
        image_metadata: `strip` removes what images say beside their pixels, such as where they were
            taken and by whom; `keep` releases them as they were posted, and the card says so.
    """

    image_metadata: Literal["strip", "keep"] = "strip"


STAGES: Registry[Any, None] = Registry(
    "stage",
    "echo_hf.stages",
    {  # in the order in which they run; the options of those that have any are below
        "collect": "echo_hf.collect.collect",
        "relevance": "echo_hf.collect.relevance",
        "threads": "echo_hf.samples.threads",
        "download": "echo_hf.collect.download",
        "extract": "echo_hf.samples.extract",
        "roles": "echo_hf.samples.roles",
        "screenshots": "echo_hf.samples.screenshots",
        "feedback": "echo_hf.curate.feedback",
        # After all stages of the other model, so that each model is loaded once.
        "safety": "echo_hf.curate.safety",
        "privacy": "echo_hf.curate.privacy",
        "splits": "echo_hf.curate.splits",
    },
    StageError,
)
BUILT_IN_STAGES = tuple(STAGES.modules)


class Stages(Section, json_schema_extra={"additionalProperties": {"type": "object"}}):
    """Options of each stage that has any.

    The key of a stage of another package turns it on.

    Attributes:
        relevance: How posts are scored by whether they are about the target.
        download: How images that posts name by their address are fetched.
        extract: How samples are found in threads.
        roles: How input images are told from outputs.
        screenshots: How screenshots of conversations are taken apart.
        feedback: How comments are read.
        safety: How samples are screened for hazards.
        privacy: What is left out of who people are.
    """

    relevance: RelevanceOptions = RelevanceOptions()
    download: DownloadOptions = DownloadOptions()
    extract: ExtractOptions = ExtractOptions()
    roles: RolesOptions = RolesOptions()
    screenshots: ScreenshotsOptions = ScreenshotsOptions()
    feedback: ModelStageOptions = ModelStageOptions()
    safety: SafetyOptions = SafetyOptions()
    privacy: PrivacyOptions = PrivacyOptions()

    @property
    def plugins(self) -> tuple[str, ...]:
        """The stages of other packages that the config turns on."""
        return tuple(name for name in type(self).model_fields if name not in Stages.model_fields)

    def get_engine(self, stage: str) -> str | None:
        options = getattr(self, stage, None)
        return options.engine if isinstance(options, ModelStageOptions) else None


def extend_stages(sections: Any) -> type[Stages]:
    """Return the section of stages with the options of those plug-ins that a config names."""
    names = sections.keys() - Stages.model_fields if isinstance(sections, Mapping) else set[Any]()
    fields: dict[str, Any] = {
        name: (options := _get_options(name), Field(default_factory=options))
        for name in sorted(names & (set(STAGES.list_names()) - STAGES.modules.keys()))
    }
    return create_model("Stages", __base__=Stages, **fields) if fields else Stages


def asks_model(stage: str) -> bool:
    """Return whether a stage has an engine, as its options say."""
    if stage in STAGES.modules:
        return isinstance(getattr(Stages(), stage, None), ModelStageOptions)
    return issubclass(_get_options(stage), ModelStageOptions)


def _get_options(stage: str) -> type[StageOptions]:
    options = getattr(STAGES.find(stage), "Options", None)
    if isinstance(options, type) and issubclass(options, StageOptions):
        return options
    raise StageError(f"stage {stage!r} has Options {options!r}: expected a kind of StageOptions")


class SplitOptions(Section):
    """How the benchmark's splits are drawn.

    Attributes:
        seed: Seed of the order in which candidates are taken.
        cap: Most samples of a split.
        doubts: `analysis` keeps what is doubtful (`samples.doubts`) out of the benchmark until a
            person has kept it; `keep` draws it all the same, except while its images stand in a
            screenshot.
        sealed: The share of new samples of the benchmark that is held back from releases until
            `echo-hf publish --reveal` opens them; they count in the cap.
    """

    seed: StrictInt = 0
    cap: Annotated[StrictInt, Field(ge=1)] = 1000
    doubts: Literal["analysis", "keep"] = "analysis"
    sealed: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0


class ReleaseOptions(Section):
    """Statements of the release on its card.

    Attributes:
        license: Identifier of the licence, as the Hub knows it.
        license_name: Name of the licence where that identifier is `other`.
        license_note: What the licence means, in Markdown; needed for every licence but `other`.
        contact: Where to ask for the removal of a post, beside the repository's discussions.
        citation: How to cite the dataset, in BibTeX.
        human: Whether it has how people ranked outputs, with numbers in place of pseudonyms, so
            that judges can be certified on it.
    """

    license: License = "other"
    license_name: Words | None = None
    license_note: LongText | None = None
    contact: Words | None = None
    citation: LongText | None = None
    human: bool = False

    @model_validator(mode="after")
    def _check_license(self) -> Self:
        # The usual note says that no right is passed on, which no other licence may say.
        if self.license != "other" and self.license_note is None:
            raise ValueError("expected a license_note, which says what the license covers")
        return self


Hours = Annotated[float, Field(ge=0.1, le=168)]


class SubmissionsOptions(Section):
    """How many submissions of others an account may have.

    Attributes:
        open: How many may be open at once.
        in_30_days: How many it may open in 30 days.
    """

    open: Annotated[StrictInt, Field(ge=0, le=1000)] = 2
    in_30_days: Annotated[StrictInt, Field(ge=0, le=10_000)] = 4


class ScheduleOptions(Section):
    """Options of the loop that keeps a benchmark current, for `echo-hf schedule`.

    Attributes:
        repo_id: Dataset on the Hub that releases are proposed to: `ORGANISATION/NAME`.
        budget_usd: US dollars after which one evaluation asks nobody any more; 0 for free ones.
        cron: When a turn begins, in UTC; odd minutes have fewer others in the queue.
        state: Where the run is kept between turns: `ORGANISATION/NAME` of a private dataset for
            GitHub, of a bucket for a Job of the Hub; it holds posts and answers.
        extras: What of echo-hf's extras a turn needs, such as `sources` or `openai`.
        secrets: Names of environment variables that it needs, such as keys of platforms.
        hours: Longest turn.
        flavor: Hardware of a Job, as the Hub calls it.
        private: Whether a dataset that is yet to be made is a private one.
        allow_rules: Propose what plain rules or recorded answers have built.
        allow_unscreened: Propose samples that no safety model has looked at.
        submissions: How many submissions of others an account may have; null to look at none.
    """

    repo_id: Annotated[str, match_pattern(r"[\w.-]+/[\w.-]+", "ORGANISATION/NAME")]
    budget_usd: Annotated[float, Field(ge=0, le=1_000_000)]
    cron: Annotated[
        str, match_pattern(r"[\d*/,-]+( [\d*/,-]+){4}", "five fields, such as 23 4 * * 1")
    ] = "23 4 * * 1"
    state: Annotated[str, match_pattern(r"[\w.-]+/[\w.-]+", "ORGANISATION/NAME")] | None = None
    extras: tuple[Annotated[str, match_pattern(r"[a-z-]+", "such as sources")], ...] = ()
    secrets: tuple[
        Annotated[str, match_pattern(r"[A-Z][A-Z0-9_]*", "such as OPENAI_API_KEY")], ...
    ] = ()
    hours: Hours = 5
    flavor: Annotated[str, match_pattern(r"[a-z0-9-]+", "such as cpu-upgrade")] = "cpu-upgrade"
    private: bool = False
    allow_rules: bool = False
    allow_unscreened: bool = False
    submissions: SubmissionsOptions | None = SubmissionsOptions()


class ChecksOptions(Section):
    """Options of `echo-hf checks`, which turns complaints into questions to judges.

    Attributes:
        engine: Who writes a question: the name of an engine; null for the one that the stage
            `feedback` asks.
        judges: Who answers them: names of judges of the config; empty for all.
        window_days: A check whose complaint nobody made in so many days before the newest post is
            retired.
        proof_threads: Most threads with complaints, and most with praise, that a question is proven
            on; they are drawn by a hash.
    """

    engine: Name | None = None
    judges: tuple[Name, ...] = ()
    proof_threads: Annotated[StrictInt, Field(ge=15, le=100_000)] = 200
    window_days: Annotated[StrictInt, Field(ge=1, le=36_500)] = 180


FormName = Literal["llama_guard", "moderation", "instructed"]
ENDPOINT_KIND = "moderation"
LLAMA_GUARD = re.compile(r"llama[-_. ]?guard(?:[-_. ]?(?P<generation>[0-9]+))?", re.IGNORECASE)


def guard_form(config: Config) -> FormName:
    options = config.stages.safety
    choice = config.engines[options.engine]
    model = choice.options.get("model")
    return choose_guard_form(options.form, choice.kind, None if model is None else str(model))


def choose_guard_form(form: FormName | Literal["auto"], kind: str, model: str | None) -> FormName:
    if kind == ENDPOINT_KIND and form not in ("auto", "moderation"):
        raise ConfigError(
            f"stages.safety.form is {form!r}, and its engine is of kind {kind!r}, which answers "
            "in one form only: expected moderation or auto"
        )
    if form != "auto":
        return form
    if kind == ENDPOINT_KIND:
        return "moderation"
    match = LLAMA_GUARD.search(model or "")
    # Those before the third have fewer hazards, under other numbers: their S8 are weapons.
    if match and match["generation"] not in (None, "3", "4"):
        raise ConfigError(
            f"the safety engine's model {model!r} is not known to name hazards by the codes of "
            "Llama Guard 3 and 4: take one of these, or, where its codes are the same, write "
            "stages: {safety: {form: llama_guard}}"
        )
    return "llama_guard" if match else "instructed"
