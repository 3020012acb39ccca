"""Reading C++ without a compiler: blanking comments and strings, finding includes and functions.

Good enough for this tree's style (Google layout by clang-format); not a parser.
"""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""//[^\n]*(?:\\\n[^\n]*)*          # line comment
      | /\*.*?\*/                        # block comment
      | R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"   # raw string
      | "(?:\\.|[^"\\\n])*"              # string
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'          # character, not a digit separator
    """, re.DOTALL | re.VERBOSE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
_SCOPE = re.compile(
    r"^(?:template\s*<.*>\s*)?(?:inline\s+|typedef\s+|static\s+|export\s+)*"
    r"(?:namespace|class|struct|union|enum|extern)\b", re.DOTALL)
_CONTROL = re.compile(r"^(?:else\b\s*)?(?:if|for|while|switch|catch|do|try|else|return)\b")


class Include(NamedTuple):
    path: str
    line: int
    quoted: bool  # "path", not <path>


class Function(NamedTuple):
    name: str
    line: int  # of the signature's first line
    lines: int  # signature to closing brace


def _spaces(text):
    return re.sub(r"[^\n]", " ", text)


def code_only(text):
    """The text with comments and string contents blanked; every line keeps its number."""
    def blank(match):
        token = match.group()
        if token[0] in "\"'R":
            return token[0].replace("R", '"') + _spaces(token[1:-1]) + token[-1]
        return _spaces(token)
    return _TOKEN.sub(blank, text)


def raw_string_lines(text):
    """Numbers of the lines that a raw string touches: clang-format cannot break them."""
    lines = set()
    for match in _TOKEN.finditer(text):
        if match.group().startswith('R"'):
            first = text.count("\n", 0, match.start()) + 1
            lines.update(range(first, first + match.group().count("\n") + 1))
    return lines


def _without_comments(text):
    return _TOKEN.sub(lambda m: _spaces(m.group()) if m.group()[0] == "/" else m.group(), text)


def includes(text):
    """Every #include of the text, those in comments left out."""
    text = _without_comments(text)
    return [Include(m.group(2), text.count("\n", 0, m.start()) + 1, m.group(1) == '"')
            for m in _INCLUDE.finditer(text)]


def _opens_function(header):
    header = header.strip()
    if "(" not in header or ")" not in header or _SCOPE.match(header) or _CONTROL.match(header):
        return False
    # An initialiser (`x = {`, `x = [](...) {`) is no function of its own.
    before_parameters = header[:header.index("(")]
    return "=" not in re.sub(r"operator\s*\S+$", "", before_parameters.strip())


def functions(text):
    """Every outermost function body (also TEST bodies) with its length."""
    code = _DIRECTIVE.sub(lambda m: _spaces(m.group()), code_only(text))
    found, header_start, depth, opened = [], 0, 0, None  # opened: (depth, start)
    for match in re.finditer(r"[{};]|\b(?:public|protected|private)\s*:(?!:)", code):
        token, at = match.group(), match.start()
        if token == "{":
            depth += 1
            header = code[header_start:at]
            # `a_{1}, b_(2) {`: the brace before closed a member initialiser, not the body.
            continues = found and found[-1][1] == header_start - 1 and re.match(r"\s*(,|$)", header)
            if opened is None and continues:
                opened = (depth, found.pop()[0])
            elif opened is None and _opens_function(header):
                opened = (depth, at - len(header.lstrip()))
            elif opened is None and not _SCOPE.match(header.strip()):
                opened = (depth, None)  # an initialiser: nothing inside is a function of the file
        elif token == "}":
            if opened and opened[0] == depth:
                if opened[1] is not None:
                    found.append((opened[1], at))
                opened = None
            depth -= 1
        header_start = match.end()
    return [_function(code, start, end) for start, end in found]


def _function(code, start, end):
    first = code.count("\n", 0, start) + 1
    signature = code[start:code.index("(", start)].split()
    return Function(signature[-1] if signature else "?", first,
                    code.count("\n", 0, end) + 1 - first + 1)
