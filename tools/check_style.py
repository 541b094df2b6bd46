#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the sources that no compiler makes.

Errors: a source file without its SPDX line, a folder of src/ without a README.md of at most 30 lines. Warnings: files over 400
lines and C++ functions over 40, which are questions to answer rather than limits.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPDX = "SPDX-License-Identifier: Apache-2.0"
CODE = (".cc", ".h", ".inl", ".inc", ".rs", ".py", ".sh", ".cmake")
FILE_LINES = 400
FUNCTION_LINES = 40
README_LINES = 30
NOT_FUNCTIONS = re.compile(r"(namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|return|case|default)\b")


def is_code(path: pathlib.PurePath) -> bool:
    return path.suffix in CODE or path.name in ("run", "test", "CMakeLists.txt")


def has_spdx(text: str) -> bool:
    return any(SPDX in line for line in text.split("\n", 3)[:2])


def long_functions(text: str, limit: int = FUNCTION_LINES) -> list[tuple[int, str, int]]:
    """(line, name, length) of functions over the limit. Relies on the formatter: a body ends with a brace in the column
    where its head began, and heads begin in column 0 or, inside a class, 2."""
    lines = text.split("\n")
    found = []
    for i, line in enumerate(lines):
        head = re.match(r"( {2})?([A-Za-z~\[].*)$", line)
        if not head or NOT_FUNCTIONS.match(head[2]) or "(" not in line:
            continue
        indent = head[1] or ""
        opening = i
        while opening < len(lines) - 1 and not lines[opening].rstrip().endswith(("{", ";", "}")):
            opening += 1
        if not lines[opening].rstrip().endswith("{"):
            continue
        end = next((j for j in range(opening + 1, len(lines)) if re.match(rf"{indent}}}", lines[j])), None)
        if end is not None and end - i + 1 > limit:
            name = re.search(r"([\w:~]+)\(", line)
            found.append((i + 1, name[1] if name else "?", end - i + 1))
    return found


def check_file(relative: pathlib.PurePath, text: str) -> tuple[list[str], list[str]]:
    errors, warnings = [], []
    if not has_spdx(text):
        errors.append(f"{relative}:1: the line '{SPDX}' is missing")
    lines = text.count("\n")
    if lines > FILE_LINES and relative.suffix != ".inc":  # generated tables
        warnings.append(f"{relative}: {lines} lines")
    if relative.suffix in (".cc", ".h", ".inl") and "format_to(std::back_inserter" in text:
        errors.append(f"{relative}: fmt::format_to with a back_inserter does not link with Clang and Debian's libfmt: append fmt::format()")
    if relative.suffix in (".cc", ".h", ".inl"):
        warnings += [f"{relative}:{line}: {name} has {length} lines" for line, name, length in long_functions(text)]
    return errors, warnings


def check_readmes() -> list[str]:
    errors = []
    for folder in sorted(p for p in (ROOT / "src").iterdir() if p.is_dir() and any(p.glob("*.h"))):
        readme = folder / "README.md"
        if not readme.exists():
            errors.append(f"src/{folder.name}: there is no README.md")
        elif (lines := len(readme.read_text().rstrip().split("\n"))) > README_LINES:
            errors.append(f"src/{folder.name}/README.md: {lines} lines, over {README_LINES}")
    return errors


def tracked_files() -> list[pathlib.PurePath]:
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    return [pathlib.PurePath(name) for name in listed.split("\0") if name]


def main() -> int:
    errors, warnings = check_readmes(), []
    for relative in tracked_files():
        if is_code(relative) and not relative.is_relative_to("tests/data") and (ROOT / relative).exists():
            more_errors, more_warnings = check_file(relative, (ROOT / relative).read_text(encoding="utf-8"))
            errors += more_errors
            warnings += more_warnings
    for warning in warnings:
        print(f"warning: {warning}")
    for error in errors:
        print(f"error: {error}")
    print(f"style: {len(errors)} errors, {len(warnings)} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
