"""Systems behind Google's Gemini API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, field_validator

from echo_hf._infra.http_errors import Reply, api_error
from echo_hf._infra.retry import RequestError
from echo_hf.config.checks import Words
from echo_hf.config.systems import FixedSize, Price, Size, SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Retired, Task
from echo_hf.systems.hosted import (
    NO_KEY,
    Connection,
    Host,
    HostedOptions,
    HostedSystem,
    Inputs,
    UnreadableError,
    fate,
    hosted_options,
    http_library,
    limited,
    one_line,
    retired_by,
)
from echo_hf.systems.images import Pixels, SentInput, chosen_size, nearest, unusable, with_image
from echo_hf.systems.plan import Billed, cost_usd
from echo_hf.systems.registry import register

HELD_BACK = frozenset(
    {
        "BLOCKLIST",
        "ESCALATION",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
# The model came to its end and drew nothing. Whatever else ends an answer, such as IMAGE_OTHER, for
# which no reason is known, or MALFORMED_RESPONSE, broke it off.
UNDRAWN = frozenset({"NO_IMAGE", "STOP"})
UNSPECIFIED = "BLOCKED_REASON_UNSPECIFIED"
ACCOUNT_STOPPED = "PUP_LIMITED_DISABLED"
IMAGES = "image/"

Document = Mapping[str, Any]


def drawn_from(document: Document, price: Price | None) -> GenerationResult:
    """What an answer makes of a task."""
    first = (document.get("candidates") or [{}])[0]
    parts = (first.get("content") or {}).get("parts") or []
    images, reason = list(_images(parts)), _named(first.get("finish_reason"))
    counted = document.get("usage_metadata")
    known = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        code=reason,
        text="\n".join(part["text"] for part in parts if part.get("text"))
        or first.get("finish_message"),
        model_reported=document.get("model_version"),
        usage=None if counted is None else _usage(counted),
        cost_usd=cost_usd(price, _billed(counted or {}, len(images))),
        details={"pictures": len(images), "request_id": document.get("response_id")},
    )
    if images:
        return with_image(replace(known, code=None), images[0])
    feedback, refused = (
        document.get("prompt_feedback") or {},
        replace(known, outcome=Outcome.REFUSED),
    )
    blocked = _named(feedback.get("block_reason"))
    if blocked not in (None, UNSPECIFIED):
        said = feedback.get("block_reason_message") or known.text
        return replace(refused, stage=OutcomeStage.INPUT, code=blocked, text=said)
    if reason == ACCOUNT_STOPPED:
        raise GenerationError(
            f"the account is stopped (the answer ended with {reason!r}): use another account's key"
        )
    if reason in HELD_BACK:
        return replace(refused, stage=OutcomeStage.OUTPUT)
    if reason in UNDRAWN:
        return replace(known, outcome=Outcome.NO_IMAGE)
    if reason is None:
        return unusable(known, "the answer has neither an image nor a reason for its end")
    told = "" if known.text is None else f": {known.text}"
    return unusable(known, f"the answer holds no image and ended with {reason!r}{told}")


def _images(parts: list[Document]) -> Iterator[bytes]:
    for part in parts:
        blob = part.get("inline_data") or {}
        is_image = (blob.get("mime_type") or IMAGES).startswith(IMAGES)
        if is_image and blob.get("data") and not part.get("thought"):
            yield blob["data"]


def _usage(counted: Document) -> Usage:
    cached = _number(counted, "cached_content_token_count")
    return Usage(_number(counted, "prompt_token_count"), _came(counted), cached)


def _came(counted: Document) -> int:
    return _number(counted, "candidates_token_count") + _number(counted, "thoughts_token_count")


def _billed(counted: Document, images: int) -> Billed:
    sent = _of_images(counted.get("prompt_tokens_details"))
    drawn = _of_images(counted.get("candidates_tokens_details"))
    if drawn is None and not counted.get("candidates_token_count"):
        drawn = 0 if counted else None
    return Billed(
        text_in=None if sent is None else _number(counted, "prompt_token_count") - sent,
        image_in=sent,
        text_out=None if drawn is None else _came(counted) - drawn,
        image_out=drawn,
        images=images,
    )


def _of_images(details: list[Document] | None) -> int | None:
    if not details:
        return None
    images = (one for one in details if _named(one.get("modality")) == "IMAGE")
    return sum(_number(one, "token_count") for one in images)


def _number(counted: Document, name: str) -> int:
    return int(counted.get(name) or 0)


def _named(value: Any) -> str | None:
    named = value.value if isinstance(value, Enum) else value
    return named if isinstance(named, str) else None


LONGEST_ERROR = 200


def ask(connection: Connection, send: Callable[..., Any], **arguments: Any) -> Any:
    """Sends a request, once; gives what the library read, or the `Reply` that is an error."""
    from google.genai.errors import APIError

    try:
        return send(**arguments)
    except (APIError, TimeoutError, http_library().RequestError) as error:
        return connection.reply_in(error)
    except ValueError as error:  # of JSON, or of what should stand in it
        said = one_line(str(error), connection.key)[:LONGEST_ERROR]
        raise UnreadableError(f"the answer cannot be read: {said}") from None


@contextmanager
def connected(host: Host, timeout_s: float, api_version: str) -> Iterator[Connection]:
    from google.genai import Client
    from google.genai.types import HttpOptions

    key = host.key()
    # The client wants a key even for a gateway without.
    secret = key.secret.get_secret_value() or NO_KEY
    # A redirect would take prompts and images to a server that nobody named.
    with limited(http_library().Client, timeout_s)(follow_redirects=False) as http_client:
        options = HttpOptions(
            base_url=host.server.base_url,
            api_version=api_version,
            timeout=max(1, round(timeout_s * 1000)),
            httpx_client=http_client,
        )
        client = Client(api_key=secret, vertexai=False, http_options=options)
        try:
            yield Connection(client, key, host, timeout_s)
        finally:
            client.close()


GEMINI = "https://generativelanguage.googleapis.com"
# The shapes that every image model of the family draws.
RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "9:16", "16:9", "21:9")
RATIO = re.compile(r"([1-9][0-9]{0,2}):([1-9][0-9]{0,2})")
CATEGORY = re.compile(r"HARM_CATEGORY_[A-Z_]+")
# Of how many inputs the first models make use, and later ones.
FIRST_MODELS = ("gemini-2.0-flash", "gemini-2.5-flash-image")
FIRST_MOST_INPUTS, MOST_INPUTS = 3, 14
SENT = ("api_version", "modalities", "image_size", "safety_settings")

Threshold = Literal[
    "BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"
]


class GoogleOptions(HostedOptions):
    """The parameters of the adapter `google`.

    Attributes:
        base_url: Where the server is, without its version.
        api_key_env: Environment variable that holds the key; null for a gateway without keys.
        api_version: Of the API; the client's own default changes from version to version.
        most_inputs: Most input images of a task; 3 for `gemini-2.5-flash-image` and before, 14
            for later models, unless it is given.
        modalities: What the model may answer with; with text it can say why it draws nothing.
        aspect_ratios: Shapes that the model draws, for `size: match_input` and for a fixed size.
        image_size: `1K`, `2K` or `4K`; null leaves it to the model, and the first models take none.
        send_seed: Whether the config's seed is sent.
        safety_settings: Thresholds by category; those that are not named are the model's own.
    """

    base_url: str = GEMINI
    api_key_env: str | None = "GEMINI_API_KEY"
    api_version: Words = "v1beta"
    most_inputs: Inputs = MOST_INPUTS
    modalities: Annotated[tuple[Literal["TEXT", "IMAGE"], ...], Field(min_length=1)] = (
        "TEXT",
        "IMAGE",
    )
    aspect_ratios: Annotated[tuple[str, ...], Field(min_length=1)] = RATIOS
    image_size: Words | None = None
    send_seed: StrictBool = True
    safety_settings: Mapping[str, Threshold] = {}

    @property
    def ratios(self) -> dict[Pixels, str]:
        return {_numbers(one): one for one in self.aspect_ratios}

    def _sent(self, size: Size) -> Iterable[str]:
        likened = ("aspect_ratios",) if size == "match_input" else ()
        return ("revision", *SENT, *likened)

    @field_validator("aspect_ratios")
    @classmethod
    def _readable(cls, ratios: tuple[str, ...]) -> tuple[str, ...]:
        for ratio in ratios:
            _numbers(ratio)
        return ratios

    @field_validator("modalities")
    @classmethod
    def _drawn(cls, modalities: tuple[str, ...]) -> tuple[str, ...]:
        if "IMAGE" not in modalities:
            raise ValueError("expected IMAGE among them")
        return modalities

    @field_validator("safety_settings")
    @classmethod
    def _categories(cls, settings: Mapping[str, str]) -> Mapping[str, str]:
        odd = next((name for name in settings if not CATEGORY.fullmatch(name)), None)
        if odd is not None:
            raise ValueError(
                f"{odd!r} is not a category: expected such as HARM_CATEGORY_HARASSMENT"
            )
        return settings


def read_options(config: SystemConfig) -> GoogleOptions:
    most = FIRST_MOST_INPUTS if (config.model or "").startswith(FIRST_MODELS) else MOST_INPUTS
    parameters = {"most_inputs": most, **config.parameters}
    options = hosted_options(config.model_copy(update={"parameters": parameters}), GoogleOptions)
    size = config.size
    if isinstance(size, FixedSize) and ratio_of((size.width, size.height), options) is None:
        raise GenerationError(
            f"system {config.name!r}: size is {size.width} x {size.height}, and the model is asked "
            f"for a shape: expected auto, match_input, or one of {', '.join(options.aspect_ratios)}"
        )
    return options


def ratio_of(size: Pixels, options: GoogleOptions) -> str | None:
    """The name of a size's shape, null where the model does not draw it."""
    width, height = size
    return next((name for (w, h), name in options.ratios.items() if width * h == height * w), None)


