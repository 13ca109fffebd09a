"""Pictures beside prompts: which go in, which come out, what fills a template (section 3.3)."""
