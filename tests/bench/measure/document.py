# SPDX-License-Identifier: MIT
"""Pages of which a part is written by a program: between the marks, never around them."""
import sys

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def write(page, text):
    before, mark, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        sys.exit(f"{page} has no place for figures ({BEGIN} … {END})")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
