"""Terminal output of a trial: the request as it is sent, and what the model answered."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rich.console import Console

from echo_hf._infra.console import say
from echo_hf.pipeline.trial import Trial
from echo_hf.systems.base import remove_secrets


def trials_as_json(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Return trials as plain values without secrets."""
    values: list[dict[str, Any]] = json.loads(
        json.dumps([trial.to_json() for trial in trials], default=str)
    )
    return [_mask(value) for value in values]


def _mask(value: Any) -> Any:
    """Return a JSON value with the secrets in its texts masked."""
    if isinstance(value, str):
        return remove_secrets(value)
    if isinstance(value, list):
        return [_mask(item) for item in value]
    return {name: _mask(item) for name, item in value.items()} if isinstance(value, dict) else value


def show_trials(console: Console, trials: Iterable[dict[str, Any]]) -> None:
    for trial in trials:
        say(console, f"{trial['who']}: one request, of which nothing is kept", "bold")
        say(console, f"to {json.dumps(trial['engine'], ensure_ascii=False)}", "dim")
        for message in trial["messages"]:
            say(console, message["role"], "bold")
            for part in message["parts"]:
                say(console, part["text"] if "text" in part else _format_image(part))
        say(console, "wanted", "bold")
        for name in ("schema", "regex"):
            if trial[name] is not None:
                say(console, f"{name}: {json.dumps(trial[name], ensure_ascii=False)}")
        say(console, f"{trial['wanted']}; at most {trial['max_tokens']:,} tokens")
        say(console, f"answer ({trial['finish_reason']})", "bold")
        say(console, trial["answer"] or trial["error"] or "nothing")
        say(console, "read from it", "bold")
        if trial["problem"] is None:
            say(console, json.dumps(trial["parsed"], ensure_ascii=False), "green")
        else:
            say(console, f"nothing, {trial['problem']}", "yellow")
        say(console, _format_usage(trial), "dim")


def _format_image(part: dict[str, Any]) -> str:
    size = (
        f"{part['width']} x {part['height']}, {part['size_bytes']:,} bytes, "
        if "size_bytes" in part
        else ""
    )
    return f"[image: {size}sha256 {part['image']}]"


def _format_usage(trial: dict[str, Any]) -> str:
    usage, cost = trial["usage"], trial["cost_usd"]
    model = trial["engine"].get("model") or trial["engine"].get("kind")
    price = f"no price known for {model}" if cost is None else f"${cost:.6f}"
    tokens = f"{usage['prompt']:,} tokens asked, {usage['completion']:,} answered"
    return f"{tokens}; {trial['seconds']:.1f} s; {price}"
