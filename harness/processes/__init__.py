"""Processes the harness starts: workers, each a whole process group, and the watchdog that ends them when it dies."""
