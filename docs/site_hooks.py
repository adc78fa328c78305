"""What mkdocs does beyond its plugins for this site: it takes in pages that lie beside the code, and mends links that leave ``docs/``.

A link that leads to a file of the repository which is no page of the site becomes plain text, or leads to ``repo_url`` where that is set.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parent.parent
GUESTS = {
    "charts/headwater/README.md": "operate/helm-chart.md",
    "CHANGELOG.md": "reference/changes.md",
    "CONTRIBUTING.md": "develop/contributing.md",
    "SECURITY.md": "operate/reporting.md",
}
"""Pages outside of ``docs/``, by their path in the repository, and where they stand in the site."""
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Anchors of headings are those of code hosts, so that one link holds in both places."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for source, place in GUESTS.items():
        if (ROOT / source).exists():
            files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with its links as the site needs them."""
    place = page.file.src_uri
    source = next((source for source, guest in GUESTS.items() if guest == place), f"docs/{place}")
    here, there = posixpath.dirname(source), posixpath.dirname(place)

    def mended(found: re.Match[str]) -> str:
        text, target, anchor = found[1], posixpath.normpath(posixpath.join(here, found[2])), found[3] or ""
        inside = GUESTS.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
        if inside is not None and files.get_file_from_path(inside):
            return f"[{text}]({posixpath.relpath(inside, there or '.')}{anchor})"
        if inside is not None or not (ROOT / target).exists():
            return found[0]  # wrong: mkdocs says so
        return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{target}{anchor})" if config.repo_url else text

    return LINK.sub(mended, markdown)
