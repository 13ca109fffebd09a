"""Submissions to a board: outputs that others made, checked, proposed, accepted and placed."""
