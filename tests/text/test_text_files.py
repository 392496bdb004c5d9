"""Reading lines: line endings, rejected files, and error messages."""

from __future__ import annotations

import gzip
import io
import random
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heedful.errors import CorpusError, InputError
from heedful.text import text_files
from heedful.text.text_files import check_text, decode_lines, one_line, read_lines


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\n\r\n\ntwo\n\n", ["one", "", "", "two", ""]),
        (b"one\rstill one\ntwo\r", ["one\rstill one", "two\r"]),
        (b"one\r\r\ntwo\n", ["one\r", "two"]),
        (
            "one\u2028still\u2029one\x85\x0b\x0c\x1c\x1d\x1eone\n".encode(),
            ["one\u2028still\u2029one\x85\x0b\x0c\x1c\x1d\x1eone"],
        ),
        (b"\xef\xbb\xbfone\ntwo\n", ["one", "two"]),
        (b"one\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfone\n", ["\ufeffone"]),
        (b"  spaces kept\t \n", ["  spaces kept\t "]),
        (b"a\0b\n", ["a\0b"]),
        ("Größe שלום 👩‍👩‍👧 𝔘\n".encode(), ["Größe שלום 👩‍👩‍👧 𝔘"]),
    ],
    ids=[
        "empty file",
        "one blank line",
        "plain",
        "no last newline",
        "CRLF",
        "blank lines",
        "lone carriage return",
        "CR CR LF",
        "other separators",
        "byte-order mark",
        "mark later on",
        "two marks",
        "white space",
        "NUL",
        "all planes",
    ],
)
def test_lines_of_a_file(write_text, name, content, expected):
    assert list(read_lines(write_text(name, content))) == expected


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"))),
    st.sampled_from(["\n", "\r\n"]),
)
def test_lines_written_come_back(written, end):
    raw = "".join(line + end for line in written).encode()
    if written and written[0].startswith("\ufeff"):
        raw = b"\xef\xbb\xbf" + raw
    assume(text_files._wide_encoding(raw.split(b"\n")[0] + b"\n") is None)
    assert list(decode_lines(io.BytesIO(raw), "text")) == written


@given(st.binary(max_size=200))
def test_bytes_are_lines_or_an_error_with_the_right_number(raw):
    """Any bytes give the lines of bytes.split, or an error at the first not in UTF-8."""
    assume(text_files._wide_encoding(raw[: raw.find(b"\n") + 1] or raw) is None)
    assume(not raw.startswith(b"\x1f\x8b"))  # said to be gzip
    expected = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if expected[-1] == b"" and raw != b"\xef\xbb\xbf":
        expected.pop()
    got = []
    try:
        for line in decode_lines(io.BytesIO(raw), "t"):
            got.append(line)
        wrong = None
    except CorpusError as error:
        if "carriage returns" in str(error):
            assert b"\n" not in raw
            assert b"\r" in raw.rstrip(b"\r")
            return
        wrong = int(re.match(r"t:(\d+): not UTF-8", str(error)).group(1))
    for number, line in enumerate(expected, start=1):
        if number == wrong:
            with pytest.raises(UnicodeDecodeError):
                line.decode()
            break
        ended = number < len(expected) or raw.endswith(b"\n")
        assert got[number - 1] == (line.removesuffix(b"\r") if ended else line).decode()
    assert len(got) == (len(expected) if wrong is None else wrong - 1)


def test_gzip_without_its_name_is_recognised(write_text):
    compressed = gzip.compress(b"a line\n")
    path = write_text("train.en", compressed)
    with pytest.raises(CorpusError, match=re.escape(f"does not end in .gz. Rename it: mv {path} {path}.gz")):
        list(read_lines(path))
    path.rename(f"{path}.gz")
    assert list(read_lines(path.with_name("train.en.gz"))) == ["a line"]
    with pytest.raises(CorpusError, match=r"compressed with gzip twice\. .* gzip -d "):
        list(read_lines(write_text("twice.gz", compressed)))
    with pytest.raises(CorpusError, match=r"standard input is compressed with gzip\. .* gzip -dc "):
        list(decode_lines(io.BytesIO(compressed), "standard input"))


def test_missing_file(tmp_path):
    with pytest.raises(CorpusError, match=re.escape(f"File {tmp_path / 'none.en'} does not exist.")):
        list(read_lines(tmp_path / "none.en"))


def test_missing_gz_file(tmp_path):
    with pytest.raises(CorpusError, match=re.escape(f"File {tmp_path / 'none.gz'} does not exist.")):
        list(read_lines(tmp_path / "none.gz"))


def test_directory(tmp_path):
    with pytest.raises(CorpusError, match=re.escape(f"{tmp_path} is a directory. Pass a text file.")):
        list(read_lines(tmp_path))


