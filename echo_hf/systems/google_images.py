"""Systems behind Google's Gemini API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StringConstraints

from echo_hf._infra.http_errors import ApiError, HttpResponse, JsonObject, read_api_error
from echo_hf.config.checks import Words
from echo_hf.config.systems import FixedSize, OutputPrice, OutputSize, SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.errors import GenerationError
from echo_hf.images.loader import PixelSize
from echo_hf.systems.base import GenerationResult, OutcomeStage, Task
from echo_hf.systems.hosted import (
    HostedOptions,
    HostedSystem,
    InputCount,
    UnreadableError,
    check_options,
    compute_cost,
    http_library,
    limit_responses,
)
from echo_hf.systems.images import SentInput, add_image, nearest_size, pick_size, unusable_image
from echo_hf.systems.registry import register
from echo_hf.tables import Outcome

REFUSAL_REASONS = {
    *("BLOCKLIST", "ESCALATION", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_SAFETY"),
    *("MODEL_ARMOR", "PROHIBITED_CONTENT", "RECITATION", "SAFETY", "SPII"),
}
# The model ended normally without an image. Other reasons, such as IMAGE_OTHER or
# MALFORMED_RESPONSE, mean that the answer was broken off.
NO_IMAGE_REASONS = {"NO_IMAGE", "STOP"}
UNSPECIFIED = "BLOCKED_REASON_UNSPECIFIED"
ACCOUNT_STOPPED = "PUP_LIMITED_DISABLED"
IMAGE_TYPE = "image/"


def read_answer(document: JsonObject, price: OutputPrice | None) -> GenerationResult:
    first = (document.get("candidates") or [{}])[0]
    parts = (first.get("content") or {}).get("parts") or []
    blobs = [part.get("inline_data") or {} for part in parts if not part.get("thought")]
    images = [
        blob["data"]
        for blob in blobs
        if blob.get("data") and (blob.get("mime_type") or IMAGE_TYPE).startswith(IMAGE_TYPE)
    ]
    reason = _enum_text(first.get("finish_reason"))
    words = "\n".join(part["text"] for part in parts if part.get("text"))
    usage, tokens = _count_tokens(document.get("usage_metadata"))
    result = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        code=reason,
        text=words or first.get("finish_message"),
        model_reported=document.get("model_version"),
        usage=usage,
        cost_usd=compute_cost(price, len(images), tokens),
        details={"pictures": len(images), "request_id": document.get("response_id")},
    )
    if images:
        return add_image(replace(result, code=None), images[0])
    feedback = document.get("prompt_feedback") or {}
    refused = replace(result, outcome=Outcome.REFUSED)
    blocked = _enum_text(feedback.get("block_reason"))
    if blocked not in (None, UNSPECIFIED):
        message = feedback.get("block_reason_message") or result.text
        return replace(refused, stage=OutcomeStage.INPUT, code=blocked, text=message)
    if reason == ACCOUNT_STOPPED:
        raise GenerationError(
            f"the account is stopped (the answer ended with {reason!r}): use another account's key"
        )
    if reason in REFUSAL_REASONS:
        return replace(refused, stage=OutcomeStage.OUTPUT)
    if reason in NO_IMAGE_REASONS:
        return replace(result, outcome=Outcome.NO_IMAGE)
    if reason is None:
        return unusable_image(result, "the answer has neither an image nor a reason for its end")
    detail = "" if result.text is None else f": {result.text}"
    return unusable_image(result, f"the answer holds no image and ended with {reason!r}{detail}")


def _count_tokens(usage: JsonObject | None) -> tuple[Usage | None, Mapping[str, int | None]]:
    """Count the tokens in all and by billed kind; a kind that is not stated is null."""
    if usage is None:
        return None, {}

    def count_image_tokens(kind: str) -> int | None:
        details = usage.get(f"{kind}_tokens_details")
        images = (row for row in details or () if _enum_text(row.get("modality")) == "IMAGE")
        return sum(int(image.get("token_count") or 0) for image in images) if details else None

    kinds = ("prompt", "candidates", "thoughts", "cached_content")
    numbers = (int(usage.get(f"{kind}_token_count") or 0) for kind in kinds)
    prompt, answer, thoughts, cached = numbers
    sent, images_out = count_image_tokens("prompt"), count_image_tokens("candidates")
    if images_out is None and usage and not answer:
        images_out = 0
    answered = answer + thoughts
    return Usage(prompt, answered, cached), {
        "text_in": None if sent is None else prompt - sent,
        "image_in": sent,
        "text_out": None if images_out is None else answered - images_out,
        "image_out": images_out,
    }


def _enum_text(value: Any) -> str | None:
    text = value.value if isinstance(value, Enum) else value
    return text if isinstance(text, str) else None


MAX_ERROR_CHARACTERS = 200
GEMINI = "https://generativelanguage.googleapis.com"
# Aspect ratios that all image models of the family draw.
ASPECT_RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "9:16", "16:9", "21:9")
RATIO_PATTERN = r"^[1-9][0-9]{0,2}:[1-9][0-9]{0,2}$"
# How many inputs the first models use, and how many later ones.
FIRST_MODELS = ("gemini-2.0-flash", "gemini-2.5-flash-image")
FIRST_MAX_INPUTS, MAX_INPUTS = 3, 14


def _check_categories(settings: Mapping[str, Threshold]) -> Mapping[str, Threshold]:
    if wrong := [name for name in settings if not name.startswith("HARM_CATEGORY_")]:
        raise ValueError(f"{wrong[0]!r} is no category: expected such as HARM_CATEGORY_HARASSMENT")
    return settings


def _check_modalities(modalities: tuple[str, ...]) -> tuple[str, ...]:
    if "IMAGE" not in modalities:
        raise ValueError("expected IMAGE among them")
    return modalities


Modalities = Annotated[tuple[Literal["TEXT", "IMAGE"], ...], AfterValidator(_check_modalities)]
Ratio = Annotated[str, StringConstraints(pattern=RATIO_PATTERN)]
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
    most_inputs: InputCount = MAX_INPUTS
    modalities: Modalities = ("TEXT", "IMAGE")
    aspect_ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)] = ASPECT_RATIOS
    image_size: Words | None = None
    send_seed: StrictBool = True
    safety_settings: Annotated[Mapping[str, Threshold], AfterValidator(_check_categories)] = {}

    @property
    def ratios(self) -> dict[PixelSize, str]:
        parts = {name: name.split(":") for name in self.aspect_ratios}
        return {(int(width), int(height)): name for name, (width, height) in parts.items()}

    def find_ratio(self, size: PixelSize) -> str | None:
        """Find the name of a size's aspect ratio; null where the model does not draw it."""
        width, height = size
        return next((name for (w, h), name in self.ratios.items() if width * h == height * w), None)

    def signed_options(self, size: OutputSize) -> Iterable[str]:
        match_options = ("aspect_ratios",) if size == "match_input" else ()
        always = ("revision", "api_version", "modalities", "image_size", "safety_settings")
        return (*always, *match_options)


