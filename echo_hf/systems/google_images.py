"""Systems behind Google's Gemini API."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import AfterValidator, Field, StrictBool, StringConstraints

from echo_hf._infra.http_errors import mapping
from echo_hf.config.checks import Words
from echo_hf.config.systems import FixedSize, Price, Size, SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.engines.prices import count
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.systems.hosted import (
    HostedOptions,
    HostedSystem,
    Inputs,
    cost_usd,
    hosted_options,
    items,
    text_or_none,
)
from echo_hf.systems.images import Pixels, SentInput, chosen_size, nearest, unusable, with_image
from echo_hf.systems.registry import register

HELD_BACK = {
    *("BLOCKLIST", "ESCALATION", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_SAFETY"),
    *("MODEL_ARMOR", "PROHIBITED_CONTENT", "RECITATION", "SAFETY", "SPII"),
}
# The model came to its end and drew nothing. Whatever else ends an answer, such as IMAGE_OTHER, for
# which no reason is known, or MALFORMED_RESPONSE, broke it off.
UNDRAWN = {"NO_IMAGE", "STOP"}
UNSPECIFIED = "BLOCKED_REASON_UNSPECIFIED"
ACCOUNT_STOPPED = "PUP_LIMITED_DISABLED"
IMAGES = "image/"


def drawn_from(document: Mapping[str, Any], price: Price | None) -> GenerationResult:
    """What an answer makes of a task."""
    first = mapping(next(iter(items(document.get("candidates"))), None))
    parts = [mapping(one) for one in items(mapping(first.get("content")).get("parts"))]
    blobs = [mapping(part.get("inlineData")) for part in parts if not part.get("thought")]
    images = [
        blob["data"]
        for blob in blobs
        if text_or_none(blob.get("data")) and str(blob.get("mimeType", IMAGES)).startswith(IMAGES)
    ]
    reason = text_or_none(first.get("finishReason"))
    words = "\n".join(filter(None, (text_or_none(part.get("text")) for part in parts)))
    usage, tokens = _counted(document.get("usageMetadata"))
    known = GenerationResult(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        code=reason,
        text=words or text_or_none(first.get("finishMessage")),
        model_reported=text_or_none(document.get("modelVersion")),
        usage=usage,
        cost_usd=cost_usd(price, len(images), tokens),
        details={"pictures": len(images), "request_id": document.get("responseId")},
    )
    if images:
        return with_image(replace(known, code=None), images[0])
    feedback = mapping(document.get("promptFeedback"))
    refused = replace(known, outcome=Outcome.REFUSED)
    blocked = text_or_none(feedback.get("blockReason"))
    if blocked not in (None, UNSPECIFIED):
        said = text_or_none(feedback.get("blockReasonMessage")) or known.text
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


def _counted(told: Any) -> tuple[Usage | None, Mapping[str, int | None]]:
    """Tokens in all, and by what is billed; a kind is null where the answer does not tell it."""
    if not isinstance(told, dict):
        return None, {}

    def of_images(kind: str) -> int | None:
        details = [mapping(one) for one in items(told.get(f"{kind}TokensDetails"))]
        images = (one for one in details if one.get("modality") == "IMAGE")
        return sum(count(one.get("tokenCount")) or 0 for one in images) if details else None

    kinds = ("prompt", "candidates", "thoughts", "cachedContent")
    prompt, answer, thoughts, cached = (count(told.get(f"{one}TokenCount")) or 0 for one in kinds)
    sent, drawn = of_images("prompt"), of_images("candidates")
    if drawn is None and told and not answer:
        drawn = 0
    came = answer + thoughts
    return Usage(prompt, came, cached), {
        "text_in": None if sent is None else prompt - sent,
        "image_in": sent,
        "text_out": None if drawn is None else came - drawn,
        "image_out": drawn,
    }


GEMINI = "https://generativelanguage.googleapis.com"
# The shapes that every image model of the family draws.
RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "9:16", "16:9", "21:9")
RATIO = r"^[1-9][0-9]{0,2}:[1-9][0-9]{0,2}$"
# Of how many inputs the first models make use, and later ones.
FIRST_MODELS = ("gemini-2.0-flash", "gemini-2.5-flash-image")
FIRST_MOST_INPUTS, MOST_INPUTS = 3, 14


def _categories(settings: Mapping[str, Threshold]) -> Mapping[str, Threshold]:
    if wrong := [name for name in settings if not name.startswith("HARM_CATEGORY_")]:
        raise ValueError(f"{wrong[0]!r} is no category: expected such as HARM_CATEGORY_HARASSMENT")
    return settings


def _drawn(modalities: tuple[str, ...]) -> tuple[str, ...]:
    if "IMAGE" not in modalities:
        raise ValueError("expected IMAGE among them")
    return modalities


Modalities = Annotated[tuple[Literal["TEXT", "IMAGE"], ...], AfterValidator(_drawn)]
Ratio = Annotated[str, StringConstraints(pattern=RATIO)]
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
    modalities: Modalities = ("TEXT", "IMAGE")
    aspect_ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)] = RATIOS
    image_size: Words | None = None
    send_seed: StrictBool = True
    safety_settings: Annotated[Mapping[str, Threshold], AfterValidator(_categories)] = {}

    @property
    def ratios(self) -> dict[Pixels, str]:
        parts = {name: name.split(":") for name in self.aspect_ratios}
        return {(int(width), int(height)): name for name, (width, height) in parts.items()}

    def ratio_of(self, size: Pixels) -> str | None:
        """The name of a size's shape, null where the model does not draw it."""
        width, height = size
        return next((name for (w, h), name in self.ratios.items() if width * h == height * w), None)

    def sent(self, size: Size) -> Iterable[str]:
        likened = ("aspect_ratios",) if size == "match_input" else ()
        always = ("revision", "api_version", "modalities", "image_size", "safety_settings")
        return (*always, *likened)


