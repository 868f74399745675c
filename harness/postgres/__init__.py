"""A PostgreSQL server that may be hurt, or a guest's place in somebody's; a database per scenario; truth and gates."""
