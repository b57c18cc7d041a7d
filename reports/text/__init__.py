"""Building blocks of sections: figures formatted as text, sheets, and Markdown escaping."""
