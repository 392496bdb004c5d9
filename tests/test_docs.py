"""What the documents point to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
SOURCES = sorted([*ROOT.glob("src/**/*.py"), ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("recipes/*.toml")])


def links(document: Path) -> list[str]:
    """Files that a document links to."""
    targets = re.findall(r"\]\(([^)#\s]+)\)", document.read_text(encoding="utf-8"))
    return [target for target in targets if "://" not in target]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    assert [target for target in links(document) if not (document.parent / target).exists()] == []


def test_links_are_found() -> None:
    """Otherwise the test above compares nothing."""
    assert len(links(ROOT / "README.md")) > 5


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_nothing_is_left_to_fill_in(document: Path) -> None:
    left = re.findall(r"@[A-Z0-9]+@", document.read_text(encoding="utf-8"))
    assert left == []


def test_documents_that_the_source_cites_exist() -> None:
    cited = {name for path in SOURCES for name in re.findall(r"docs/[\w-]+\.md", path.read_text(encoding="utf-8"))}
    assert "docs/experiments.md" in cited  # otherwise the pattern finds nothing
    assert {name for name in cited if not (ROOT / name).is_file()} == set()


def test_the_readme_names_commands_that_exist() -> None:
    from heedful.cli.main import build_parser

    _, commands = build_parser()
    command = re.compile(r"^\s*(?:\$ )?(?:echo .*\| )?(?:\.venv/bin/)?heedful ([a-z]+)", re.MULTILINE)
    named = {name for document in DOCUMENTS for name in command.findall(document.read_text(encoding="utf-8"))}
    assert {"train", "translate"} <= named  # otherwise the pattern finds nothing
    assert named <= set(commands)