@register(
    "google",
    "Gemini models that draw: Nano Banana and its successors",
    extra="google",
    packages=("google.genai",),
    key="GEMINI_API_KEY",
)
class GoogleImages(HostedSystem[GoogleOptions]):
    seeded = "the seed is sent, and the model repeats a picture as best it can"
    unseeded = "no seed is sent: two pictures for one task differ"

    def __init__(self, config: SystemConfig) -> None:
        is_first = (config.model or "").startswith(FIRST_MODELS)
        max_inputs = FIRST_MAX_INPUTS if is_first else MAX_INPUTS
        parameters = {"most_inputs": max_inputs, **config.parameters}
        full = config.model_copy(update={"parameters": parameters})
        options, size = check_options(full, GoogleOptions), config.size
        if isinstance(size, FixedSize) and options.find_ratio((size.width, size.height)) is None:
            raise GenerationError(
                f"system {config.name!r}: size is {size.width} x {size.height}, and the model is "
                "asked for a shape: expected auto, match_input, or one of "
                f"{', '.join(options.aspect_ratios)}"
            )
        super().__init__(config, options, options.send_seed)

    @contextmanager
    def connect(self, key: str, timeout_s: float) -> Iterator[Any]:
        from google.genai import Client
        from google.genai.types import HttpOptions

        client_class = limit_responses(http_library().Client, timeout_s)
        # A redirect would send prompts and images to a server that nobody named.
        with client_class(follow_redirects=False) as http_client:
            options = HttpOptions(
                base_url=self.options.base_url,
                api_version=self.options.api_version,
                timeout=max(1, round(timeout_s * 1000)),
                httpx_client=http_client,
            )
            with closing(Client(api_key=key, vertexai=False, http_options=options)) as client:
                yield client

    def look(self) -> ApiError | None:
        answer = self._send(self.client.models.get, model=self.model)
        return read_api_error(answer) if isinstance(answer, HttpResponse) else None

    def form(self, first_input: PixelSize | None) -> dict[str, Any]:
        options = self.options
        like = partial(nearest_size, choices=list(options.ratios))
        size = pick_size(self.config.size, first_input, like)
        ratio = None if size is None else options.find_ratio(size)
        return {"aspect_ratio": ratio, "image_size": options.image_size}

    def ask(
        self, task: Task, inputs: Sequence[SentInput], form: Mapping[str, Any]
    ) -> GenerationResult:
        from google.genai import types

        image_options = {name: value for name, value in form.items() if value is not None}
        parts = [types.Part.from_bytes(data=sent.data, mime_type=sent.mime_type) for sent in inputs]
        parts.append(types.Part.from_text(text=task.prompt))
        settings = [
            types.SafetySetting(category=category, threshold=threshold)
            for category, threshold in sorted(self.options.safety_settings.items())
        ]
        config = types.GenerateContentConfig(
            response_modalities=list(self.options.modalities),
            image_config=types.ImageConfig(**image_options) if image_options else None,
            seed=self.find_seed(task),
            safety_settings=settings or None,
        )
        content = {"contents": types.Content(role="user", parts=parts), "config": config}
        answer = self._send(self.client.models.generate_content, model=self.model, **content)
        if isinstance(answer, HttpResponse):
            return self.result_of_error(read_api_error(answer))
        return read_answer(answer.model_dump(), self.price)

    def _send(self, send: Callable[..., Any], **arguments: Any) -> Any:
        """Send a request once; return the library's answer, or the `HttpResponse` of an error."""
        from google.genai.errors import APIError

        try:
            return send(**arguments)
        except (APIError, TimeoutError, http_library().RequestError) as error:
            return self.get_response(error)
        except ValueError as error:  # invalid JSON, or a missing field
            message = self.one_line(str(error))[:MAX_ERROR_CHARACTERS]
            raise UnreadableError(f"the answer cannot be read: {message}") from None
