#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/tokenizer/unicode_tables.inc: categories, lower case, decompositions and compositions of Unicode.

The version is the one of the regular expressions of the reference library, `tokenizers` 0.23. Its normalizers are older, each in
its own way, and vocabularies were made with them; so the library itself is asked which characters they do not know.
    python3 -m venv v && v/bin/pip install unicodedata2==16.0.0 tokenizers==0.23.3 && v/bin/python tools/make_unicode_tables.py
Use Python 3.11: what its own unicodedata (14.0) lacks is what Debian 12's PCRE2 lacks.
"""
import sys
import unicodedata
from pathlib import Path

import unicodedata2 as ucd
from tokenizers import normalizers, pre_tokenizers

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


CHARACTERS = [cp for cp in range(LIMIT) if not 0xD800 <= cp < 0xE000]


def as_ranges(points):
    ranges = []
    for cp in sorted(points):
        if ranges and ranges[-1][1] == cp - 1:
            ranges[-1][1] = cp
        else:
            ranges.append([cp, cp])
    return ranges


def disputed(normalizer, categories):
    """Characters that a normalizer should drop by their category but does not, and the other way round."""
    return [cp for cp in CHARACTERS if (ucd.category(chr(cp)) in categories) != (normalizer.normalize_str(chr(cp)) == "")]


def bert(**only):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**(off | only))


def punctuation_differences():
    """Characters that are punctuation by category or by the library, but not by both."""
    split = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("removed")])
    result = []
    for cp in CHARACTERS:
        if cp >= 0x80 and not chr(cp).isspace():
            if (split.pre_tokenize_str(chr(cp)) == []) != ucd.category(chr(cp)).startswith("P"):
                result.append(cp)
    return result


DISPUTED_MARKS = disputed(normalizers.StripAccents(), ("Mn", "Mc", "Me"))
NFD, NFKD = normalizers.NFD(), normalizers.NFKD()


def known_to_normalizers(cp):
    return cp not in UNKNOWN and NFD.normalize_str(chr(cp)) == ucd.normalize("NFD", chr(cp)) and \
        NFKD.normalize_str(chr(cp)) == ucd.normalize("NFKD", chr(cp))


UNKNOWN = {cp for cp in DISPUTED_MARKS if ucd.category(chr(cp)).startswith("M")}


def decompositions():
    """(code point, compatibility?, full expansion) of everything but Hangul syllables, sorted."""
    result = []
    for cp in range(LIMIT):
        if cp in HANGUL or 0xD800 <= cp < 0xE000 or not known_to_normalizers(cp):
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
        if len(parts) == 2 and known_to_normalizers(cp) and ucd.normalize("NFC", chr(parts[0]) + chr(parts[1])) == chr(cp):
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

    out.append("// Where the reference library's normalizers, whose tables are older, judge otherwise than the category says.")
    out.append("struct Exception { char32_t first, last; };")
    for name, points in [("kPunctuationExceptions", punctuation_differences()), ("kControlExceptions", disputed(bert(clean_text=True), ("Cc", "Cf", "Co"))),
                         ("kNonspacingExceptions", disputed(bert(strip_accents=True), ("Mn",))), ("kMarkExceptions", DISPUTED_MARKS)]:
        emit(out, "Exception", name, [f"{{{a:#x},{b:#x}}}" for a, b in as_ranges(points)])

    index, values = two_stage([0 if cp in UNKNOWN else ucd.combining(chr(cp)) for cp in range(LIMIT)])
    emit(out, "std::uint8_t", "kCombiningIndex", index)
    emit(out, "std::uint8_t", "kCombiningValues", values)

    lower = [(cp, ord(to)) for cp in CHARACTERS if len(to := normalizers.Lowercase().normalize_str(chr(cp))) == 1 and to != chr(cp)]
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
