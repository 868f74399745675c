"""Fixtures are plugins, one file per matter, listed here."""

pytest_plugins = ["tests.fixtures.postgres", "tests.fixtures.gates"]
