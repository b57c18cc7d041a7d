"""Whole pages: the report as HTML and Markdown, the README's tables, and the analysis. Their sections are in
reports/sections and reports/profiling, their Jinja templates in reports/templates."""
