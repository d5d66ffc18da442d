"""The report screen: any report in pages and tables, with the way to the traces behind it."""
