"""The commands, one in each file. What they have in common: ``options``, ``accepted``, ``ending``."""
