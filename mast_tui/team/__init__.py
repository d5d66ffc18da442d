"""Teams: a workspace in a PostgreSQL database, its members, and what each of them may see."""
