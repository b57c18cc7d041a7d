"""What a run is to measure: presets, the cells they choose, what these cost, and the plan."""
