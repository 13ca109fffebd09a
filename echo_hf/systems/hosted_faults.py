"""What a server's error makes of a task: a refusal, a failure, another try, or the end of a run."""

from __future__ import annotations

import re
from typing import Any

from echo_hf.engines.openai.faults import NO_CREDIT, PASSING, REDIRECTS
from echo_hf.engines.openai.refusals import BEGINNING, is_refusal, unquoted
from echo_hf.engines.openai.reply import Fault
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn, Passing, Retired
from echo_hf.systems.hosted import Host

NO_MODEL = "model_not_found"
# Models whose makers have shut them down, and answer as if they had never been there.
SHUT_DOWN = frozenset({"dall-e-3", "gemini-2.0-flash-preview-image-generation", "gpt-image-1"})
GONE_CODES = frozenset({"model_deprecated", "model_retired"})
# Google says so with status 400, and a reason inside the error.
BAD_KEY = re.compile(r"api[ _]key (?:not valid|expired|not found|invalid)", re.IGNORECASE)
# A model, and not the address `/v1/models/NAME` that a server without it repeats.
MODEL = re.compile(r"(?<![\w/.-])models?\b", re.IGNORECASE)
GONE = re.compile(
    r"(?<![\w/.-])models?\b.{0,120}?(?:no longer (?:available|supported|served)"
    r"|(?:been|was) (?:shut ?down|retired|deprecated|discontinued|decommissioned|removed))",
    re.IGNORECASE,
)
ACCOUNT_CODE = re.compile(r"(?:account|billing|organization)_")
ACCOUNT_STOPPED = re.compile(
    r"\b(?:account|organi[sz]ation)\b.{0,40}\b(?:suspended|deactivated|disabled|terminated|banned)",
    re.IGNORECASE,
)
STAGES = {"input": OutcomeStage.INPUT, "output": OutcomeStage.OUTPUT}
UNTOLD = "untold"
MOST_CATEGORIES = 20


def fate(fault: Fault, host: Host, wait_s: float | None = None) -> Drawn:
    """What becomes of a task that was answered with an error.

    Args:
        fault: The error.
        host: Who was asked.
        wait_s: How long the server asks to wait.

    Returns:
        A refusal, a failure of this one task, or `retired`.

    Raises:
        Passing: Another attempt may go better.
        GenerationError: No task could succeed before the user has mended something.
    """
    if is_refusal(fault):
        return _refused(fault)
    if is_gone(fault, host.model):
        return Drawn(
            Outcome.RETIRED, stage=OutcomeStage.REQUEST, code=code_of(fault), text=fault.message
        )
    advice = _advice(fault, host)
    if advice is not None:
        raise GenerationError(f"{_place(fault, host)}: {advice}")
    said = f"status {fault.status}: {fault.message}"
    if fault.status in PASSING or fault.status >= 500:
        raise Passing(said, code_of(fault), wait_s)
    return Drawn(Outcome.FAILED, stage=OutcomeStage.REQUEST, code=code_of(fault), text=said)


def retired_by(fault: Fault, host: Host) -> Retired | None:
    """What a question for the model alone comes to.

    Args:
        fault: The error that it was answered with.
        host: Who was asked.

    Returns:
        That the model was there once; null where the error says nothing of it, such as from a
        server that has no such address.

    Raises:
        GenerationError: The key is not accepted, or there is no such model: its name may be
            mistyped, or the key may not use it.
    """
    if is_gone(fault, host.model):
        return Retired(fault.message, code_of(fault))
    is_bad_key = fault.status == 401 or BAD_KEY.search(fault.message[:BEGINNING])
    if is_bad_key or _no_model(fault):
        raise GenerationError(f"{_place(fault, host)}: {_advice(fault, host)}")
    return None


def is_gone(fault: Fault, model: str) -> bool:
    """Whether an error says that a model was there once.

    Args:
        fault: The error.
        model: What was asked for.

    Returns:
        True for models that were shut down, or are closed to this user.
    """
    if fault.codes & GONE_CODES or (_no_model(fault) and model in SHUT_DOWN):
        return True
    # Other errors may speak of an option that a model no longer has.
    return fault.status in (404, 410) and bool(GONE.search(fault.message[:BEGINNING]))


def code_of(fault: Fault) -> str:
    """The one code that an error goes by: the server's own, else its status."""
    inner = fault.error.get("innererror")
    named = [fault.error.get(name) for name in ("code", "status", "type")]
    named.append(inner.get("code") if isinstance(inner, dict) else None)
    return next((one for one in named if isinstance(one, str) and one), str(fault.status))


def _refused(fault: Fault) -> Drawn:
    # An error in place of an answer is about the request, unless it says otherwise.
    told, categories = _moderation(fault.error)
    return Drawn(
        Outcome.REFUSED,
        stage=STAGES.get(told, OutcomeStage.INPUT),
        code=code_of(fault),
        text=fault.message,
        details={"moderation_stage": told, "moderation_categories": categories},
    )


def _moderation(error: Any) -> tuple[str, list[str]]:
    details = error.get("moderation_details")
    details = details if isinstance(details, dict) else {}
    told = details.get("moderation_stage", error.get("moderation_stage"))
    categories = details.get("categories")
    named = categories if isinstance(categories, list) else []
    return (
        told if isinstance(told, str) else UNTOLD,
        [one for one in named if isinstance(one, str)][:MOST_CATEGORIES],
    )


def _advice(fault: Fault, host: Host) -> str | None:
    status, variable = fault.status, host.api_key_env
    if status == 401 or BAD_KEY.search(fault.message[:BEGINNING]):
        holder = f"environment variable {variable!r}" if variable else "a variable that api_key_env"
        return f"put a valid key into {holder}{'' if variable else ' names'}"
    if status == 402 or NO_CREDIT in fault.codes:
        return "the account has no credit left; the same command goes on from here"
    if _account_is_stopped(fault):
        return "the account is stopped: mend that, or use another account's key"
    if status == 403 and fault.is_structured:  # a firewall's own is about what one task holds
        return f"the key may not use model {host.model!r}; name another key or model"
    if _no_model(fault):
        return f"model is {host.model!r}, expected one that the server has and the key may use"
    if status == 404 or status in REDIRECTS:
        return f"base_url is {host.server.base_url!r}, expected the server's own"
    return None


def _account_is_stopped(fault: Fault) -> bool:
    if fault.status in PASSING or fault.status >= 500:
        return False
    if any(ACCOUNT_CODE.match(code) for code in fault.codes):
        return True
    said = unquoted(fault.message[:BEGINNING])
    return fault.status in (400, 403) and bool(ACCOUNT_STOPPED.search(said))


def _no_model(fault: Fault) -> bool:
    if NO_MODEL in fault.codes:
        return True
    told = fault.is_structured and MODEL.search(fault.message[:BEGINNING])
    return fault.status == 404 and bool(told)


def _place(fault: Fault, host: Host) -> str:
    return (
        f"system {host.name!r}: {host.server.host!r} answered with status {fault.status}, "
        f"{fault.message!r}"
    )
