"""aevb: the speed of VAE.fit on an array."""

from common import load_rows, rate_of_chunks, take_turns

import aevb

if __name__ == "__main__":
    rows = load_rows()
    take_turns(f"aevb {aevb.__version__}, array", lambda: rate_of_chunks(rows))
