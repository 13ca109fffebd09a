"""Stands for a module of BAGEL: the part that turns latents into images."""

from pathlib import Path


def load_ae(local_path):
    return Path(local_path).read_bytes(), {"z_channels": 16}
