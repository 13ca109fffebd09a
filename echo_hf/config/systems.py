"""Config sections of systems under test, and the shared files of systems."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from echo_hf.config.checks import (
    UNKNOWN,
    Devices,
    ModelIdentity,
    Name,
    Section,
    Statement,
    StrictInt,
    Words,
    check_stand_in,
    expect_one_of,
    first_error,
    read_yaml,
    refuse_secrets,
)
from echo_hf.errors import ConfigError, unknown

CappedDollars = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
MAX_OUTPUTS = 64  # of one system for one sample
DrawChoice = Literal["first", "all"]
OutputCount = Annotated[StrictInt, Field(ge=1, le=MAX_OUTPUTS)]
SideLength = Annotated[StrictInt, Field(ge=16, le=8192)]


class FixedSize(Section):
    """A size for every output.

    Attributes:
        width: In pixels.
        height: In pixels.
    """

    width: SideLength
    height: SideLength


OutputSize = Annotated[
    Literal["auto", "match_input"] | FixedSize,
    expect_one_of("auto, match_input, or {width: 1024, height: 1024}, with sides from 16 to 8192"),
]


class Limits(Section):
    """How hard a system is worked, which changes no output.

    Attributes:
        concurrency: Most tasks at a time; null for the adapter's own.
        per_minute: Most tasks begun in a minute; null for no limit.
        attempts: Most tries of a task whose failure may pass, such as a busy server.
        timeout_s: Longest wait for one output, in seconds.
        devices: For models on this machine, one process on each of these: `all` GPUs, a number of
            them (of processes, where there is no GPU), or GPUs such as `[0, 1]`; null for one
            model, in this process.
    """

    concurrency: Annotated[StrictInt, Field(ge=1, le=256)] | None = None
    per_minute: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    attempts: Annotated[StrictInt, Field(ge=1, le=20)] = 5
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    devices: Devices | None = None


class OutputPrice(Section):
    """The price of an output.

    Attributes:
        usd_per_image: US dollars for one image, whatever its tokens.
        text_in: US dollars for a million tokens of text that are sent.
        image_in: US dollars for a million tokens of images that are sent.
        text_out: US dollars for a million tokens of text that come back, with thinking.
        image_out: US dollars for a million tokens of images that come back.
        as_of: The day on which these prices were true.
    """

    usd_per_image: CappedDollars | None = None
    text_in: CappedDollars | None = None
    image_in: CappedDollars | None = None
    text_out: CappedDollars | None = None
    image_out: CappedDollars | None = None
    as_of: datetime.date


def read_last_day(value: Any) -> Any:
    """Return a day, the last one of a month such as 2026-05."""
    if isinstance(value, datetime.date) or value is None:
        return value
    try:
        if not re.fullmatch(r"20\d{2}-\d{2}(-\d{2})?", str(value)):
            raise ValueError
        if len(str(value)) > len("2026-05"):
            return datetime.date.fromisoformat(str(value))
        first = datetime.date.fromisoformat(f"{value}-01")
    except ValueError:
        raise ValueError("expected a month or a day of this century, such as 2026-05") from None
    return first.replace(day=calendar.monthrange(first.year, first.month)[1])


class SystemConfig(Section):
    """One system under test.

    Attributes:
        name: What tables and folders call it.
        adapter: How it is run; `echo-hf systems` lists the adapters.
        model: Its model, as the adapter names one.
        developer: Who made it; judges of the same developer are looked at with care, those of an
            `unknown` one cannot be.
        status: `as_published`: the paper's own, still to be had; `substitute`: stands in for one
            that is gone; `replay`: outputs that somebody made before; `current`: none of the
            paper's.
        stands_for: The paper's system that it is, or stands in for.
        note: What is as published, and what is not.
        parameters: The adapter's own options, which it checks.
        size: `auto`, the system's own choice; `match_input`, the shape of the first input; or a
            width and height.
        seed: Seed of the first output of a sample, where the system takes one; the second has the
            next number, and so on.
        limits: How hard it is worked.
        price: What an output costs; null for the price list's, where that has the model.
        trained: The last day or month of what it may have been trained on, such as 2026-05: its
            lead on older samples is held against that on newer ones.
        outputs: How many outputs it draws of each sample; null for as many as the evaluation says.
    """

    name: Name
    adapter: Words
    model: Words | None = None
    developer: Words = UNKNOWN
    status: Literal["as_published", "substitute", "replay", "current"] = "current"
    stands_for: Words | None = None
    note: Statement | None = None
    parameters: Mapping[str, Any] = {}
    size: OutputSize = "auto"
    seed: Annotated[StrictInt, Field(ge=0, lt=2**31)] = 0
    limits: Limits = Limits()
    price: OutputPrice | None = None
    trained: Annotated[datetime.date, BeforeValidator(read_last_day)] | None = None
    outputs: OutputCount | None = None

    @property
    def usd_per_image(self) -> float | None:
        """Price of an image now, null where unknown."""
        if self.adapter == "files":  # whatever it cost when it was made
            return 0.0
        return self.price.usd_per_image if self.price else None

    @model_validator(mode="after")
    def _check_stand_in(self) -> Self:
        options = {"model": self.model, "note": self.note, "parameters": self.parameters}
        refuse_secrets(options)
        expected = "as_published, substitute or replay for a system of the paper"
        check_stand_in(self.name, self.answered_by, self.note, expected)
        return self

    @property
    def answered_by(self) -> ModelIdentity:
        return ModelIdentity.model_validate(self, from_attributes=True)


# The one parameter, of whatever adapter, that is a place on this machine.
FOLDER_KEY = "folder"
SectionT = TypeVar("SectionT", bound=Section)


def read_shipped_file(path: Path, model: type[SectionT], kind: str, example: str) -> SectionT:
    """Read a system or a judge from its own file, with paths made absolute."""
    if not (path.exists() or path.is_symlink()):
        names = [file.stem for file in shipped_configs().glob(f"{kind}s/*.yaml")]
        raise ConfigError(
            f"no {kind} {str(path)!r}: expected a YAML file of yours, or one that echo-hf brings: "
            f"{unknown(kind, path.stem, names)}"
        )
    data = read_yaml(path, kind, example)
    try:
        return model.model_validate(_resolve_paths(data, path.resolve().parent))
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), model)) from None


def read_system(path: Path) -> SystemConfig:
    return read_shipped_file(path, SystemConfig, "system", "eval_configs/systems/flux_kontext.yaml")


def load_shared(data: Any, key: str, read: Callable[[Path], Section], folder: Path) -> Any:
    if not isinstance(data, dict) or not isinstance(data.get(key), list):
        return data
    sections = [
        read(get_config_place(entry, folder)).model_dump(mode="json")
        if isinstance(entry, str)
        else _resolve_paths(entry, folder)
        for entry in data[key]
    ]
    return {**data, key: sections}


def _resolve_paths(section: Any, folder: Path) -> Any:
    if not isinstance(section, dict):
        return section
    parameters = section.get("parameters")
    if isinstance(parameters, dict) and isinstance(parameters.get(FOLDER_KEY), str):
        absolute = str(folder / parameters[FOLDER_KEY])
        return {**section, "parameters": {**parameters, FOLDER_KEY: absolute}}
    files = {key: section.get(key) for key in ("prompt_file", "judge_file")}
    named = {key: str(folder / file) for key, file in files.items() if isinstance(file, str)}
    return {**section, **{key: path for key, path in named.items() if files[key]}}


def shipped_configs() -> Path:
    """Return the folder of the configs that echo-hf brings."""
    package = Path(str(files("echo_hf")))
    installed = package / "eval_configs"
    return installed if installed.is_dir() else package.parent / "eval_configs"


def find_config(path: Path) -> Path:
    shipped = shipped_configs()
    is_own = path.exists() or path.parts[:1] != (shipped.name,) or ".." in path.parts
    shipped_file = shipped.parent / path
    return path if is_own or not shipped_file.is_file() else shipped_file


def get_config_place(name: str, folder: Path) -> Path:
    own, shipped = folder / name, shipped_configs() / name
    return shipped if not own.exists() and shipped.is_file() else own


def list_shipped_systems() -> list[Path]:
    return sorted(shipped_configs().glob("systems/*.yaml"))


def shipped_config() -> Path:
    return shipped_configs() / "quickstart.yaml"
