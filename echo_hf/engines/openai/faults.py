"""What a server's error means: ask again, this row's failure, a refusal, or the end of the run."""

from __future__ import annotations

from dataclasses import dataclass

from echo_hf.engines.base import Completion
from echo_hf.engines.openai.refusals import BEGINNING, is_refusal
from echo_hf.engines.openai.reply import Fault
from echo_hf.engines.openai.server_options import ServerOptions
from echo_hf.errors import EngineError

LONGEST_WAIT_S = 300
PASSING = frozenset({408, 409, 425, 429})
REDIRECTS = range(300, 400)
NO_CREDIT = "insufficient_quota"
UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value"})
OPTIONAL = ("temperature", "top_p", "seed")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of an attempt.

    Attributes:
        completion: What to report if it was the last.
        again: Whether another attempt may go better.
        wait_s: How long the server asks to wait before it, null when it does not say.
    """

    completion: Completion
    again: bool = False
    wait_s: float | None = None


def failed(error: str) -> Completion:
    """A failure of one request."""
    return Completion(None, error, "error")


def refused(reason: str, given: Completion | None = None) -> Completion:
    """A refusal, with the tokens and price of the call that ended so."""
    given = given or Completion(None)
    return Completion(None, reason, "refusal", given.usage, given.cost_usd)


def verdict_on(fault: Fault, options: ServerOptions, wait_s: float | None = None) -> Verdict:
    """What a server's error means.

    Args:
        fault: The error.
        options: ServerOptions of the engine.
        wait_s: How long the server asks to wait.

    Returns:
        What becomes of the attempt.

    Raises:
        EngineError: No request could succeed before the user has mended something.
    """
    if is_refusal(fault):
        return Verdict(refused(fault.message))
    _raise_for_config(fault, options)
    said = f"status {fault.status}: {fault.message}"
    if wait_s is not None and wait_s > LONGEST_WAIT_S:
        asks = f"the server asks to wait {wait_s:.0f} s, longer than {LONGEST_WAIT_S} s"
        return Verdict(failed(f"{said}; {asks}"))
    again = fault.status in PASSING or fault.status >= 500
    return Verdict(failed(said), again, wait_s)


def _raise_for_config(fault: Fault, options: ServerOptions) -> None:
    advice = _advice(fault, options)
    if advice is not None:
        raise EngineError(
            f"{options.server.host!r} answered with status {fault.status}, "
            f"{fault.message!r}: {advice}"
        )


def _advice(fault: Fault, options: ServerOptions) -> str | None:
    status, variable = fault.status, options.api_key_env
    if status == 401:
        holder = f"environment variable {variable!r}" if variable else "a variable that api_key_env"
        return f"put a valid key into {holder}{'' if variable else ' names'}"
    if status == 402 or NO_CREDIT in fault.codes:
        return "the account has no credit left; the same command goes on from here"
    if status == 403 and fault.is_structured:  # a firewall's own is about what somebody posted
        return f"the key may not use model {options.model!r}; name another key or model"
    if _no_such_model(fault, options):
        return f"model is {options.model!r}, expected one that the server has"
    if status == 404 or status in REDIRECTS:
        return f"base_url is {options.base_url!r}, expected the server's own, mostly ending in /v1"
    if fault.param in OPTIONAL and fault.codes & UNSUPPORTED:
        return f"set `{fault.param}: null`, which sends none"
    return None


def _no_such_model(fault: Fault, options: ServerOptions) -> bool:
    if "model_not_found" in fault.codes or f"{options.model} is not a valid model" in fault.message:
        return True
    return fault.status == 404 and "model" in fault.message[:BEGINNING].lower()
