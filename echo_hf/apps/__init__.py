"""Pages for people: rank outputs, review samples; their log of events; taking posts down."""
