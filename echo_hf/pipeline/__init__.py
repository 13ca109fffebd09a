"""How one stage runs: its contract, its answers, its result, the run's folder.

Which stages there are, and in which order, say the stages themselves: `order_stages` of `stage.py`.
"""
