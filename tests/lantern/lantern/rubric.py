"""A rubric, which a file beside it holds."""

from importlib.resources import files

from echo_hf.config.rubrics import register_rubric

MOOD = register_rubric(files("lantern") / "mood.md")
