"""Building blocks of sections: figures formatted as text, sheets, notes, absences, and Markdown escaping. The sections
themselves are in reports/sections and reports/profiling."""
