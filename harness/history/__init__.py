"""What happened, on one clock, as it is written and read back."""