def _numbers(ratio: str) -> Pixels:
    found = RATIO.fullmatch(ratio)
    if found is None:
        raise ValueError(f"{ratio!r} is not a ratio: expected two numbers such as '3:2'")
    return int(found[1]), int(found[2])


ADAPTER = "google"
# Raised when the same task is put to the model in another way, which may change images.
WORDING = 2
SEEDED = "the seed is sent, and the model repeats a picture as best it can"
UNSEEDED = "no seed is sent: two pictures for one task differ"


class GoogleImages(HostedSystem):
    """Asks a Gemini model, over Google's own API."""

    def __init__(self, config: SystemConfig) -> None:
        self._options = read_options(config)
        self._seed = config.seed if self._options.send_seed else None
        determinism = SEEDED if self._options.send_seed else UNSEEDED
        connect = partial(connected, api_version=self._options.api_version)
        super().__init__(config, self._options, determinism, connect)

    def signature(self) -> Mapping[str, Any]:
        """What reaches the server and decides an image; neither its key nor a private address."""
        return self._described(ADAPTER, WORDING, self._seed)

    def _looked(self, connection: Connection) -> Retired | None:
        try:
            found = ask(connection, connection.client.models.get, model=self._host.model)
        except RequestError:
            return None
        return retired_by(api_error(found), self._host) if isinstance(found, Reply) else None

    def _asked(
        self, connection: Connection, task: Task, inputs: Sequence[SentInput]
    ) -> GenerationResult:
        options, first = self._options, inputs[0].size if inputs else None
        size = chosen_size(
            self._config.size, first, lambda like: nearest(like, list(options.ratios))
        )
        image = {
            "aspect_ratio": None if size is None else ratio_of(size, options),
            "image_size": options.image_size,
        }
        try:
            answer = self._answer(connection, task, inputs, image)
        except UnreadableError as error:
            drawn = GenerationResult(Outcome.FAILED, stage=OutcomeStage.ANSWER, text=error.text)
        else:
            if isinstance(answer, Reply):
                drawn = fate(api_error(answer), self._host)
            else:
                drawn = drawn_from(answer.model_dump(), self._config.price)
        told = {**image, "inputs": [one.details() for one in inputs]}
        return replace(drawn, seed=self._seed, details={**drawn.details, **told})

    def _answer(
        self,
        connection: Connection,
        task: Task,
        inputs: Sequence[SentInput],
        image: Mapping[str, str | None],
    ) -> Any:
        from google.genai import types

        parts = [types.Part.from_bytes(data=one.data, mime_type=one.mime_type) for one in inputs]
        parts.append(types.Part.from_text(text=task.prompt))
        given = {name: value for name, value in image.items() if value is not None}
        settings = [
            types.SafetySetting(category=category, threshold=threshold)
            for category, threshold in sorted(self._options.safety_settings.items())
        ]
        config = types.GenerateContentConfig(
            response_modalities=list(self._options.modalities),
            image_config=types.ImageConfig(**given) if given else None,
            seed=self._seed,
            safety_settings=settings or None,
        )
        return ask(
            connection,
            connection.client.models.generate_content,
            model=self._host.model,
            contents=types.Content(role="user", parts=parts),
            config=config,
        )


register(
    ADAPTER,
    "Gemini models that draw: Nano Banana and its successors",
    extra="google",
    packages=("google.genai",),
    key="GEMINI_API_KEY",
)(GoogleImages)
