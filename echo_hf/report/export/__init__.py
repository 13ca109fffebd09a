"""What a run has measured, in the formats of other projects."""
