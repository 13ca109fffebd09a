"""What many parts need and no user imports: retries, SQLite, folders, text."""
