"""What is sent to a Gemini model for a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from echo_hf.systems.config import Size
from echo_hf.systems.google_images.options import GoogleOptions, ratio_of
from echo_hf.systems.sent_pictures import SentInput
from echo_hf.systems.sizes import chosen_size, nearest


def aspect_ratio(size: Size, inputs: Sequence[SentInput], options: GoogleOptions) -> str | None:
    """The shape to ask for.

    Args:
        size: What the config says.
        inputs: The input pictures.
        options: The shapes that there are.

    Returns:
        Such as `3:2`; null where the model is to choose.
    """
    first = inputs[0].size if inputs else None
    chosen = chosen_size(size, first, lambda like: nearest(like, list(options.ratios)))
    return None if chosen is None else ratio_of(chosen, options)


def arguments(
    model: str,
    prompt: str,
    inputs: Sequence[SentInput],
    ratio: str | None,
    seed: int | None,
    options: GoogleOptions,
) -> dict[str, Any]:
    """Everything that is sent for a task.

    Args:
        model: The model.
        prompt: The instruction; it follows the pictures.
        inputs: Its input pictures, in order.
        ratio: The shape to ask for, null for the model's own.
        seed: The seed, null where none is sent.
        options: The parameters of the system.

    Returns:
        The arguments of the client's `generate_content`.
    """
    from google.genai import types

    parts = [types.Part.from_bytes(data=one.data, mime_type=one.mime_type) for one in inputs]
    parts.append(types.Part.from_text(text=prompt))
    image = {"aspect_ratio": ratio, "image_size": options.image_size}
    given = {name: value for name, value in image.items() if value is not None}
    config = types.GenerateContentConfig(
        response_modalities=list(options.modalities),
        image_config=types.ImageConfig(**given) if given else None,
        seed=seed,
        safety_settings=[
            types.SafetySetting(category=category, threshold=threshold)
            for category, threshold in sorted(options.safety_settings.items())
        ]
        or None,
    )
    contents = types.Content(role="user", parts=parts)
    return {"model": model, "contents": contents, "config": config}
