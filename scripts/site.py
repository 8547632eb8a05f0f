#!/usr/bin/env python3
"""Sources of the documentation site, and its links.

    site.py stage DIR   copy the pages that docs/SUMMARY.md lists, and everything that they show,
                        into DIR/src, where mdBook reads them
    site.py check DIR   fail on links of the built site DIR that lead nowhere

Links between pages are relative to the repository, so that they work on a code host, too. The
site has another layout: `stage` rewrites them. Of a link to a file that the site does not
contain only the text remains.
"""

import html.parser
import pathlib
import posixpath
import re
import shutil
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
# `[text](target)`, where the text may contain an image or code in brackets.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\](?:\([^()]*\))?)*)\]\(([^()\s]+)\)")


def place(path):
    """Where the site has a file of the repository."""
    if posixpath.basename(path) == "README.md":
        path = posixpath.join(posixpath.dirname(path), "index.md")
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return "examples/" + path.removeprefix("examples/") if path.startswith("examples/") else "project/" + path


def listed():
    """Pages, in the order of the summary; a folder's index stands for all pages next to it."""
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    pages = [posixpath.normpath("docs/" + target) for _, _, target in LINK.findall(summary)]
    for index in [page for page in pages if page in ("docs/rules/README.md", "examples/README.md")]:
        folder = pathlib.Path(index).parent
        found = sorted((ROOT / folder).glob("*.md" if "rules" in index else "*/README.md"))
        pages += [str(path.relative_to(ROOT)) for path in found if str(path.relative_to(ROOT)) != index]
    return pages


def title(page):
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("# "):
            return line[2:].replace("`", "")
    raise SystemExit(f"{page} has no title")


def summary(pages):
    """The summary with the paths of the site; the pages of a folder are below its index."""
    lines = []
    for line in (ROOT / "docs/SUMMARY.md").read_text().splitlines():
        match = LINK.search(line)
        if not match:
            lines.append(line)
            continue
        page = posixpath.normpath("docs/" + match[3])
        lines.append(line.replace(match[3], place(page)))
        if page in ("docs/rules/README.md", "examples/README.md"):
            folder = posixpath.dirname(page) + "/"
            below = [other for other in pages if other.startswith(folder) and other != page]
            lines += [f"  - [{title(other)}]({place(other)})" for other in below]
    return "\n".join(lines) + "\n"


def rewritten(page, pages, files):
    """The text of a page, its links as the site needs them. Adds what it shows to `files`."""
    here, folder = posixpath.dirname(place(page)), posixpath.dirname(page)

    def link(match):
        image, text, target = match.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        path, hash_, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        if (ROOT / path).is_dir() and path + "/README.md" in pages:
            path += "/README.md"
        # A picture inside of a link's text has a link of its own.
        text = LINK.sub(link, text)
        if path in pages or image:
            if image:
                files.add(path)
            return f"{image}[{text}]({posixpath.relpath(place(path), here or '.')}{hash_}{anchor})"
        return text

    fenced, lines = False, []
    for line in (ROOT / page).read_text().splitlines():
        fenced ^= line.startswith("```")
        code = fenced or line.startswith(("```", "    "))
        lines.append(line if code else LINK.sub(link, line))
    return "\n".join(lines) + "\n"


def stage(target):
    source = target / "src"
    shutil.rmtree(source, ignore_errors=True)
    pages, files = listed(), set()
    for page in pages:
        path = source / place(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rewritten(page, pages, files))
    for file in files:
        path = source / place(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, path)
    (source / "SUMMARY.md").write_text(summary(pages))
    for file in (ROOT / "docs/site").iterdir():
        shutil.copyfile(file, target / file.name)


class Page(html.parser.HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if attrs.get("id"):
            self.anchors.add(attrs["id"])
        for name in ("href", "src"):
            if attrs.get(name):
                self.links.append(attrs[name])


def check(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    broken, links = [], 0
    for path, page in pages.items():
        # The page for addresses that do not exist is served at any depth; the table of contents
        # is shown inside of other pages; the print page has all others in one.
        if path.name in ("404.html", "toc.html", "print.html"):
            continue
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            links += 1
            target = path if not url.path else (path.parent / urllib.parse.unquote(url.path)).resolve()
            if target.is_dir():
                target = target / "index.html"
            anchor = urllib.parse.unquote(url.fragment)
            known = target in pages and anchor in pages[target].anchors
            if not target.exists() or (anchor and not known):
                broken.append(f"{path.relative_to(site)}: {link}")
    for line in broken:
        print(line)
    if broken or links < 1000:
        raise SystemExit(f"{len(broken)} of {links} links lead nowhere")
    print(f"{links} links on {len(pages)} pages are fine")


def main():
    match sys.argv[1:]:
        case ["stage", directory]:
            stage(pathlib.Path(directory))
        case ["check", directory]:
            check(pathlib.Path(directory).resolve())
        case _:
            raise SystemExit(__doc__)


main()
