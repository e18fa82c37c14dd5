#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_links.py FOLDER: fails if a page of a site links to a file or a place that is not there. Addresses of other machines are not asked."""
import html.parser
import pathlib
import sys
from urllib.parse import unquote, urlsplit


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    # Doxygen checks its own pages.
    pages = {path: Page(path) for path in folder.rglob("*.html") if path.relative_to(folder).parts[0] != "reference"}
    dead, links = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            place = unquote(parts.fragment)
            if not target.exists():
                dead.append(f"{path.relative_to(folder)}: {link} is not there")
            elif place and target in pages and place not in pages[target].places:
                dead.append(f"{path.relative_to(folder)}: {link} is no place of that page")
    print(*dead, f"{links} links of {len(pages)} pages, {len(dead)} dead", sep="\n")
    sys.exit(bool(dead))


if __name__ == "__main__":
    main()
