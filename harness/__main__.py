"""``python -m harness``: the same as ``queueproof``."""

from harness.entry import main

if __name__ == "__main__":
    main()
