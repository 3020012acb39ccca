"""A Prometheus (Debian's) beside a run of ./tetrion up: started, asked, ended. Standard library."""

import json
import pathlib
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MISSING = shutil.which("prometheus") is None
MISSING_TEXT = "no prometheus: apt-get install prometheus"


def installed_config(run_folder, interval="1s", hold=None):
    """The configuration and alerts of deploy/, copied as docs/MONITORING.md says, but scraped each
    `interval` and, where `hold` is given, alerts that wait no longer than that."""
    folder = pathlib.Path(run_folder) / "prometheus"
    folder.mkdir(exist_ok=True)
    text = (ROOT / "deploy/prometheus/local.yml").read_text(encoding="utf-8")
    text = re.sub(r"_interval: 5s", f"_interval: {interval}", text)
    (folder / "local.yml").write_text(text, encoding="utf-8")
    text = (ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8")
    if hold:
        text = re.sub(r"(\n +for: )\w+", rf"\g<1>{hold}", text)
    (folder / "alerts.yml").write_text(text, encoding="utf-8")
    return folder


class Prometheus:
    """One process, below `folder` with everything it writes. close() ends it."""

    def __init__(self, folder, port, before=None):
        self.url = f"http://127.0.0.1:{port}"
        self.log = pathlib.Path(folder) / "prometheus.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/local.yml",
                 f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=before)

    def ask(self, path, **parameters):
        """`data` of an answer of its API; None while it does not answer."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is starting
                return None
            raise AssertionError(f"{url}: {error.read().decode()}") from None
        except OSError:
            return None

    def query(self, expression):
        """Samples of an instant query: [{"metric": labels, "value": [time, text]}]."""
        data = self.ask("query", query=expression)
        return [] if data is None else data["result"]

    def targets(self):
        """{service: health} of what it scrapes."""
        data = self.ask("targets", state="active") or {"activeTargets": []}
        return {target["labels"]["service"]: target["health"] for target in data["activeTargets"]}

    def alerts(self):
        """{alert: states} of those that are pending or firing."""
        found = {}
        for alert in (self.ask("alerts") or {"alerts": []})["alerts"]:
            found.setdefault(alert["labels"]["alertname"], set()).add(alert["state"])
        return found

    def said(self):
        return self.log.read_text(errors="replace")[-3000:]

    def close(self):
        """Also twice."""
        self.process.terminate()
        self.process.wait(20)
