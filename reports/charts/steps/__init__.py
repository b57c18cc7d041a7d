"""Charts of single trainings: losses, run sequences and profiles. Medians over processes are in `charts.engines`."""
