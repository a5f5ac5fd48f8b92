"""`python -m aevb` is the command `aevb`."""

from aevb.cli import main

if __name__ == "__main__":
    main()
