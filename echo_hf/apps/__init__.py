"""Browser pages for people who rank outputs or review samples, their event log, and takedowns."""
