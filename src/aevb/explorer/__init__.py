"""The interactive page of a latent space: one HTML file that contains the model, for any browser."""

from aevb.explorer.build import build_page, write_page
from aevb.explorer.model import NotExplorableError

__all__ = ["NotExplorableError", "build_page", "write_page"]
