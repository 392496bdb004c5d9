"""The documentation site: `make docs` builds it, and every warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from heedful.version import __version__

project = "heedful"
copyright = "the heedful authors, Apache-2.0"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "generated"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

default_role = "code"  # `name` in a docstring
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"heedful {__version__}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sphinx = False
