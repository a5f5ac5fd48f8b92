import importlib.util
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

from aevb import __version__

project = "aevb"
author = "The aevb developers"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "reproduction/gradients.md"]  # the second is a part of another page
templates_path = ["_templates"]
html_theme = "furo"
html_title = "aevb"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["accessible.js"]
html_theme_options = {"top_of_page_buttons": []}
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_numpy_docstring = False

_here = Path(__file__).parent


def _tool(name):
    spec = importlib.util.spec_from_file_location(name, _here.parent / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The tutorials as notebooks, for download: written at each build, beside the pages.
_tool("notebooks").write(_here / "_build" / "extra" / "notebooks")
html_extra_path = ["_build/extra"]

# Links to JAX, NumPyro, scikit-learn and others, without their inventories: a build needs no network.
intersphinx_mapping = _tool("inventories").write(_here / "_build" / "inventories")


def _formula(display):
    def visit(self, node):
        self.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return visit


def setup(app):
    """Write formulas as MathML, which browsers draw and read aloud themselves, without a script from elsewhere."""
    app.add_html_math_renderer("mathml", (_formula("inline"), None), (_formula("block"), None))
