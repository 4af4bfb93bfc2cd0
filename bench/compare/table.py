"""The result's rows, and their Markdown."""
from typing import NamedTuple, Optional

from samples import better_of, ratio_of, spread_of


class Row(NamedTuple):
    what: str
    ours: str  # a quantity of TideKV
    theirs: Optional[str]  # the peer's; None: ours alone, and the ratio is its value
    unit: str  # a key of UNITS
    higher_is_better: bool
    bar: Optional[float]  # of the ratio; None: the peer is there for comparison


# Name: what one is divided by, digits after the point, text after the number.
UNITS = {
    "tokens/s": (1, 1, " tok/s"),
    "seconds": (1, 3, " s"),
    "bytes": (1e6, 1, " MB"),
    "share": (0.01, 1, " %"),
    "times": (1, 2, " x"),
}


def text_of(spread, unit):
    """`12.3 (11.9..12.6) tok/s`; one sample stands alone."""
    scale, digits, suffix = UNITS[unit]
    median, least, most = (f"{value / scale:,.{digits}f}" for value in spread)
    return median + (f" ({least}..{most})" if least != most else "") + suffix


def bar_text(row, value):
    if row.bar is None:
        return ""
    share = row.theirs is None and not row.higher_is_better
    met = value <= row.bar if share else value >= row.bar
    scale, digits, suffix = UNITS["times" if row.theirs else row.unit]
    return (f"{'at most' if share else 'at least'} {row.bar / scale:.{digits}f}{suffix}: "
            f"{'met' if met else 'missed'}")


def result_of(row, ours, peers):
    """One row's numbers. `ours`: quantity to samples; `peers`: a variant's name to the same. Of the
    variants the better one counts."""
    result = {"what": row.what, "unit": row.unit, "bar": row.bar, "theirs": None, "variant": None,
              "ours": spread_of(ours[row.ours])}
    if row.theirs is None:
        result["ratio"] = result["ours"]
    else:
        variants = {name: quantities[row.theirs] for name, quantities in peers.items()}
        name = better_of(variants, row.higher_is_better)
        result["variant"] = name
        result["theirs"] = spread_of(variants[name])
        result["ratio"] = ratio_of(ours[row.ours], variants[name], row.higher_is_better)
    result["bar_text"] = bar_text(row, result["ratio"].median)
    return result


def markdown_table(results, peer):
    lines = [f"| | TideKV | {peer} | ratio (above 1: TideKV is better) | bar |",
             "|---|---|---|---|---|"]
    for result in results:
        alone = result["theirs"] is None
        theirs = "" if alone else (f"{text_of(result['theirs'], result['unit'])}, "
                                   f"{result['variant']}")
        ratio = "" if alone else text_of(result["ratio"], "times")
        cells = (result["what"], text_of(result["ours"], result["unit"]), theirs, ratio,
                 result["bar_text"])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
