"""Links, commands and table cells in the documentation."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/[!_]*/*.md"), *ROOT.glob("docs/*.md")])
SOURCES = sorted([*ROOT.glob("src/**/*.py"), ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("recipes/*.toml")])


def links(document: Path) -> list[str]:
    """Files that a document links to."""
    targets = re.findall(r"\]\(([^)#\s]+)\)", document.read_text(encoding="utf-8"))
    return [target for target in targets if "://" not in target]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(document: Path) -> None:
    assert [target for target in links(document) if not (document.parent / target).exists()] == []


def test_links_are_found() -> None:
    """Otherwise the test above compares nothing."""
    assert len(links(ROOT / "README.md")) > 5


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_placeholders_are_left(document: Path) -> None:
    left = re.findall(r"@[A-Z0-9]+@", document.read_text(encoding="utf-8"))
    assert left == []


def test_documents_that_the_source_cites_exist() -> None:
    pattern = re.compile(r"docs/[\w/-]+\.md")
    cited = {name for path in SOURCES for name in pattern.findall(path.read_text(encoding="utf-8"))}
    assert "docs/results/experiments.md" in cited  # otherwise the pattern finds nothing
    assert {name for name in cited if not (ROOT / name).is_file()} == set()


def test_commands_in_code_blocks_exist() -> None:
    from heedful.cli.parser import build_parser

    _, commands = build_parser()
    named: set[str] = set()
    for document in DOCUMENTS:
        for block in re.findall(r"^```\w*\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for name in re.findall(r"^(?:\$ )?(?:echo .*\| )?(?:\.venv/bin/)?heedful ([a-z]+)", block, re.MULTILINE):
                assert name in commands, f"{document.name}: heedful {name}"
                named.add(name)
    assert {"train", "translate"} <= named  # otherwise the pattern finds nothing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_table_cells_hold_facts_not_paragraphs(document: Path) -> None:
    """At most a dozen words, a code span counted as one; reasoning goes below the table."""
    rows = [line for line in document.read_text(encoding="utf-8").split("\n") if line.lstrip().startswith("| ")]
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", "code", row))]
    assert [cell for cell in cells if len(cell.split()) > 13] == []
