# SPDX-License-Identifier: MIT
"""Tables that are read on a terminal and in Markdown alike."""
import statistics


def median(values):
    return statistics.median(values)


def percentile(values, percent):
    """The value that `percent` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * percent // 100) - 1))]


def number(value):
    """Three digits that mean something."""
    if isinstance(value, str):
        return value
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(headings, rows):
    cells = [list(map(str, headings)), *[[number(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]

    def line(row):
        first, *rest = (cell.ljust(width) if not place else cell.rjust(width)
                        for place, (cell, width) in enumerate(zip(row, widths)))
        return "| " + " | ".join([first, *rest]) + " |"

    rule = "|".join("-" * (width + 1) + (":" if place else "-") for place, width in enumerate(widths))
    return "\n".join([line(cells[0]), f"|{rule}|", *map(line, cells[1:])])
