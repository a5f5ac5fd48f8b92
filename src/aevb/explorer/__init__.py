"""The page that holds a learned latent space: one HTML file with the model inside, for any browser."""

from aevb.explorer.build import build_page, write_page
from aevb.explorer.model import NotExplorableError

__all__ = ["NotExplorableError", "build_page", "write_page"]
