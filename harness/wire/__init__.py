"""The border between a subject and its database: framing, statements, sessions, holds, and the proxy itself."""
