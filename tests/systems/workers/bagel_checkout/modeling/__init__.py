"""Stands for the package of this name in a checkout of BAGEL."""
