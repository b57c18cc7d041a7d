"""What sections are made of: figures as text, tables, notes."""
