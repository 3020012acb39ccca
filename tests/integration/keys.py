"""Keys of a test's processes, made by tetrion-keygen, and the options that hand them out."""

import os
import pathlib


class Keys:
    """A folder of pairs, and one of the public keys that coordinator and learner let in."""

    def __init__(self, case, folder, names=("coordinator", "learner", "actor", "stranger"),
                 allowed=("learner", "actor")):
        self.folder, self.allowed = pathlib.Path(folder) / "keys", pathlib.Path(folder) / "allowed"
        code, said = case.call("tetrion-keygen", self.folder, *names)
        assert code == 0, said
        self.allowed.mkdir()
        for name in allowed:
            self.allow(name)

    def secret(self, name):
        return self.folder / f"{name}.secret"

    def public(self, name):
        return self.folder / f"{name}.pub"

    def texts(self):
        """The secrets themselves."""
        return [path.read_text().splitlines()[1] for path in self.folder.glob("*.secret")]

    def allow(self, name, folder=None):
        """Whole from its first instant."""
        folder = folder or self.allowed
        part = folder / f".{name}"
        part.write_bytes(self.public(name).read_bytes())
        os.replace(part, folder / f"{name}.pub")

    def forbid(self, name):
        (self.allowed / f"{name}.pub").unlink()

    # Options, as the harness takes them.

    def server(self):
        return {"curve_key": self.secret("coordinator"), "curve_allow": self.allowed}

    def client(self, name, server="coordinator"):
        return {"curve_key": self.secret(name), "curve_server": self.public(server)}
