"""One injury per file. Each says how it landed, and heals on every way out."""
