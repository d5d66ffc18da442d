"""The text of a span: laid out, wrapped, compared."""
