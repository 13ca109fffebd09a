"""The report of a run: one page that opens from a disk, with everything that was measured."""
