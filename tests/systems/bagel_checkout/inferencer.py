"""Stands for a module of BAGEL: it draws one color, made from all that may decide an image."""

import hashlib
import json
import random

import numpy
import torch
from data.data_utils import pil_img2rgb
from PIL import Image


class InterleaveInferencer:
    def __init__(self, model, vae_model, tokenizer, vae_transform, vit_transform, new_token_ids):
        assert model.vit_model.vision_model.embeddings.converted
        assert vae_model == b"autoencoder"
        assert (vae_transform.sides, vit_transform.sides) == ((1024, 512, 16), (980, 224, 14))
        assert new_token_ids == {"eos_token_id": 1}
        assert tokenizer.folder
        self.weights = model.time_embedder.weight.tolist()
        self.vae_transform = vae_transform
        print("ready to draw")

    def interleave_inference(
        self,
        input_lists,
        think=False,
        understanding_output=False,
        max_think_token_n=1000,
        do_sample=False,
        text_temperature=0.3,
        cfg_text_scale=3.0,
        cfg_img_scale=1.5,
        cfg_interval=(0.4, 1.0),
        timestep_shift=3.0,
        num_timesteps=50,
        cfg_renorm_min=0.0,
        cfg_renorm_type="global",
        image_shapes=(1024, 1024),
    ):
        print("drawing")
        assert not understanding_output
        given = []
        for one in input_lists:
            if isinstance(one, str):
                given.append(one)
                continue
            seen = self.vae_transform.resize_transform(pil_img2rgb(one))
            image_shapes = seen.size[::-1]
            given.append(hashlib.sha256(one.convert("RGB").tobytes()).hexdigest())
        if "break" in given:
            raise RuntimeError("out of\nmemory")
        if "nothing" in given:
            return ["I would rather not."]
        chance = [random.random(), float(numpy.random.rand()), torch.initial_seed()]
        sampling = [cfg_text_scale, cfg_img_scale, list(cfg_interval), timestep_shift]
        sampling += [num_timesteps, cfg_renorm_min, cfg_renorm_type, self.weights]
        sampling += [max_think_token_n, do_sample, text_temperature] if think else []
        said = json.dumps([given, think, chance, sampling])
        color = tuple(hashlib.sha256(said.encode()).digest()[:3])
        image = Image.new("RGB", image_shapes[::-1], color)
        return [f"<think> {said} </think>", image] if think else [image]
