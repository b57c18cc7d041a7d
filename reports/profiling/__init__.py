"""The sections of a report on what profilers saw, and what became of the published claims."""