@register(
    "google",
    "Gemini models that draw: Nano Banana and its successors",
    key="GEMINI_API_KEY",
)
class GoogleImages(HostedSystem[GoogleOptions]):
    seeded = "the seed is sent, and the model repeats a picture as best it can"
    unseeded = "no seed is sent: two pictures for one task differ"

    def __init__(self, config: SystemConfig) -> None:
        most = FIRST_MOST_INPUTS if (config.model or "").startswith(FIRST_MODELS) else MOST_INPUTS
        given = config.model_copy(update={"parameters": {"most_inputs": most, **config.parameters}})
        options, size = hosted_options(given, GoogleOptions), config.size
        if isinstance(size, FixedSize) and options.ratio_of((size.width, size.height)) is None:
            raise GenerationError(
                f"system {config.name!r}: size is {size.width} x {size.height}, and the model is "
                "asked for a shape: expected auto, match_input, or one of "
                f"{', '.join(options.aspect_ratios)}"
            )
        super().__init__(config, options, options.send_seed)

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    @property
    def model_path(self) -> str:
        name = self.model if "/" in self.model else f"models/{self.model}"
        return f"/{self.options.api_version}/{quote(name)}"

    def form(self, first_input: Pixels | None) -> dict[str, Any]:
        options = self.options
        like = partial(nearest, choices=list(options.ratios))
        size = chosen_size(self.config.size, first_input, like)
        ratio = None if size is None else options.ratio_of(size)
        return {"aspect_ratio": ratio, "image_size": options.image_size}

    def request(
        self, task: Task, inputs: Sequence[SentInput], form: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        options, size = self.options, (form["aspect_ratio"], form["image_size"])
        asked = {
            "responseModalities": list(options.modalities),
            "imageConfig": _given(zip(("aspectRatio", "imageSize"), size, strict=True)) or None,
            "seed": self.seed,
        }
        images = [
            {"inlineData": {"data": base64.b64encode(one.data).decode(), "mimeType": one.mime_type}}
            for one in inputs
        ]
        settings = [
            {"category": category, "threshold": threshold}
            for category, threshold in sorted(options.safety_settings.items())
        ]
        document = {
            "contents": [{"role": "user", "parts": [*images, {"text": task.prompt}]}],
            "generationConfig": _given(asked.items()),
            "safetySettings": settings or None,
        }
        return f"{self.model_path}:generateContent", {"json": _given(document.items())}

    def read(self, document: Mapping[str, Any]) -> GenerationResult:
        return drawn_from(document, self.price)


def _given(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if value is not None}
