"""The sections of the report, each a function from what was read to HTML; null for nothing."""
