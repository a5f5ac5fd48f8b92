"""A release has one version: that of the package, of its citation and of the newest entry of the changelog."""

import re
from pathlib import Path

import aevb

ROOT = Path(__file__).resolve().parents[2]


def test_changelog_and_citation_have_the_version_of_the_package():
    released = re.findall(r"^## (\d\S*) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert aevb.__version__ == released[0][0]
    assert f"\nversion: {released[0][0]}\ndate-released: {released[0][1]}\n" in citation
