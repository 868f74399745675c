"""The harness: drives a subject, hurts it, records it, judges it. It knows no particular queue."""
