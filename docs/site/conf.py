# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sphinx's configuration of the site. `scripts/python --site` puts the pages of docs/, these files and the gallery into one folder, and
builds from there."""
import pathlib
import re

import rigel_semirings

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "Rigel"
copyright = "the authors of Rigel"
release = version = rigel_semirings.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["gallery/README.rst"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache", "misc.highlighting_failure"]
html_theme = "furo"
html_title = "Rigel"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
sphinx_gallery_conf = {
    "examples_dirs": ROOT / "python" / "gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "abort_on_example_error": True,
    "plot_gallery": True,
    "show_memory": False,
    "reference_url": {"rigel_semirings": None},
    "download_all_examples": False,
}


def in_site(match):
    """The target of a link out of docs/: a header's page of the reference, else the words and where the file lies."""
    words, path = match["words"], match["path"]
    if header := re.fullmatch(r"include/rigel/(\w+)\.(hpp|h)", path):
        page = f"{header[1].replace('_', '__')}_8{header[2]}.html"
        return f'<a href="reference/{page}">{words}</a>'
    return words if path in words else f"{words} (`{path}`)"


def rewrite(app, name, source):
    source[0] = re.sub(r"\[(?P<words>[^\]]+)\]\(\.\./(?P<path>[^)#]+)(#[^)]*)?\)", in_site, source[0])


def complete(app, env):
    """Every public name is on the API's page."""
    page = (pathlib.Path(app.srcdir) / "api.rst").read_text()
    missing = [n for n in rigel_semirings.__all__ if not re.search(rf"\b{n}\b", page)]
    if missing:
        raise RuntimeError(f"docs/site/api.rst lacks {', '.join(missing)}")


def setup(app):
    app.connect("source-read", rewrite)
    app.connect("env-updated", complete)
