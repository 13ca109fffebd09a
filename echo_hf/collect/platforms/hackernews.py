"""Hacker News: its addresses; its posts come in tables and files of one's own."""

from echo_hf.collect.urls import Site
from echo_hf.config.collection import SITES

SITES.register("hackernews")(Site(platform="hackernews", hosts=("news.ycombinator.com",)))
