#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a public header as Doxygen reads it (its INPUT_FILTER). The headers keep comments that are read in an editor; this makes of them

    the comment before #pragma once, or of rigel.h the first     the documentation of the file
    /// lines, or comments before a declaration of rigel.h       the documentation of what follows
    // or /* */ at the end of a member's line                    the documentation of the member

A paragraph stays one. Lines "name   text", with two spaces or more between, become a list of definitions, and lines that are indented become
code. Nothing in a comment is a command of Doxygen. The namespace rigel, in which all of them are, is left out: Doxygen documents functions of
no namespace on the page of their header.

    filter.py <header>
"""
import pathlib
import re
import sys

ENTRY = re.compile(r"^( *)(\S.*?)( {2,})(\S.*)$")


def escaped(text):
    """Plain text as Doxygen prints it; `code` in backquotes."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts = [text]
    for i, part in enumerate(parts):
        part = re.sub(r"([\\@&$#<>%\"])", r"\\\1", part)
        part = re.sub(r"^(\s*)-(?=\d)", r"\1&minus;", part)  # no list
        parts[i] = f"<code>{part}</code>" if i % 2 else part
    return "".join(parts)


def is_entry(line):
    match = ENTRY.match(line)
    return match and not line.lstrip().startswith("-") and not re.search(r";|//|[⊕=] *$", match[2]) and len(match[2]) <= 90


def documentation(lines):
    """The lines of a Doxygen comment from the lines of a comment, without their marks."""
    out, i = [], 0
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            out.append("")
            i += 1
        elif is_entry(line):
            indent = len(line) - len(line.lstrip())
            out.append("<dl>")
            while i < len(lines) and lines[i].strip() and is_entry(lines[i]) and len(lines[i]) - len(lines[i].lstrip()) == indent:
                match = ENTRY.match(lines[i])
                column = match.start(4)
                out.append(f"<dt>{escaped(match[2])}</dt><dd>{escaped(match[4])}")
                i += 1
                while i < len(lines) and lines[i].strip() and len(lines[i]) - len(lines[i].lstrip()) == column:
                    out.append(escaped(lines[i].strip()))
                    i += 1
                out[-1] += "</dd>"
            out.append("</dl>")
        elif line.startswith("   ") or (line.startswith("  ") and not (out and out[-1].startswith("- "))):
            code = []
            while i < len(lines) and (lines[i].startswith("  ") or (not lines[i].strip() and lines[i + 1:i + 2] and
                                                                    lines[i + 1].startswith("  "))):
                code.append(lines[i])
                i += 1
            kind = "code" if any(re.search(r";|::", c) for c in code) else "verbatim"
            out += ["\\code{.cpp}" if kind == "code" else "\\verbatim", *code, f"\\end{kind}"]
        else:
            while i < len(lines) and lines[i].strip() and not is_entry(lines[i]) and not lines[i].startswith("   "):
                text = lines[i].strip()
                out.append("- " + escaped(text[2:]) if text.startswith("- ") else
                           ("  " if lines[i].startswith("  ") else "") + escaped(text))
                i += 1
    return out


def scopes_of(line, scopes, statement):
    """Follows braces: `scopes` holds for each open one whether members stand in it. Returns the unfinished statement."""
    code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', '""', re.sub(r"//.*|/\*.*?\*/", "", line))
    for character in code:
        if character == "{":
            scopes.append(bool(re.search(r"\b(struct|class|union|enum|namespace|extern)\b", statement)) and
                          not statement.rstrip().endswith(")"))
            statement = ""
        elif character == "}":
            if scopes:
                scopes.pop()
            statement = ""
        elif character == ";":
            statement = ""
        else:
            statement += character
    return statement + " "


def filtered_cpp(lines):
    out, scopes, statement, i = [], [], "", 0
    pragma = lines.index("#pragma once")
    heading = [re.sub(r"^// ?", "", line) for line in lines[2:pragma]]
    out += ["/** \\file", *documentation(heading), "*/"]
    i = pragma
    while i < len(lines):
        line = re.sub(r"^(namespace rigel \{|\}  // namespace rigel)$", "", lines[i])
        comment = re.match(r"^(\s*)///(?!<)", line)
        if comment:
            block = []
            while i < len(lines) and re.match(r"^\s*///(?!<)", lines[i]):
                block.append(re.sub(r"^\s*/// ?", "", lines[i]))
                i += 1
            out += ["/**", *documentation(block), "*/"]
            continue
        is_member = all(scopes) and bool(scopes)
        trailing = re.match(r"^(\s*[^/\s].*?\S) {1,}// (.*)$", line)
        if trailing and is_member and re.search(r"[;,}]$|^\s*[\w:]+( = [\w:]+)?$", trailing[1]) and not re.search(r"[{(]$", trailing[1]):
            statement = scopes_of(trailing[1], scopes, statement)
            line = f"{trailing[1]} /**< {escaped(trailing[2])}"
            column = trailing.start(2) - 3
            # A comment goes on in lines that hold nothing else, below its beginning.
            while i + 1 < len(lines) and (more := re.match(r"^( {12,})// (.*)$", lines[i + 1])) and len(more[1]) == column:
                line += " " + escaped(more[2])
                i += 1
            out.append(line + " */")
        else:
            statement = scopes_of(line, scopes, statement)
            out.append(line)
        i += 1
    return out


def filtered_c(lines):
    text = "\n".join(lines)
    first = True

    def replaced(match):
        nonlocal first
        before, body = match[1], match[2]
        if body.startswith(" ----"):
            return match[0]
        block = [re.sub(r"^ ?\* ?", "", line) if n else line.strip() for n, line in enumerate(body.rstrip().split("\n"))]
        if first:
            first = False
            return "\n".join(["/** \\file", *documentation([b for b in block[1:]]), "*/"])
        if before.strip():
            return f"{before}/**< {escaped(' '.join(b.strip() for b in block))} */"
        return before + "\n".join(["/**", *documentation(block), "*/"])

    return re.sub(r"(?m)^([^\n]*?)/\*(.*?)\*/", replaced, text, flags=re.S).split("\n")


def main():
    path = pathlib.Path(sys.argv[1])
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    print("\n".join(filtered_c(lines) if path.suffix == ".h" else filtered_cpp(lines)))


if __name__ == "__main__":
    main()
