"""The two interfaces of servers that draw images: what is sent, what they answer, within limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from echo_hf._infra.http_errors import OK, Reply
from echo_hf.config.systems import Price
from echo_hf.engines.base import Usage
from echo_hf.engines.prices import MOST, cost_of, read_usage, usage_of
from echo_hf.errors import PictureError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn
from echo_hf.systems.hosted import LONGEST_CONNECT_S, NO_KEY, Connection, Host, limited
from echo_hf.systems.images import SentInput, decoded, unusable, with_picture
from echo_hf.systems.plan import Billed, cost_usd

if TYPE_CHECKING:
    from openai import OpenAI


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer holds."""

    picture: str | None = None
    pictures: int = 0
    text: str | None = None
    revised_prompt: str | None = None
    ended: str | None = None
    refusal: str | None = None
    refusal_stage: OutcomeStage = OutcomeStage.INPUT
    model: str | None = None
    usage: Usage | None = None
    billed: Billed = field(default_factory=Billed)
    cost_usd: float | None = None
    may_speak: bool = False
    as_drawn: Mapping[str, Any] = field(default_factory=dict)


def read_document(text: str) -> Mapping[str, Any] | None:
    """The answer as an object; null when it is none, such as a web page."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def drawn_from(said: Said, price: Price | None) -> Drawn:
    """What becomes of a task."""
    cost = said.cost_usd if said.cost_usd is not None else cost_usd(price, said.billed)
    known = Drawn(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        text=said.text,
        revised_prompt=said.revised_prompt,
        model_reported=said.model,
        usage=said.usage,
        cost_usd=cost,
        details={"pictures": said.pictures, "as_drawn": dict(said.as_drawn)},
    )
    if said.picture is not None:
        return _with_picture(known, said.picture)
    return _without_picture(known, said)


def count(value: Any) -> int | None:
    """A number of tokens; null for what is none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_whole and 0 <= value <= MOST else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, empty where it is no object."""
    return value if isinstance(value, dict) else {}


def text_or_none(value: Any) -> str | None:
    """The value where it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def _with_picture(known: Drawn, encoded: str) -> Drawn:
    try:
        data = decoded(encoded)
    except PictureError as error:
        return unusable(known, str(error))
    return with_picture(known, data)


def _without_picture(known: Drawn, said: Said) -> Drawn:
    if said.refusal is not None:
        return replace(
            known,
            outcome=Outcome.REFUSED,
            stage=said.refusal_stage,
            code="refusal" if said.refusal_stage is OutcomeStage.INPUT else "content_filter",
            text=said.refusal,
        )
    if said.may_speak:
        return replace(known, outcome=Outcome.NO_IMAGE, code=said.ended)
    return replace(unusable(known, _lack(said)), code=said.ended)


def _lack(said: Said) -> str:
    lacks = "the answer holds no picture"
    if said.ended is not None:
        lacks += f" and ended with {said.ended!r}"
    return lacks if said.text is None else f"{lacks}: {said.text}"


Send = Callable[..., Any]


def ask(connection: Connection, send: Send, arguments: Mapping[str, Any]) -> Reply:
    """Sends a request, once."""
    from openai import APIConnectionError, APIStatusError, Omit

    headers = None if connection.key else {"Authorization": Omit()}
    try:
        with send(**arguments, extra_headers=headers) as response:
            return Reply(OK, response.headers, response.read().decode("utf-8", "replace"))
    except (APIStatusError, APIConnectionError, TimeoutError) as error:
        return connection.reply_in(error)


@contextmanager
def connected(host: Host, timeout_s: float) -> Iterator[Connection]:
    """Opens a connection; nothing is sent yet."""
    from openai import DefaultHttpxClient, OpenAI, Timeout

    key = host.key()
    client = OpenAI(
        # The client wants one even where the header is left out.
        api_key=key.secret.get_secret_value() or NO_KEY,
        base_url=host.server.base_url,
        max_retries=0,
        timeout=Timeout(timeout_s, connect=min(timeout_s, LONGEST_CONNECT_S)),
        # A redirect would take prompts and pictures to a server that nobody named.
        http_client=limited(DefaultHttpxClient, timeout_s)(follow_redirects=False),
    )
    with client:
        yield Connection(client, key, host, timeout_s)


def address(client: OpenAI, inputs: Sequence[SentInput]) -> Send:
    """The client's method: one edits where there are inputs, the other draws."""
    images = client.images.with_streaming_response
    return images.edit if inputs else images.generate


