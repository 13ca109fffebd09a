"""What a system under test is given and gives back, and how adapters are found by name.

A system is a context manager: the first `draw` loads its model or connects, leaving the context
frees it; entering costs nothing. `draw` blocks, and may be called by as many threads at a time as
`concurrency` says. What becomes of a task is a value, never an exception, but for two: `Passing`, a
failure that another attempt may not meet, and `GenerationError`, after which no task could succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from echo_hf.config_check import first_error
from echo_hf.engines.base import ImageRef, Usage
from echo_hf.errors import GenerationError, MissingExtraError, unknown
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.config import SystemConfig

ENTRY_POINTS = "echo_hf.systems"
# Parameters of whatever adapter that say where something is, and not what.
NOT_DECIDING = frozenset({"folder", "api_key_env"})
Options = TypeVar("Options", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Task:
    """One sample as a system gets it.

    Attributes:
        sample_id: The sample.
        sample_digest: Sha256 of its prompt and inputs.
        split: Config of the benchmark that it is in.
        prompt: The instruction.
        inputs: Its input pictures, in order.
        sources: Addresses of the posts that it was made from.
    """

    sample_id: str
    sample_digest: str
    split: str
    prompt: str
    inputs: tuple[ImageRef, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """What became of a task.

    Attributes:
        outcome: What became of it.
        picture: The encoded picture, the very bytes that came; null when there is none.
        stage: Where it ended; null for `ok`.
        code: The system's own error code.
        text: What was said beside or instead of a picture, such as thoughts or a refusal.
        seed: Seed that was used, null when the system takes none.
        revised_prompt: The prompt as the system rewrote it.
        model_reported: Name of the model in the answer.
        usage: Tokens, null where the system counts none.
        cost_usd: Price in US dollars, null when unknown.
        details: What else decides or explains the picture, for its provenance: sizes, how several
            inputs were given, numbers of a request. JSON can hold it.
    """

    outcome: Outcome
    picture: bytes | None = None
    stage: OutcomeStage | None = None
    code: str | None = None
    text: str | None = None
    seed: int | None = None
    revised_prompt: str | None = None
    model_reported: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Passing(Exception):  # noqa: N818 - it is no error yet: another attempt may do
    """A failure that may pass: a busy server, a lost connection.

    Args:
        text: What happened, without anything secret.
        code: The system's own error code.
        wait_s: How long the system asks to wait before the next attempt, null when it does not say.
        usage: Tokens that were used all the same, null for none.
        cost_usd: Their price in US dollars, null when unknown.
    """

    def __init__(
        self,
        text: str,
        code: str | None = None,
        wait_s: float | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
    ) -> None:
        super().__init__(text)
        self.text, self.code, self.wait_s = text, code, wait_s
        self.usage, self.cost_usd = usage, cost_usd


@dataclass(frozen=True, slots=True)
class Retired:
    """A model that is no longer there.

    Attributes:
        text: What its maker says, or answers.
        code: The system's own error code.
    """

    text: str
    code: str | None = None


@runtime_checkable
class System(Protocol):
    """Something that draws pictures for tasks.

    Attributes:
        concurrency: Most tasks at a time, unless a config says otherwise.
        determinism: What the same seed gives, in a sentence.
    """

    concurrency: int
    determinism: str

    def signature(self) -> Mapping[str, Any]:
        """Everything that decides a picture: adapter, model, revision, parameters, size, seed.

        It is cheap, the same each time, holds no secret, and needs neither model nor network.
        """
        ...

    def preflight(self) -> Retired | None:
        """Finds out, before anything is spent, whether the model is still there.

        Returns:
            Null when it is, or when that cannot be known.

        Raises:
            GenerationError: No task could succeed, such as without a key.
        """
        ...

    def draw(self, task: Task) -> Drawn:
        """Draws the picture that a task asks for.

        Raises:
            Passing: Another attempt may go better.
            GenerationError: No task could succeed.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


SystemFactory = Callable[[SystemConfig], System]
_FACTORIES: dict[str, SystemFactory] = {}
_NEEDS: dict[str, Needs] = {}


