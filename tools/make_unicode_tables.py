#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/tokenizer/unicode_tables.inc: categories, lower case, decompositions and compositions of Unicode.

The version should be the one that the reference tokenizers' regular expressions use (16.0 for `tokenizers` 0.23):
    python3 -m venv v && v/bin/pip install unicodedata2==16.0.0 && v/bin/python tools/make_unicode_tables.py
Without unicodedata2 Python's own (older) tables are used; the header of the output says which version they are.
"""
import sys
import unicodedata
from pathlib import Path

try:
    import unicodedata2 as ucd
except ImportError:
    ucd = unicodedata

CATEGORIES = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
              "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"]
SPACE_CONTROL = len(CATEGORIES)  # a Cc that is White_Space
LIMIT = 0x110000
BLOCK = 128
HANGUL = range(0xAC00, 0xD7A4)


def category(cp):
    if cp in (9, 10, 11, 12, 13, 0x85):
        return SPACE_CONTROL
    return CATEGORIES.index(ucd.category(chr(cp)))


def two_stage(values):
    blocks, index, seen = [], [], {}
    for start in range(0, LIMIT, BLOCK):
        block = tuple(values[start:start + BLOCK])
        if block not in seen:
            seen[block] = len(blocks)
            blocks.append(block)
        index.append(seen[block])
    return index, [v for block in blocks for v in block]


def emit(out, ctype, name, values, form="{}"):
    out.append(f"constexpr {ctype} {name}[{len(values)}] = {{")
    line = ""
    for value in values:
        text = form.format(value) + ","
        if len(line) + len(text) > 138:
            out.append(line)
            line = ""
        line += text
    out.append(line)
    out.append("};")


def new_ranges():
    """(first, last, category) of what came after Python's own tables (Unicode 14 in Python 3.11)."""
    ranges = []
    for cp in range(LIMIT):
        if ucd.category(chr(cp)) == unicodedata.category(chr(cp)):
            continue
        cat = category(cp)
        if ranges and ranges[-1][1] == cp - 1 and ranges[-1][2] == cat:
            ranges[-1][1] = cp
        else:
            ranges.append([cp, cp, cat])
    return ranges


def decompositions():
    """(code point, compatibility?, full expansion) of everything but Hangul syllables, sorted."""
    result = []
    for cp in range(LIMIT):
        if cp in HANGUL or 0xD800 <= cp < 0xE000:
            continue
        c = chr(cp)
        nfd, nfkd = ucd.normalize("NFD", c), ucd.normalize("NFKD", c)
        if nfkd != c:
            result.append((cp, nfd, nfkd))
    return result


def compositions():
    """(first, second, composed) of the primary composites, sorted."""
    result = []
    for cp in range(LIMIT):
        field = ucd.decomposition(chr(cp)) if not 0xD800 <= cp < 0xE000 else ""
        if not field or field.startswith("<"):
            continue
        parts = [int(p, 16) for p in field.split()]
        if len(parts) == 2 and ucd.normalize("NFC", chr(parts[0]) + chr(parts[1])) == chr(cp):
            result.append((parts[0], parts[1], cp))
    return sorted(result)


def main():
    path = Path(__file__).resolve().parent.parent / "src/tokenizer/unicode_tables.inc"
    out = ["// SPDX-License-Identifier: Apache-2.0",
           f"// Made by tools/make_unicode_tables.py from Unicode {ucd.unidata_version}; see unicode.cc.",
           "// clang-format off"]
    index, values = two_stage([category(cp) for cp in range(LIMIT)])
    emit(out, "std::uint8_t" if max(index) < 256 else "std::uint16_t", "kCategoryIndex", index)
    emit(out, "std::uint8_t", "kCategoryValues", values)

    out.append("// Characters that the PCRE2 of Debian 12 (Unicode 14) does not know.")
    out.append("struct NewRange { char32_t first, last; std::uint8_t category; };")
    emit(out, "NewRange", "kNewRanges", [f"{{{a:#x},{b:#x},{c}}}" for a, b, c in new_ranges()])

    index, values = two_stage([ucd.combining(chr(cp)) for cp in range(LIMIT)])
    emit(out, "std::uint8_t", "kCombiningIndex", index)
    emit(out, "std::uint8_t", "kCombiningValues", values)

    lower = [(cp, ord(chr(cp).lower())) for cp in range(LIMIT)
             if not 0xD800 <= cp < 0xE000 and len(chr(cp).lower()) == 1 and chr(cp).lower() != chr(cp)]
    out.append("struct LowerEntry { char32_t from, to; };")
    emit(out, "LowerEntry", "kLower", [f"{{{a:#x},{b:#x}}}" for a, b in lower])

    text, entries = [], []
    for cp, nfd, nfkd in decompositions():
        canonical = [] if nfd == chr(cp) else [ord(c) for c in nfd]
        entries.append(f"{{{cp:#x},{len(text)},{len(canonical)},{len(nfkd) if nfkd != nfd else 0}}}")
        text += canonical
        if nfkd != nfd:
            text += [ord(c) for c in nfkd]
    out.append("// The expansion starts at `offset` of kDecompositionText: first the canonical one, then the compatible one if it differs.")
    out.append("struct DecompositionEntry { char32_t from; std::uint16_t offset; std::uint8_t canonical, compatible; };")
    emit(out, "DecompositionEntry", "kDecompositions", entries)
    emit(out, "char32_t", "kDecompositionText", text, "{:#x}")
    out.append("struct CompositionEntry { char32_t first, second, composed; };")
    emit(out, "CompositionEntry", "kCompositions", [f"{{{a:#x},{b:#x},{c:#x}}}" for a, b, c in compositions()])

    out.append("// clang-format on")
    path.write_text("\n".join(out) + "\n")
    print(f"{path.name}: Unicode {ucd.unidata_version}, {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
