"""Whole pages: the report as HTML, in Markdown and on a terminal. Their sections are in reports/sections and
reports/profiling, their Jinja templates in reports/templates."""
