"""Runs every order of a small case on the real server: enumerate, reduce, sample, shrink, replay."""
