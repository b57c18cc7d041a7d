"""How sure a figure is: pure functions over seconds."""
