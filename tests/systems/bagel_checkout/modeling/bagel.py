"""Stands for a module of BAGEL: the model, here with four weights, and its configs."""

import json
from pathlib import Path

import torch


class Qwen2Config:
    @classmethod
    def from_json_file(cls, path):
        config = cls()
        vars(config).update(json.loads(Path(path).read_text()))
        return config


class SiglipVisionConfig(Qwen2Config):
    """That of the part that sees."""


class BagelConfig:
    def __init__(self, **given):
        vars(self).update(given)


class Qwen2ForCausalLM(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.qk_norm is True
        assert config.tie_word_embeddings is False
        assert config.layer_module == "Qwen2MoTDecoderLayer"


class _Embeddings(torch.nn.Module):
    converted = False

    def convert_conv2d_to_linear(self, config, meta=False):
        self.converted = meta and config.rope is False


class _VisionModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = _Embeddings()


class SiglipVisionModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        assert (config.rope, config.num_hidden_layers) == (False, 26)
        self.vision_model = _VisionModel()


class Bagel(torch.nn.Module):
    def __init__(self, language_model, vit_model, config):
        super().__init__()
        assert (config.max_latent_size, config.latent_patch_size) == (64, 2)
        self.language_model, self.vit_model, self.config = language_model, vit_model, config
        self.time_embedder = torch.nn.Linear(2, 2, bias=False)
