# SPDX-License-Identifier: Apache-2.0
"""What is compared, and how figures of several rounds become one table. No engine is known here."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Measure:
    key: str
    title: str
    unit: str
    batch: int = 1
    prompt: int = 0
    generate: int = 0
    depth: int = 0
    kind: str = "decode"  # "prefill", "decode", "start"
    heavy: bool = False  # takes minutes with a slow peer: repeated in fewer rounds
    lower_is_better: bool = False


MEASURES = [
    Measure("prefill", "prefill 512", "tokens/s", prompt=512, generate=1, kind="prefill"),
    Measure("decode", "decode, 1 stream", "tokens/s", prompt=16, generate=128),
    Measure("streams8", "decode, 8 streams in total", "tokens/s", batch=8, prompt=128, generate=64),
    Measure("streams32", "decode, 32 streams in total", "tokens/s", batch=32, prompt=128, generate=64, heavy=True),
    Measure("deep_prefill", "prefill 512 at depth 4,096", "tokens/s", prompt=512, generate=1, depth=4096, kind="prefill", heavy=True),
    Measure("deep_decode", "decode at depth 4,096", "tokens/s", prompt=16, generate=64, depth=4096, heavy=True),
    Measure("first_token", "cold process to first token", "s", prompt=16, generate=1, kind="start", lower_is_better=True),
    Measure("resident", "resident memory", "MB", kind="start", lower_is_better=True),
]
BY_KEY = {m.key: m for m in MEASURES}


@dataclasses.dataclass
class Sample:
    """One figure of one engine in one round."""

    model: str
    measure: str
    engine: str
    round: int
    value: float
    share: float | None = None  # of the machine's limit in that run
    others: float = 0.0  # of the processors, taken by other processes meanwhile


def order_of_round(engines, round_number):
    """Every engine once, each round beginning with the next one, so that none always runs after the same other."""
    if not engines:
        return []
    shift = round_number % len(engines)
    return engines[shift:] + engines[:shift]


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "count": len(values)}


def summarize(samples, engines, own="weir"):
    """A row per model and measure that has figures: the spread of each engine, and the ratio to the best peer (above 1: ours is better)."""
    rows = []
    for model in dict.fromkeys(s.model for s in samples):
        for measure in MEASURES:
            figures = {}
            for engine in engines:
                values = [s.value for s in samples if (s.model, s.measure, s.engine) == (model, measure.key, engine)]
                if values:
                    figures[engine] = spread(values)
            if not figures:
                continue
            row = {"model": model, "measure": measure.key, "title": measure.title, "unit": measure.unit, "engines": figures}
            shares = [s.share for s in samples if (s.model, s.measure, s.engine) == (model, measure.key, own) and s.share is not None]
            if shares:
                row["share_of_limit"] = statistics.median(shares)
            peers = {name: f["median"] for name, f in figures.items() if name != own}
            if own in figures and peers:
                best = (min if measure.lower_is_better else max)(peers, key=peers.get)
                ours, theirs = figures[own]["median"], peers[best]
                if ours > 0 and theirs > 0:
                    row["best_peer"] = best
                    row["ratio"] = theirs / ours if measure.lower_is_better else ours / theirs
            rows.append(row)
    return rows


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def figure(spread_):
    text = number(spread_["median"])
    if spread_["count"] > 1:
        text += f" ({number(spread_['min'])}–{number(spread_['max'])})"
    return text


def markdown(rows, engines, heading):
    """The table, one line per model and measure. Medians, with the range in brackets where there were several runs."""
    lines = [heading, "", "| file | measure | " + " | ".join(engines) + " | ratio to the best peer | share of the limit |",
             "|---" * (4 + len(engines)) + "|"]
    last = None
    for row in rows:
        cells = [row["model"] if row["model"] != last else "", f"{row['title']}, {row['unit']}"]
        last = row["model"]
        cells += [figure(row["engines"][e]) if e in row["engines"] else "–" for e in engines]
        cells.append(f"**{row['ratio']:.2f}** × {row['best_peer']}" if "ratio" in row else "–")
        cells.append(f"{100 * row['share_of_limit']:.0f} %" if "share_of_limit" in row else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
