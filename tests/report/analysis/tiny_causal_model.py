"""A tiny GPT-NeoX with random weights, one token a byte: a real checkpoint without a download."""

from __future__ import annotations

from pathlib import Path

REASON = "needs torch, transformers and accelerate: see `make test-extras`"
CONTEXT = 64


def write_tiny_neox(folder: Path, *, begins: bool = False) -> Path:
    """Writes the model.

    Args:
        folder: Where to; made if it is missing.
        begins: Whether its tokenizer puts a token before every text, as Llama's does.

    Returns:
        The folder.
    """
    import torch
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    torch.manual_seed(7)
    config = GPTNeoXConfig(
        vocab_size=260,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=CONTEXT,
        initializer_range=0.4,  # so that what stands before a token decides how likely it is
        bos_token_id=0,
        eos_token_id=0,
    )
    GPTNeoXForCausalLM(config).save_pretrained(folder)
    _tokenizer(begins).save_pretrained(folder)
    return folder


def _tokenizer(begins: bool):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<|endoftext|>": 0, **{letter: at for at, letter in enumerate(letters, 1)}}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if begins:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
        )
    end = "<|endoftext|>"
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end)
