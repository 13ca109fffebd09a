"""Pages for people: rank the outputs of systems, review samples; one log of events under both."""
