#!/usr/bin/env python3
"""Tables and pictures of the papers' examples, from CSV on standard input.

    figures.py table                         aligned columns
    figures.py medians VALUE...              the median of these columns, for each combination of the others
    figures.py summary VALUE                 minimum, mean, and maximum of a column, in the same way
    figures.py ratio VALUE COLUMN ROW AS [BY...]  VALUE in percent of the row whose COLUMN is ROW, as column AS;
                                             each combination of the columns BY has its own such row
    figures.py beside FILE COLUMN...         adds the other columns of a CSV file, by these ones
    figures.py fio FILE                      operations per second, MiB per second, and CPU seconds of fio's JSON
    figures.py lines OUT.svg [OPTIONS]       a line per series: columns x, y, and series
    figures.py dots OUT.svg [OPTIONS]        a dot per row: the same columns
    figures.py bars OUT.svg [OPTIONS]        a group of bars per x, or one stacked bar with --stacked

Options of pictures: --title, --x, --y (titles of the axes), --x-column, --y-column, --series-column,
--log-x, --log-y. Needs nothing but Python.
"""

import argparse
import csv
import html
import json
import math
import statistics
import sys

WIDTH, HEIGHT = 700, 330
LEFT, RIGHT, TOP, BOTTOM = 72, 196, 34, 48
COLORS = ["#3b6fb6", "#d9822b", "#3a9a5b", "#b5473c", "#7b5ea7", "#8c6d4f", "#4aa3a8", "#8a8a8a", "#c3a11f", "#d46aa0", "#5b8c2a", "#2b3a67"]


