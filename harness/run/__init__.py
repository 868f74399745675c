"""Provision, probe, play, judge, keep: one run from a subject to a document."""
