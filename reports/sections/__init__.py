"""The sections of a report on what was measured, a file each."""
