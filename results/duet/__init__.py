"""A duet: two commits side by side. Its plan, its blocks, and what they show."""
