"""Charts of the cost of compiling, and when it pays off. Comparisons of engines are in `reports.charts.engines`."""