def arguments(
    model: str,
    prompt: str,
    inputs: Sequence[SentInput],
    size: str | None,
    further: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that is sent for a task."""
    # Not every version of the client knows every key: those that may be missing go beside it.
    asked: dict[str, Any] = {"model": model, "prompt": prompt, "n": 1}
    if size is not None:
        asked["size"] = size
    if inputs:
        asked["image"] = _files(inputs)
    return {**asked, "extra_body": dict(further) or None}


def read_images(document: Mapping[str, Any]) -> Said:
    """What the answer of one of these addresses holds."""
    data = document.get("data")
    entries = [mapping(one) for one in data] if isinstance(data, list) else []
    first = entries[0] if entries else {}
    usage = mapping(document.get("usage"))
    return Said(
        picture=text_or_none(first.get("b64_json")) or text_or_none(first.get("url")),
        pictures=len(entries),
        revised_prompt=text_or_none(first.get("revised_prompt")),
        model=text_or_none(document.get("model")),
        usage=_usage(usage),
        billed=_billed(usage, len(entries)),
        as_drawn={
            name: document[name]
            for name in ("size", "quality", "background", "output_format")
            if isinstance(document.get(name), str)
        },
    )


def _files(inputs: Sequence[SentInput]) -> Any:
    files = [
        (f"input_{number}.{one.ending}", one.data, one.mime_type)
        for number, one in enumerate(inputs, 1)
    ]
    return files if len(files) > 1 else files[0]


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    sent, drawn = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    if sent is None or drawn is None:
        return None
    cached = count(mapping(usage.get("input_tokens_details")).get("cached_tokens"))
    return Usage(sent, drawn, cached or 0)


def _billed(usage: Mapping[str, Any], pictures: int) -> Billed:
    sent = mapping(usage.get("input_tokens_details"))
    drawn = mapping(usage.get("output_tokens_details"))
    # Where the answer does not tell them apart, all that came back is the picture.
    told = drawn or {"image_tokens": usage.get("output_tokens"), "text_tokens": 0}
    return Billed(
        text_in=count(sent.get("text_tokens")),
        image_in=count(sent.get("image_tokens")),
        text_out=count(told.get("text_tokens")),
        image_out=count(told.get("image_tokens")),
        pictures=pictures,
    )


MODALITIES = ("image", "text")
FILTERED = "content_filter"
FINISHED = "stop"


def chat_address(client: OpenAI) -> Send:
    """The client's method."""
    return client.chat.completions.with_streaming_response.create


def chat_arguments(
    model: str, prompt: str, inputs: Sequence[SentInput], further: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that is sent for a task."""
    pictures = [{"type": "image_url", "image_url": {"url": one.data_url}} for one in inputs]
    content = [*pictures, {"type": "text", "text": prompt}] if pictures else prompt
    return {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "extra_body": {"modalities": list(MODALITIES), **further},
    }


def choice_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first of an answer's choices, empty where it has none."""
    choices = document.get("choices")
    return mapping(choices[0]) if isinstance(choices, list) and choices else {}


def read_chat(document: Mapping[str, Any]) -> Said:
    """What a chat completion holds."""
    choice = choice_of(document)
    message = mapping(choice.get("message"))
    pictures = list(dict.fromkeys(_pictures(message)))
    tokens = read_usage(document)
    refusal, stage = _refusal(choice, message)
    return Said(
        picture=pictures[0] if pictures else None,
        pictures=len(pictures),
        text=_text(message.get("content")),
        ended=text_or_none(choice.get("finish_reason")),
        refusal=refusal,
        refusal_stage=stage,
        model=text_or_none(document.get("model")),
        usage=None if tokens is None else usage_of(tokens),
        billed=Billed(pictures=len(pictures)),
        cost_usd=cost_of(document, None),
        may_speak=choice.get("finish_reason") == FINISHED and _holds_words_alone(message),
    )


def _refusal(
    choice: Mapping[str, Any], message: Mapping[str, Any]
) -> tuple[str | None, OutcomeStage]:
    refusal = text_or_none(message.get("refusal"))
    if refusal is None and choice.get("finish_reason") == FILTERED:
        return _text(message.get("content")) or FILTERED, OutcomeStage.OUTPUT
    return refusal, OutcomeStage.INPUT


def _pictures(message: Mapping[str, Any]) -> Iterator[str]:
    # Routers put pictures beside the content, vllm-omni puts them into it, and some do both.
    for place in ("images", "content"):
        parts = message.get(place)
        for part in parts if isinstance(parts, list) else ():
            url = text_or_none(mapping(mapping(part).get("image_url")).get("url"))
            if url is not None:
                yield url


def _holds_words_alone(message: Mapping[str, Any]) -> bool:
    """Whether nothing in a message could be a picture in a form that is not known here."""
    if "content" not in message or message.get("images"):
        return False
    content = message["content"]
    parts = content if isinstance(content, list) else [content]
    return all(part is None or isinstance(part, str) or _is_text(part) for part in parts)


def _is_text(part: Any) -> bool:
    return mapping(part).get("type") == "text"


def _text(content: Any) -> str | None:
    parts = content if isinstance(content, list) else [content]
    texts = [mapping(part).get("text") if isinstance(part, dict) else part for part in parts]
    return text_or_none("\n".join(text for text in texts if isinstance(text, str)))
