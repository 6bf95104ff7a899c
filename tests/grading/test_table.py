import gzip
import io
import pickle
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.grading.table import Caps, TableError, read_header, read_table, write_table

PLAIN = b"id,y\na,1\nb,2\n"


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("submission.csv", PLAIN)
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        b"\xef\xbb\xbf" + PLAIN,
        b'\xef\xbb\xbf"id","y"\r\n"a","1"\r\n"b","2"',
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n", b"\r"),
        b"\n\nid,y\n\na,1\nb,2\n\n",
    ],
    ids=["plain", "bom", "bom-quoted-crlf", "crlf", "cr", "blank-lines"],
)
def test_g31_one_table_whatever_the_mark_and_line_ends(data):
    table = read_table(data)
    assert table.header == ("id", "y")
    assert table.rows == [["a", "1"], ["b", "2"]]


def test_g32_words_for_missing_stay_words():
    cells = ["NA", "None", "null", "nan", "NaN", "", "N/A", "#N/A", "True"]
    data = write_table({"id": list(range(len(cells))), "y": cells})
    assert read_table(data).column("y") == cells


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (zipped(), "a zip archive"),
        (gzip.compress(PLAIN, mtime=0), "compressed with gzip"),
        (PLAIN.decode().encode("utf-16"), "UTF-16"),
        (PLAIN.decode().encode("utf-16-le"), "UTF-16"),
        (PLAIN.replace(b",", b";"), "separated by semicolons"),
        (PLAIN.replace(b",", b"\t"), "separated by tabs"),
        (b"id,y\na,1\x00\n" + b"b,2\n" * 100, "NUL bytes"),
        (b"id,y\na,caf\xe9\n", "line 2 is not UTF-8 text (byte 0xe9)"),
        (b"PAR1....", "a Parquet file"),
        (pickle.dumps({"id": 1}), "a Python pickle"),
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"\xef\xbb\xbf", "no header"),
        (b"id,y\na,1\nb,2,3\n", "line 3 has 3 cells, the header has 2"),
        (b'id,y\n"a\nb",1\nc\n', "line 4 has 1 cells"),
        (b'id,y\n"a,1\nb,2\n', "is not CSV"),
    ],
)
def test_g46_other_formats_are_refused_with_the_cause_in_words(data, cause):
    with pytest.raises(TableError) as caught:
        read_table(data)
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("caps", "cause"),
    [
        (Caps(size_bytes=8), "bytes, more than the 8 allowed"),
        (Caps(rows=1), "more than 1 rows"),
        (Caps(columns=1), "2 columns, more than the 1 allowed"),
        (Caps(cell_chars=3), "line 4 has a cell of 4 characters, more than the 3 allowed"),
    ],
)
def test_caps(caps, cause):
    with pytest.raises(TableError, match=cause):
        read_table(PLAIN + b"c,long\n", caps)


def test_a_huge_cell_is_refused():
    with pytest.raises(TableError, match="line 2"):
        read_table(b"id,y\na," + b"x" * 200_000 + b"\n")


def test_a_row_of_commas_does_not_eat_the_memory():
    data = b"id,y\n" + b"," * 4_000_000 + b"\n"
    tracemalloc.start()
    try:
        with pytest.raises(TableError, match="line 2 has"):
            read_table(data)
        assert tracemalloc.get_traced_memory()[1] < 150_000_000
    finally:
        tracemalloc.stop()


def test_commas_and_line_ends_are_counted_before_anything_is_split():
    for data in (b"," * 20_000_000, b"id,y\n" + b"," * 20_000_000, b"id,y\n" + b"\n" * 20_000_000, b"id\r" * 9_000_000):
        tracemalloc.start()
        try:
            with pytest.raises(TableError, match="more than 5000000 cells and lines"):
                read_table(data)
            assert tracemalloc.get_traced_memory()[1] < 30_000_000
        finally:
            tracemalloc.stop()


def test_reading_stops_at_the_first_ragged_row():
    with pytest.raises(TableError, match="line 3 has 1 cells"):
        read_table(b'id,y\na,1\nb\n"never closed')


def test_the_header_alone():
    assert read_header(b"\n" + PLAIN) == ("id", "y")
    assert read_header(b'id,y\n"never closed') == ("id", "y")
    with pytest.raises(TableError, match="no header"):
        read_header(b"\xef\xbb\xbf")
    with pytest.raises(TableError, match="line 1 is not CSV"):
        read_header(b'"id')


def test_line_numbers_count_lines_of_the_file():
    table = read_table(b'id,y\n"a\nb",1\n\nc,2\n')
    assert [table.line_of(row) for row in (0, 1)] == [2, 5]
    with pytest.raises(IndexError):
        table.line_of(2)


def test_writer_keeps_every_digit_and_quotes_what_must_be():
    numbers = np.array([0.1, 1 / 3, np.nan, 1e-20])
    data = write_table({"id": ["a", 'b"', "c,d", "e\nf"], "x": numbers, "n": np.arange(4)})
    table = read_table(data)
    assert table.column("id") == ["a", 'b"', "c,d", "e\nf"]
    assert [float(cell) if cell else None for cell in table.column("x")] == [0.1, 1 / 3, None, 1e-20]
    assert table.column("n") == ["0", "1", "2", "3"]
    assert write_table({"x": numbers}, decimals=3).split() == [b"x", b"0.1", b"0.333", b'""', b"0.0"]


def test_writer_refuses_columns_of_different_length():
    with pytest.raises(ValueError, match="argument"):
        write_table({"a": [1, 2], "b": [1]})


def test_g31_pandas_reads_what_the_writer_writes():
    frame = pd.read_csv(io.BytesIO(write_table({"id": ["x", "y"], "v": np.array([0.25, 0.5])})))
    assert frame.to_dict("list") == {"id": ["x", "y"], "v": [0.25, 0.5]}


@given(
    st.lists(
        st.lists(
            st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00")), min_size=2, max_size=2
        ),
        max_size=5,
    )
)
def test_what_is_written_is_read_back(rows):
    data = write_table({"first": [row[0] for row in rows], "second": [row[1] for row in rows]})
    assert read_table(data).rows == rows


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data):
    try:
        table = read_table(data)
    except TableError:
        return  # the only error there is
    assert all(len(row) == len(table.header) for row in table.rows)
