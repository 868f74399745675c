"""How many slots a queue needs, how long a backlog lasts, and how far luck moves it: theory, simulation, replay.

Pure functions of numbers: no clock, no database, no files. Theory is exact (Fraction); only bands and simulations are floats.
"""
