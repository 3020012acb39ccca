"""Reading C++ without a compiler: blanking comments and strings, finding includes and functions.

Good enough for this tree's style (Google layout by clang-format); not a parser.
"""

import functools
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


class Declared(NamedTuple):
    namespace: str  # "tetrion::actor"; a nameless namespace shows as "-"
    name: str  # as written: "Ring", "Ring::Push", "Ring::Impl"
    line: int
    is_type: bool


class Function(NamedTuple):
    name: str
    line: int  # of the signature's first line
    lines: int  # signature to closing brace


def _spaces(text):
    return re.sub(r"[^\n]", " ", text)


@functools.cache
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


def without_comments(text):
    """The text with comments blanked and strings left as they are."""
    return _TOKEN.sub(lambda m: _spaces(m.group()) if m.group()[0] == "/" else m.group(), text)


def comments_only(text):
    """The text's comments; all else is blanked."""
    code = without_comments(text)
    return "".join(c if c == "\n" or c != d else " " for c, d in zip(text, code, strict=True))


@functools.cache
def includes(text):
    """Every #include of the text, those in comments left out."""
    text = without_comments(text)
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


_NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*(?:\[\[.*?\]\]\s*)?([\w:]*)$")
_TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
    r"(?:\[\[.*?\]\]\s*|alignas\s*\([^()]*\)\s*|[A-Z_]+\([^()]*\)\s+)*"
    r"((?:\w+::)*\w+)\s*(?:final\b\s*)?(?:$|:(?!:))", re.DOTALL)


def _without_angles(text):
    """The text without template arguments and attributes."""
    text = re.sub(r"\[\[.*?\]\]", " ", text, flags=re.DOTALL)
    before = None
    while before != text:
        before, text = text, re.sub(r"(?<!operator)<[^<>()]*>", "", text)
    return text


def _function_name(header):
    words = _without_angles(header).split("(", 1)[0].split()
    operator = next((w for w in words if re.search(r"\boperator", w)), None)
    return operator or (words[-1] if words else "")


@functools.cache
def declared(text):
    """Types and functions that the text defines in a namespace, members outside of their class
    included."""
    code = _DIRECTIVE.sub(lambda m: _spaces(m.group()), code_only(text))
    found, scopes, start = [], [], 0  # scopes: the namespace's name, or None for anything else
    for match in re.finditer(r"[{};]", code):
        token, at = match.group(), match.start()
        if token == "{":
            header = code[start:at].strip()
            scopes.append(_enter(header, scopes, code.count("\n", 0, at) + 1, found))
        elif token == "}" and scopes:
            scopes.pop()
        start = match.end()
    return tuple(found)


def _enter(header, scopes, line, found):
    """The name of the namespace that the header opens, else None; notes what it defines."""
    namespace = _NAMESPACE.search(header)
    if namespace:
        return namespace.group(1) or "-"
    if header.startswith("extern"):
        return ""
    if None in scopes:
        return None
    where = "::".join(name for name in scopes if name)
    kind = _TYPE.search(_without_angles(re.sub(r"^template\s*<", "<", header)))
    if kind and "(" not in header[:kind.start()]:
        found.append(Declared(where, kind.group(1), line, True))
    elif _opens_function(header) and not header.startswith(","):  # else a member's initialiser
        found.append(Declared(where, _function_name(header), line, False))
    return None
