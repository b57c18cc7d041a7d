"""Charts of what happens within a training."""
