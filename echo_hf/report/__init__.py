"""The report of a run: one page that opens from a disk, and exports to other formats."""
