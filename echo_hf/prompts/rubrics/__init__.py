"""Rubrics that judges rate by, each a Markdown file with front matter."""

from importlib.resources import files

from echo_hf.config.rubrics import register_rubric

for _file in files(__package__).iterdir():
    if _file.name.endswith(".md"):
        register_rubric(_file)
