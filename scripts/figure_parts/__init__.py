"""The parts of the README's figure: what it tells, and the three panels that it is drawn from."""
