"""Rules for pictures: what went in, what came out, what fills a template, what is a screenshot."""
