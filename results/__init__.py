"""What was measured, and how sure it is. Pure data and pure functions: nothing here runs, times or draws."""
