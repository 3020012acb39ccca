"""Spelling of comments, documents and everything else that is text, by codespell.

codespell comes with .deps/py (./tetrion test); without it this is skipped (exit status 77).
spelling_ignore.txt holds words that are right all the same: NowNs, kInf, FileTest, names; caf, cut
off before an escaped letter; wokers and lifes, which tests mistype on purpose.
"""

import pathlib
import subprocess
import sys

import check

HERE = pathlib.Path(__file__).resolve().parent
CODESPELL = check.ROOT / ".deps" / "py" / "bin" / "codespell"
SKIPPED = 77
# Pictures in base64, measured numbers, hunks that begin amid words.
UNREAD = (".ipynb", ".json", ".patch")


def main():
    if not CODESPELL.is_file():
        print(f"skipped: no {CODESPELL.relative_to(check.ROOT)}; ./tetrion test installs it")
        return SKIPPED
    paths = [path for path, text in sorted(check.read_tree().items())
             if text and not path.endswith(UNREAD)]
    done = subprocess.run([str(CODESPELL), "--check-hidden", "--ignore-words",
                           str(HERE / "spelling_ignore.txt"), *paths], cwd=check.ROOT, check=False)
    print(f"codespell read {len(paths)} files")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
