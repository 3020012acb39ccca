"""Rules about comments and documents: what they name exists, folders explain themselves, no comment
was torn by a formatter. Each takes {path: text} and returns findings, as in rules.py."""

import collections
import posixpath
import re

import source

CPP = (".h", ".cc", ".cu", ".cuh")
SCRIPT = (".py", ".sh", ".cmake", ".txt", ".yml", ".toml")
HERE = "tests/tidy/prose_rules.py"

# A comment line of at most SHORT characters after one of at least LONG columns, amid a paragraph.
LONG = 85
SHORT = 22

# Files that name files which are not there: prefix -> reason.
NAMES_ANYTHING = {
    "CHANGELOG.md": "history",
    "tests/tidy/": "made-up names of examples",
}
# Names as written -> reason.
NOT_IN_THE_TREE = {
    "control_generated.h": "flatc writes it",
    "a.cc": "the example of a CMake function",
}

# The head of the first column of a README's table of what its folder holds.
TABLE_HEADS = ("file", "unit")
# A folder of lib, services or tools with more than this many files has a README with every unit.
FILES_WITHOUT_README = 6
# Folder -> reason.
WITHOUT_README = {}


def orphan_comments(tree):
    """No scrap of a line in a comment's paragraph: what a formatter leaves when it wraps."""
    found = []
    for path, text in sorted(tree.items()):
        if not path.endswith(CPP + SCRIPT + (".fbs",)):
            continue
        lines = text.splitlines()
        comments = [re.match(r"(\s*(?://|#) )(\S.*)$", line) for line in lines]
        for i in range(1, len(lines) - 1):
            before, this, after = comments[i - 1:i + 2]
            if (before and this and after and before.group(1) == this.group(1) == after.group(1)
                    and len(lines[i - 1]) >= LONG and len(this.group(2)) <= SHORT
                    and not re.match(r"(-|\d+\.|[A-Z]\w*:) ", after.group(2))):
                found.append(f"{path}:{i + 1}: '{this.group(2)}' stands alone; wrap the paragraph")
    return found


_FILE = re.compile(r"(?<![\w./<{*$-])((?:[\w.-]+/)*[\w-]+\.(?:h|cc|cu|py|md|fbs))"
                   r"(?![\w(*-]|\.\w|/)")


def _prose(path, text):
    """Comments and documents, every line at its place; None for other files."""
    if path.endswith(".md"):
        return text
    if path.endswith(CPP):
        return source.comments_only(text)
    if path.endswith(".fbs"):
        return "\n".join(line.partition("//")[2] for line in text.splitlines())
    if path.endswith(SCRIPT):
        return "\n".join(line.partition("#")[2] for line in text.splitlines())
    return None


def named_files(tree):
    """Files that comments and documents name are there, under that path or the end of it."""
    ends = collections.defaultdict(list)
    for path in tree:
        ends[posixpath.basename(path)].append("/" + path)
    found, excused = [], set()
    for path, text in sorted(tree.items()):
        prose = None if path.startswith(tuple(NAMES_ANYTHING)) else _prose(path, text)
        for match in _FILE.finditer(prose or ""):
            name = match.group(1)
            tail = "/" + re.sub(r"^(\.\.?/)+", "", name)
            places = ends[posixpath.basename(name)]
            if any(p.endswith(tail) for p in places):
                continue
            if name in NOT_IN_THE_TREE:
                excused.add(name)
                continue
            found.append(f"{path}:{prose.count(chr(10), 0, match.start()) + 1}: names {name}, "
                         "which is not there")
    return found + [f"{HERE}:1: NOT_IN_THE_TREE excuses {name}, which needs no excuse"
                    for name in NOT_IN_THE_TREE if HERE in tree and name not in excused]


def _named_units(readme):
    """(line, name) of every name in backticks in the first column of a README's tables."""
    head = None
    for number, line in enumerate(readme.splitlines(), 1):
        cell = line.split("|")[1].strip() if line.startswith("|") else None
        head = cell if head is None else cell and head
        if head in TABLE_HEADS:
            for name in re.findall(r"`([^`]+)`", cell):
                yield number, name


def _is_there(folder, name, tree):
    """Whether `unit`, `unit.h`, `unit.{h,cc}` or `folder/` of a README is below its folder."""
    below = [path[len(folder):] for path in tree if path.startswith(f"{folder}/")]
    if name.endswith("/"):
        return any(path.startswith(f"/{name}") for path in below)
    stem, _, ends = name.partition(".{")
    names = [f"/{stem}.{end}" for end in ends.rstrip("}").split(",")] if ends else [f"/{name}"]
    return all(any(path.endswith(one) or posixpath.splitext(path)[0].endswith(one)
                   for path in below) for one in names)


def folder_readmes(tree):
    """A folder of more than FILES_WITHOUT_README files has a README that names every unit, or that
    of the folder around it names them with this one's name (`views/planes`). A README's table names
    only what is there."""
    files = collections.defaultdict(list)
    for path in tree:
        folder, name = posixpath.split(path)
        if (f"{folder}/".startswith(("lib/", "services/", "tools/"))
                and name not in ("CMakeLists.txt", "README.md")):
            files[folder].append(name)
    found = []
    for folder, names in sorted(files.items()):
        readme, part = tree.get(f"{folder}/README.md"), posixpath.basename(folder)
        around = tree.get(f"{posixpath.dirname(folder)}/README.md", "")
        # Of a small folder it may name nothing but the folder itself.
        if readme is None and (f"`{part}/" in around.replace(f"`{part}/`", "")
                               or (f"`{part}/" in around and len(names) > FILES_WITHOUT_README)):
            readme = around.replace(f"`{part}/", "`")
        if readme is None and len(names) > FILES_WITHOUT_README and folder not in WITHOUT_README:
            found.append(f"{folder}:1: {len(names)} files and no README.md")
        if readme is not None and folder in WITHOUT_README:
            found.append(f"{folder}/README.md:1: is there; its line in {HERE} is stale")
        if readme is not None:
            units = {posixpath.splitext(name)[0] for name in names}
            found += [f"{folder}/README.md:1: does not name {unit}" for unit in sorted(units)
                      if not re.search(rf"`{re.escape(unit)}(?:\.[^`]*)?`", readme)]
        own = tree.get(f"{folder}/README.md", "")
        found += [f"{folder}/README.md:{line}: names {name}, which is not there"
                  for line, name in _named_units(own) if not _is_there(folder, name, tree)]
    return found + [f"{HERE}:1: WITHOUT_README excuses {folder}, which needs no excuse"
                    for folder in WITHOUT_README if (folder in files or HERE in tree)
                    and len(files.get(folder, ())) <= FILES_WITHOUT_README]


def named_tests(tree):
    """Tests that a README of tests names as `Suite.Test`, `Suite.Test` in FILE are in that file."""
    found = []
    for path, text in sorted(tree.items()):
        if not (path.startswith("tests/") and path.endswith("README.md")):
            continue
        for names, file in re.findall(r"((?:`\w+\.\w+`(?:, | in ))+)(tests/[\w/]+\.(?:cc|h))",
                                      text):
            there = set(re.findall(r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)",
                                   tree.get(file, "")))
            found += [f"{path}:1: {file} has no test {suite}.{test}"
                      for suite, test in re.findall(r"`(\w+)\.(\w+)`", names)
                      if (suite, test) not in there]
    return found


ENFORCED = (orphan_comments, named_files, folder_readmes, named_tests)
