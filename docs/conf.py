"""Sphinx's configuration of the site; `docs/build` runs it."""

from __future__ import annotations

import os
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS / "extensions")]
os.environ.setdefault("MPLBACKEND", "Agg")

import policytree  # noqa: E402

project = "policytree"
author = "The policytree developers"
copyright = author
version = release = policytree.__version__
urls = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "matplotlib.sphinxext.plot_directive",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "api_index",
    "benchmark_tables",
    "engine_table",
    "output_thumbnails",
    "printed_sentences",
    "sample_report",
]
exclude_patterns = ["html", "scripts", "extensions", "_templates"]
templates_path = ["_templates"]
default_role = "code"
nitpicky = True
# Objects of other libraries, whose documentation lives elsewhere: the site is built without a network. Below them, the
# packages behind the public names, which docstrings mention for those who read the source.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|np|pandas|pd|sklearn|scipy|matplotlib|econml|dask|distributed|pyarrow|duckdb)\..*"),
    (r"py:.*", r"(collections|json)\..*"),
    (r"py:mod", r"policytree\..*"),
    (r"py:(func|class)", r"policytree\.(data|model_selection|solvers|born_again)\..*"),
    (r"py:(func|class)", r"policytree\.weighting\.(learners|propensities|costs|stacking)\..*"),
]

# --- the API ---
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say them, with shapes and units
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_xref_param_type = False

# --- tutorials and how-to pages: scripts that are executed at every build ---
GALLERIES = ("tutorials", "how_to", "coming_from")
sphinx_gallery_conf = {
    "examples_dirs": [f"scripts/{name}" for name in GALLERIES],
    "gallery_dirs": list(GALLERIES),
    "filename_pattern": r"\.py$",
    "copyfile_regex": r"index\.rst",  # written by hand
    "download_all_examples": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "abort_on_example_error": False,  # all failures are listed; each of them fails the build
    "only_warn_on_example_error": False,
    "capture_repr": ("_repr_html_",),  # tables and fitted trees; not the address of a picture in memory
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "backreferences_dir": "api/examples",
    "doc_module": ("policytree",),
    "reference_url": {"policytree": None},
    "minigallery_sort_order": "page_order.place",
    "default_thumb_file": str(DOCS / "images" / "page.png"),  # of pages that show and print nothing
    "parallel": 2,
}

# --- pictures that scripts draw at every build ---
plot_html_show_formats = False
plot_html_show_source_link = False
plot_formats = [("png", 160)]
plot_rcparams = {"savefig.bbox": "tight", "font.size": 9}
plot_apply_rcparams = True

# --- how it looks ---
html_theme = "pydata_sphinx_theme"
html_title = "policytree"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "icon_links": [{"name": "Repository", "url": urls["Source"], "icon": "fa-brands fa-github"}],
    "external_links": [{"name": "Cite", "url": f"{urls['Source']}/blob/main/CITATION.cff"}],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {
    page: []
    for page in ("index", "start", "guide", "faq", "cheat_sheet", "method", "comparison", "benchmarks", "versions")
}

# --- formulas, without a network: MathJax comes with a Python package of files ---
_mathjax = find_spec("sphinx-mathjax-offline")
if _mathjax is None or _mathjax.origin is None:
    raise ModuleNotFoundError('The site needs sphinx-mathjax-offline: pip install -e ".[docs]".')
html_static_path.append(str(Path(_mathjax.origin).parent / "static"))
mathjax_path = "mathjax/tex-chtml.js"
