"""Load any causal language model with transformers, spread over what devices there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from echo_hf.analysis.options import PerplexityOptions
from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.metrics.extras import check_extra

EXTRA = "analysis-models"
PACKAGES = ("torch", "transformers", "accelerate")
AUTO = "auto"
USUAL_WINDOW = 2048


@dataclass(frozen=True)
class LoadedCausalModel:
    """A causal language model with its tokenizer.

    Attributes:
        model: The model, in evaluation mode.
        tokenizer: Its tokenizer.
        checkpoint: Which weights they are.
        begin: The token that its tokenizer puts before every text, null where it puts none, as
            Pythia's.
    """

    model: Any
    tokenizer: Any
    checkpoint: Checkpoint
    begin: int | None

    @property
    def longest(self) -> int:
        """Most tokens that it was trained to see at once."""
        said = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return int(said) if said else USUAL_WINDOW

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text, without any special one."""
        if not texts:
            return []
        # verbose says that a text is longer than the model's window: windows are made of it.
        given = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [list(tokens) for tokens in given["input_ids"]]


def load_causal_model(options: PerplexityOptions) -> LoadedCausalModel:
    """Loads a model; code that comes with it is never run.

    Args:
        options: Which one, and where to.

    Returns:
        The model.

    Raises:
        MissingExtraError: torch, transformers or accelerate is not installed.
        EngineError: There is no such model, or the Hub is out of reach.
        Exception: Whatever the files or the memory are short of.
    """
    check_extra("perplexity", EXTRA, PACKAGES)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    checkpoint = find_checkpoint(options.model, options.revision)
    where = {"revision": checkpoint.commit, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.source, **where)
    model = AutoModelForCausalLM.from_pretrained(
        checkpoint.source,
        dtype=options.dtype,
        device_map=AUTO if options.device == AUTO else {"": options.device},
        use_safetensors=True,
        **where,
    ).eval()
    return LoadedCausalModel(model, tokenizer, checkpoint, _begin(tokenizer))


def _begin(tokenizer: Any) -> int | None:
    """The token that the tokenizer itself puts first; one that it merely knows of is not put."""
    begin = tokenizer.bos_token_id
    if begin is None:
        return None
    with_special = tokenizer("a")["input_ids"]
    return int(begin) if with_special[:1] == [begin] else None
