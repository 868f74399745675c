"""The load run: an open producer, the subject's real workers, an outage, and recovery with the inflow going on.

It goes straight to the server, without proxy, gates or truth: it judges from the sink's trace, the subject's table and samplers.
"""