def rows():
    """The CSV on standard input, a dictionary per line."""
    return list(csv.DictReader(sys.stdin))


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def short(value):
    """A number with three digits."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write(table):
    if table:
        out = csv.DictWriter(sys.stdout, list(table[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(table)


def grouped(table, values):
    """Rows by all columns that are not values, in the order of their first appearance."""
    groups = {}
    for row in table:
        key = tuple((name, text) for name, text in row.items() if name not in values)
        groups.setdefault(key, []).append(row)
    return groups


def show(table):
    if not table:
        print("(no rows)")
        return
    names = list(table[0])
    cells = [names] + [[row[name] or "-" for name in names] for row in table]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    # Numbers are aligned at their ends, as the tables of `fathom query` are.
    left = [any(number(line[i]) is None and line[i] != "-" for line in cells[1:]) for i in range(len(names))]
    for line in cells:
        text = (cell.ljust(width) if start else cell.rjust(width) for cell, width, start in zip(line, widths, left))
        print("  ".join(text).rstrip())


def medians(values):
    result = []
    for key, group in grouped(rows(), values).items():
        row = dict(key)
        for value in values:
            numbers = [n for n in (number(one[value]) for one in group) if n is not None]
            row[value] = short(statistics.median(numbers)) if numbers else ""
        result.append(row)
    write(result)


def summary(value):
    result = []
    for key, group in grouped(rows(), [value]).items():
        numbers = [n for n in (number(one[value]) for one in group) if n is not None]
        if numbers:
            parts = {"min": min(numbers), "mean": statistics.fmean(numbers), "max": max(numbers)}
            result.append(dict(key) | {name: short(n) for name, n in parts.items()})
    write(result)


def ratio(value, column, base, name, by):
    """A row is compared with the base that has the same texts in the columns `by`."""
    table = rows()
    bases = {tuple(row[c] for c in by): number(row[value]) for row in table if row[column] == base}
    for row in table:
        least, own = bases.get(tuple(row[c] for c in by)), number(row[value])
        row[name] = short(100 * own / least) if least and own is not None else ""
    write(table)


def beside(file, columns):
    table = rows()
    with open(file, newline="") as text:
        others = {tuple(row[c] for c in columns): row for row in csv.DictReader(text)}
    more = [name for name in next(iter(others.values())) if name not in columns]
    for row in table:
        other = others.get(tuple(row[c] for c in columns), {})
        row.update({name: other.get(name, "") for name in more})
    write(table)


def fio(file):
    """Numbers of all jobs together, without the words that fio may print before its JSON."""
    with open(file) as text:
        content = text.read()
    jobs = json.loads(content[content.index("{") :])["jobs"]
    sides = [job[side] for job in jobs for side in ("read", "write")]
    total = sum(side["total_ios"] for side in sides)
    size = sum(side["io_bytes"] for side in sides)
    longest = max(side["runtime"] for side in sides) / 1000 or 0.001
    cpu = sum((job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000 for job in jobs)
    print(f"{total / longest:.0f},{size / longest / 1048576:.1f},{cpu:.3f}")


class Axis:
    """Values to places on the picture."""

    def __init__(self, values, begin, end, logarithmic, zero):
        values = [v for v in values if v is not None and (v > 0 or not logarithmic)]
        low, high = (min(values), max(values)) if values else (1, 10)
        if zero and not logarithmic:
            low = min(0, low)
        if low == high:
            high = low * 2 if low > 0 else low + 1
        self.low, self.high, self.begin, self.end, self.logarithmic = low, high, begin, end, logarithmic

    def place(self, value):
        if self.logarithmic:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def ticks(self):
        if self.logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            ticks = [10.0**e for e in range(first, last + 1)]
            if last - first < 3:
                ticks = [m * t for t in ticks for m in (1, 2, 5)]
            return [t for t in ticks if self.low <= t <= self.high * 1.0001]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= 6)
        first = math.ceil(self.low / step)
        return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def label(value):
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):g}{unit}"
    return f"{value:g}"


class Picture:
    def __init__(self, options, series):
        self.options, self.series = options, series
        self.right, self.bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        self.parts = []
        self.text((LEFT + self.right) / 2, 18, options.title, "middle", "title")
        self.text((LEFT + self.right) / 2, HEIGHT - 10, options.x, "middle")
        middle = (TOP + self.bottom) / 2
        self.parts.append(f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle">{html.escape(options.y)}</text>')
        for i, name in enumerate(series if len(series) > 1 else []):
            self.parts.append(f'<rect x="{self.right + 12}" y="{TOP + 16 * i}" width="9" height="9" fill="{self.color(name)}"/>')
            self.text(self.right + 26, TOP + 8 + 16 * i, name)

    def color(self, name):
        return COLORS[self.series.index(name) % len(COLORS)]

    def text(self, x, y, words, anchor="start", kind=""):
        kind = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{kind}>{html.escape(words)}</text>')

    def line(self, x1, y1, x2, y2, kind):
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>')

    def vertical(self, axis):
        for tick in axis.ticks():
            self.line(LEFT, axis.place(tick), self.right, axis.place(tick), "grid")
            self.text(LEFT - 6, axis.place(tick) + 4, label(tick), "end")

    def frame(self):
        self.line(LEFT, TOP, LEFT, self.bottom, "axis")
        self.line(LEFT, self.bottom, self.right, self.bottom, "axis")

    def save(self, file):
        style = (
            "text{font:11px sans-serif;fill:#333}.title{font-weight:bold;font-size:13px}"
            ".grid{stroke:#ddd}.axis{stroke:#333}polyline{fill:none;stroke-width:2}"
        )
        body = "\n".join(self.parts)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        with open(file, "w") as out:
            out.write(f'{head}\n<style>{style}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n')
        print(f"picture: {file}")


def points(kind, options):
    table = [
        (number(row[options.x_column]), number(row[options.y_column]), row.get(options.series_column, ""))
        for row in rows()
    ]
    table = [point for point in table if point[0] is not None and point[1] is not None]
    picture = Picture(options, list(dict.fromkeys(name for _, _, name in table)))
    horizontal = Axis([x for x, _, _ in table], LEFT, picture.right, options.log_x, False)
    vertical = Axis([y for _, y, _ in table], picture.bottom, TOP, options.log_y, True)
    picture.vertical(vertical)
    for tick in horizontal.ticks():
        picture.text(horizontal.place(tick), picture.bottom + 16, label(tick), "middle")
    picture.frame()
    for name in picture.series:
        own = [(horizontal.place(x), vertical.place(y)) for x, y, one in table if one == name]
        color = picture.color(name)
        if kind == "lines":
            places = " ".join(f"{x:g},{y:g}" for x, y in own)
            picture.parts.append(f'<polyline points="{places}" stroke="{color}"/>')
            picture.parts += [f'<circle cx="{x:g}" cy="{y:g}" r="2.5" fill="{color}"/>' for x, y in own]
        else:
            # Dots on the same pixel are one dot: a picture of a million rows is as small as another.
            # No more dots than a reader can tell from each other: every n-th of a long recording.
            side = 6 if len(table) <= 300 else 2
            some = own[:: math.ceil(len(own) / 4000)]
            pixels = sorted({(round(x - side / 2), round(y - side / 2)) for x, y in some})
            places = "".join(f"M{x} {y}h{side}v{side}h-{side}z" for x, y in pixels)
            picture.parts.append(f'<path fill="{color}" fill-opacity="0.75" d="{places}"/>')
    picture.save(options.file)


def bars(options):
    table = rows()
    groups = list(dict.fromkeys(row.get(options.x_column, "") for row in table))
    series = list(dict.fromkeys(row.get(options.series_column, "") for row in table))
    values = {(row.get(options.x_column, ""), row.get(options.series_column, "")): number(row[options.y_column]) or 0 for row in table}
    sums = [sum(values.get((group, name), 0) for name in series) for group in groups]
    picture = Picture(options, series)
    vertical = Axis((sums if options.stacked else list(values.values())) or [1], picture.bottom, TOP, options.log_y, True)
    picture.vertical(vertical)
    room = (picture.right - LEFT) / max(1, len(groups))
    every = math.ceil(len(groups) / 12)
    for i, group in enumerate(groups):
        middle = LEFT + room * (i + 0.5)
        if i % every == 0:
            picture.text(middle, picture.bottom + 16, group, "middle")
        below = 0
        for j, name in enumerate(series):
            value = values.get((group, name))
            if not value:
                continue
            width = room * (0.8 if options.stacked else 0.8 / len(series))
            x = middle - room * 0.4 + (0 if options.stacked else j * width)
            top, bottom = vertical.place(below + value), vertical.place(below) if options.stacked else picture.bottom
            if bottom - top >= 0.1:
                place = f'x="{x:.1f}" y="{top:g}" width="{width:.1f}" height="{bottom - top:.1f}"'
                picture.parts.append(f'<rect {place} fill="{picture.color(name)}"/>')
            below += value if options.stacked else 0
    picture.frame()
    picture.save(options.file)


def options(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    for name in ("title", "x", "y"):
        parser.add_argument(f"--{name}", default="")
    for name in ("x", "y", "series"):
        parser.add_argument(f"--{name}-column", default=name)
    for name in ("log-x", "log-y", "stacked"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args(words)


def main():
    match sys.argv[1:]:
        case ["table"]:
            show(rows())
        case ["medians", *values] if values:
            medians(values)
        case ["summary", value]:
            summary(value)
        case ["ratio", value, column, base, name, *by]:
            ratio(value, column, base, name, by)
        case ["beside", file, *columns] if columns:
            beside(file, columns)
        case ["fio", file]:
            fio(file)
        case [("lines" | "dots") as kind, *words]:
            points(kind, options(words))
        case ["bars", *words]:
            bars(options(words))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