@dataclass(frozen=True, slots=True)
class Needs:
    """What an adapter is for, and what has to be there for it.

    Attributes:
        about: What it is for, in a few words.
        extra: The extra of echo-hf that brings its packages; null where it needs none.
        packages: The packages, by the names under which they are imported.
        key: Environment variable of the key, where the config names none; null without one.
    """

    about: str = ""
    extra: str | None = None
    packages: tuple[str, ...] = ()
    key: str | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed; none of them is imported to find out."""
        return tuple(name for name in self.packages if not _is_installed(name))


def register(
    name: str,
    about: str = "",
    *,
    extra: str | None = None,
    packages: tuple[str, ...] = (),
    key: str | None = None,
) -> Callable[[SystemFactory], SystemFactory]:
    """Makes an adapter known by a name; other packages use the `echo_hf.systems` entry points.

    Args:
        name: The `adapter` that a config names it by.
        about: What it is for, in a few words.
        extra: The extra of echo-hf that brings its packages.
        packages: The packages it imports.
        key: Environment variable of its key, where the config names none.

    Returns:
        A decorator for a callable that takes the config of a system and returns the system.
    """

    def add(factory: SystemFactory) -> SystemFactory:
        _FACTORIES[name] = factory
        _NEEDS[name] = Needs(about, extra, packages, key)
        return factory

    return add


def adapter_names() -> list[str]:
    """The names that `make_system` understands, in order."""
    _load_ours()
    return sorted({*_FACTORIES, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def adapter_needs() -> dict[str, Needs]:
    """What each adapter is for and needs, by name, in order."""
    names = adapter_names()
    return {name: _NEEDS.get(name, Needs("from another package")) for name in names}


def make_system(config: SystemConfig) -> System:
    """Makes the system that a config describes.

    Args:
        config: The config.

    Returns:
        The system; its model is not loaded before its first `draw`.

    Raises:
        GenerationError: There is no such adapter, or it does not take one of the parameters.
        MissingExtraError: A package of the adapter is not installed.
    """
    _load_ours()
    factory = _FACTORIES.get(config.adapter) or _from_elsewhere(config)
    needs = _NEEDS.get(config.adapter, Needs())
    if needs.extra is not None and needs.missing:
        raise MissingExtraError(f"system {config.name!r}", needs.extra)
    return factory(config)


def described(config: SystemConfig) -> dict[str, Any]:
    """What a config says that decides a picture: the beginning of a system's signature.

    Limits and prices decide none, nor where a folder lies or which variable holds a key: another
    machine goes on with what was drawn here.

    Args:
        config: The config of the system.

    Returns:
        Its adapter, model, parameters, size and seed, as JSON holds them.

    Example:
        >>> config = SystemConfig(name="mine", adapter="command", developer="Northlight",
        ...                       status="current", parameters={"steps": 28, "folder": "/data"})
        >>> described(config)["parameters"], described(config)["size"]
        ({'steps': 28}, 'auto')
    """
    shown = config.model_dump(mode="json", include={"adapter", "model", "size", "seed"})
    parameters = config.model_dump(mode="json", include={"parameters"})["parameters"]
    return {**shown, "parameters": _deciding(parameters)}


def options_of(config: SystemConfig, options: type[Options]) -> Options:
    """The parameters of a system as its adapter takes them.

    Args:
        config: The config of the system.
        options: Model of the parameters.

    Returns:
        The parameters, checked.

    Raises:
        GenerationError: One is unknown, missing, or has a bad value.
    """
    try:
        return options.model_validate(dict(config.parameters))
    except ValidationError as error:
        place = f"system {config.name!r}: parameters"
        raise GenerationError(first_error(error, place, options)) from None


def model_of(config: SystemConfig) -> str:
    """The model of a system whose adapter needs one.

    Args:
        config: The config of the system.

    Returns:
        Its model.

    Raises:
        GenerationError: It names none.
    """
    if config.model is None:
        raise GenerationError(
            f"system {config.name!r} has no model: adapter {config.adapter!r} needs one, such as "
            "`model: ORGANISATION/NAME`"
        )
    return config.model


def _deciding(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deciding(one) for key, one in value.items() if key not in NOT_DECIDING}
    return [_deciding(one) for one in value] if isinstance(value, list) else value


def _from_elsewhere(config: SystemConfig) -> SystemFactory:
    points = entry_points(group=ENTRY_POINTS)
    point = next((one for one in points if one.name == config.adapter), None)
    if point is None:
        place = f"system {config.name!r}"
        raise GenerationError(unknown("adapter", config.adapter, adapter_names(), place))
    try:
        factory: SystemFactory = point.load()
    except (ImportError, AttributeError) as error:
        raise GenerationError(
            f"adapter {config.adapter!r} comes from {point.value!r}, which cannot be loaded "
            f"({error}): install or mend that package"
        ) from error
    return factory


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _load_ours() -> None:
    from echo_hf.systems import adapters  # noqa: F401 - importing it registers them
