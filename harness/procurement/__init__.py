"""What to order: thresholds a vendor can be held to, offers compared at equal thresholds, questions, and when not to.

Pure functions of numbers and files' texts; money is Decimal, and never without its currency.
"""
