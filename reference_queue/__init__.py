"""A job queue on PostgreSQL whose claim protocol can be proven: leases, fencing tokens, takeover by phase.

The protocol is in ``sql/``, one statement per file. Copy this folder into your own project: it needs psycopg 3, and aiohttp
only for the handler in ``sink_handler.py``.
"""
