"""Charts of what compiling costs, and when it pays."""
