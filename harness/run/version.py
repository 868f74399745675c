"""The version of the product, as installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("queueproof")
except PackageNotFoundError:  # a copied tree that was never installed
    VERSION = "0+unknown"
