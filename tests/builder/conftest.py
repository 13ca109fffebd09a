"""A platform on loopback, for builds of what was crawled there."""

from tests.collect.platforms.crawling import serve  # noqa: F401 - a fixture
