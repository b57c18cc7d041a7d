"""What a run measured: outcomes of cells, the table of its figures, its headline and its findings."""
