"""A leaderboard of the results that a dataset repository holds, and the Space that shows it."""
