"""The screens of reports: pages of tables, and the traces from which a figure was computed."""
