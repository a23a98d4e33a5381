"""Views of a record: text, HTML, DOT. Each reads only the record."""
