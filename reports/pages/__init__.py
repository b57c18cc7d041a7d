"""Whole pages: HTML, Markdown, the README's tables, flame graphs, the analysis."""
