"""Parameters in files. A file can come from anybody: reading it runs nothing."""
