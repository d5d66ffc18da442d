"""What figures say: reports, put into words once and shown by any renderer."""
