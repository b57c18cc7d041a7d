"""Charts of several runs."""