def test_unreadable_file(write_text, monkeypatch):
    path = write_text("text.en", "one\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CorpusError, match=re.escape(f"Cannot read {path}: ") + ".*permission denied"):
        list(read_lines(path))


@pytest.mark.parametrize("name", ["text.de", "text.de.gz"])
def test_invalid_utf8_names_file_line_and_byte(write_text, name):
    path = write_text(name, b"fine\r\nfine too\nGr\xf6\xdfe\nfine\n")
    with pytest.raises(CorpusError) as caught:
        list(read_lines(path))
    assert str(caught.value) == (
        f"{path}:3: not UTF-8: byte 0xf6 at position 3 of the line. "
        "Convert the file, for example: iconv -f LATIN1 -t UTF-8"
    )


@pytest.mark.parametrize(
    "raw",
    [b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x96", b"\xff\xfeh\0i\0"],
    ids=["surrogate", "overlong", "beyond U+10FFFF", "cut short", "UTF-16"],
)
def test_what_utf8_forbids_is_refused(write_text, raw):
    path = write_text("text.en", b"fine\n" + raw)
    with pytest.raises(CorpusError, match=re.escape(f"{path}:2: not UTF-8")):
        list(read_lines(path))


@pytest.mark.parametrize("text", ["Hello, you\nnext\n", "„Größe“ und so\n", "xy\n\n"])
@pytest.mark.parametrize("said", ["UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32"])
def test_utf16_is_recognised(write_text, text, said):
    path = write_text("my train.en", text.encode(said))
    with pytest.raises(CorpusError) as caught:
        list(read_lines(path))
    message = str(caught.value)
    assert message.startswith(f"{path} is {said[:6]}, not UTF-8. Convert it: iconv -f {said} -t UTF-8 ")


@pytest.mark.parametrize("name", ["my train.en", "my train.en.gz"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_the_command_in_the_message_converts_the_file(write_text, tmp_path, name, encoding):
    path = write_text(name, "Hello, you\nGröße\n".encode(encoding))
    with pytest.raises(CorpusError) as caught:
        list(read_lines(path))
    subprocess.run(str(caught.value).partition("Convert it: ")[2], shell=True, check=True)
    assert list(read_lines(tmp_path / name.replace(".en", ".utf8.en"))) == ["Hello, you", "Größe"]


def test_standard_input_in_utf16():
    with pytest.raises(
        CorpusError, match=r"standard input is UTF-16, not UTF-8\. Convert it: iconv -f UTF-16 -t UTF-8$"
    ):
        list(decode_lines(io.BytesIO("abc".encode("utf-16")), "standard input"))


@pytest.mark.parametrize("raw", [b"a\0b and more\n", b"\0\0\0\0\n", b"a\0\n", "Größe\n".encode()])
def test_a_nul_alone_is_not_utf16(raw):
    assert len(list(decode_lines(io.BytesIO(raw), "t"))) == 1


def test_truncated_gz(tmp_path):
    noise = random.Random(1).randbytes(20_000).hex().encode() + b"\n"
    whole = gzip.compress(noise * 3)
    path = tmp_path / "text.en.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match=re.escape(f"Cannot read {path}: ") + ".*end-of-stream"):
        list(read_lines(path))


def test_every_cut_of_a_gz_is_noticed(tmp_path):
    whole = gzip.compress(b"one line\nand another\n")
    path = tmp_path / "text.en.gz"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CorpusError, match=re.escape(f"Cannot read {path}: ")):
            list(read_lines(path))


def test_gz_by_name_only(tmp_path):
    path = tmp_path / "text.en.gz"
    path.write_bytes(b"plain text\n")
    with pytest.raises(CorpusError, match=re.escape(f"Cannot read {path}: ") + ".*[Nn]ot a gzipped file"):
        list(read_lines(path))


def test_damaged_gz(tmp_path):
    raw = bytearray(gzip.compress(b"some text that is long enough\n" * 50))
    raw[-6] ^= 0xFF  # the checksum
    path = tmp_path / "text.en.gz"
    path.write_bytes(raw)
    with pytest.raises(CorpusError, match=re.escape(f"Cannot read {path}: ")):
        list(read_lines(path))


def test_gz_of_several_members(tmp_path):
    path = tmp_path / "text.en.gz"
    path.write_bytes(gzip.compress(b"one\ntw") + gzip.compress(b"o\n"))
    assert list(read_lines(path)) == ["one", "two"]


def test_ten_megabytes_in_one_line(write_text):
    long = "x" * 10_000_000
    assert list(read_lines(write_text("text.en", f"short\n{long}\nshort\n"))) == ["short", long, "short"]


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
def test_a_line_beyond_the_limit_is_an_error(write_text, name):
    path = write_text(name, b"short\n" + b"x" * (text_files.MAX_LINE_BYTES + 1) + b"\n")
    with pytest.raises(CorpusError) as caught:
        list(read_lines(path))
    assert str(caught.value).startswith(f"{path}:2: the line is longer than 16,777,216 bytes.")


def test_the_limit_itself(monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 8)
    assert list(decode_lines(io.BytesIO(b"1234567\n12345678"), "t")) == ["1234567", "12345678"]
    with pytest.raises(CorpusError, match="t:2: the line is longer than 8 bytes"):
        list(decode_lines(io.BytesIO(b"ok\n123456789"), "t"))


def test_lines_are_read_as_they_are_asked_for(write_text):
    path = write_text("text.en", b"one\ntwo\n\xff\n")
    reading = read_lines(path)
    assert [next(reading), next(reading)] == ["one", "two"]


def test_lone_surrogates_are_refused_with_the_place():
    assert check_text("Größe 👍", "line 1") == "Größe 👍"
    with pytest.raises(InputError) as caught:
        check_text("ab\udc80c", "line 7")
    assert str(caught.value).startswith("line 7: character 3 is a lone surrogate (U+DC80)")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_all_other_text_passes(text):
    assert check_text(text, "line 1") == text


@given(st.text())
def test_one_line_is_one_line(text):
    line = one_line(text)
    assert len(line) == len(text)
    assert not {"\n", "\r"} & set(line)
    assert all(now in (before, " ") for before, now in zip(text, line, strict=True))
    assert one_line(line) == line


@pytest.mark.parametrize("name", ["old.txt", "old.txt.gz"])
def test_carriage_returns_alone_do_not_make_one_long_line(name, write_text):
    path = write_text(name, b"one\rtwo\rthree\r")
    with pytest.raises(CorpusError, match=re.escape(f"{path} has carriage returns and no newlines")):
        list(read_lines(path))
