"""Charts of what happens during training: losses, run sequences and profiles. Charts with one figure per cell are in
`reports.charts.engines`."""
