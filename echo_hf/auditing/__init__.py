"""Audits of judges: `echo-hf audit` shows them pictures whose rating is known beforehand."""
