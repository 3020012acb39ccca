"""The dashboards and alerts in deploy/: made from their declaration, of metrics that exist, valid.

Needs promtool (Debian's package prometheus) for the alerts' own tests; they are skipped without it.
Debian's Python and its standard library only.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import dashboards as pictures  # noqa: E402

PROMETHEUS, GRAFANA = ROOT / "deploy" / "prometheus", ROOT / "deploy" / "grafana"
RUN_BOOK = ROOT / "docs" / "OPERATIONS.md"
ALERTS = (PROMETHEUS / "alerts.yml").read_text(encoding="utf-8")
SEVERITIES = {"critical", "warning", "info"}
# Series that Prometheus makes itself, and the labels that its configurations give each target.
OWN = {"up": set(), "ALERTS": {"alertname", "alertstate"}}
TARGET_LABELS = {"job", "instance", "service", "run"}


def catalog():
    """{series name: labels} of docs/metrics.md; a histogram is served as three kinds of series."""
    series = dict(OWN)
    table = re.findall(r"^\| `(tetrion_\w+)` \| (\w+) \| [^|]* \| ([^|]*) \|",
                       (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8"), re.MULTILINE)
    for name, kind, labels in table:
        own = set(re.findall(r"\w+", labels))
        if kind != "histogram":
            series[name] = own
            continue
        series |= {f"{name}_bucket": own | {"le"}, f"{name}_sum": own, f"{name}_count": own}
    return series


SERIES = catalog()


def faults_of(expression):
    """What a query names that no service serves: metrics, and labels that its metrics lack."""
    faults, labels = [], set(TARGET_LABELS)
    for name, selector in re.findall(r"\b(tetrion_\w+|up|ALERTS)\b(\{[^}]*\})?", expression):
        if name not in SERIES:
            faults.append(f"no metric {name}")
            continue
        labels |= SERIES[name]
        for label in re.findall(r"(\w+)\s*[=!]~?", selector):
            if label not in SERIES[name] | TARGET_LABELS:
                faults.append(f"{name} has no label {label}")
    for names in re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", expression):
        faults += [f"no metric here has the label {label}"
                   for label in re.findall(r"\w+", names) if label not in labels]
    return faults


def dashboards():
    return {path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted((GRAFANA / "dashboards").glob("*.json"))}


def panels(board):
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries():
    """(dashboard, panel's title, target) of every query."""
    return [(name, panel["title"], target) for name, board in dashboards().items()
            for panel in panels(board) for target in panel["targets"]]


def alerts():
    """{alert: text of its rule}."""
    parts = re.split(r"^ +- alert: (\w+)\n", ALERTS, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def promtool(*arguments, folder=PROMETHEUS):
    return subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True,
                          check=False, timeout=300)


class Faults(unittest.TestCase):
    """The check itself."""

    def test_a_renamed_metric_and_a_label_that_its_metric_lacks_are_found(self):
        self.assertEqual(faults_of('sum by (reason) (rate(tetrion_actor_wait_seconds_total'
                                   '{run=~"$run",reason="token"}[1m]))'), [])
        self.assertEqual(faults_of("tetrion_actor_steps_total"),
                         ["no metric tetrion_actor_steps_total"])
        self.assertEqual(faults_of("tetrion_actor_inference_seconds"),
                         ["no metric tetrion_actor_inference_seconds"])
        self.assertEqual(faults_of('up{shard="0"}'), ["up has no label shard"])
        self.assertEqual(faults_of("sum by (part) (tetrion_coordinator_actors)"),
                         ["no metric here has the label part"])


class Dashboards(unittest.TestCase):

    def test_the_committed_files_are_what_the_declaration_makes(self):
        done = subprocess.run([sys.executable, "-B", GRAFANA / "make_dashboards.py", "--check"],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(list(dashboards()), ["cluster", "replay", "throughput", "training"])

    def test_every_query_is_of_metrics_and_labels_that_services_serve(self):
        self.assertGreater(len(queries()), 50)
        for name, title, target in queries():
            with self.subTest(dashboard=name, panel=title):
                self.assertEqual(faults_of(target["expr"]), [])
                legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                used = re.findall(r"tetrion_\w+|up|ALERTS", target["expr"])
                known = TARGET_LABELS.union(*(SERIES[metric] for metric in used
                                              if metric in SERIES))
                self.assertLessEqual(legend, known)

    def test_panels_fill_the_grid_without_overlap_and_each_has_a_place_a_unit_and_a_query(self):
        for name, board in dashboards().items():
            taken = set()
            for panel in board["panels"]:
                at = panel["gridPos"]
                cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"])
                         for j in range(at["h"])}
                self.assertFalse(taken & cells, f"{name}: {panel['title']} overlaps")
                self.assertLessEqual(at["x"] + at["w"], 24)
                taken |= cells
            for panel in panels(board):
                self.assertTrue(panel["targets"] and panel["fieldConfig"]["defaults"]["unit"])

    def test_ids_are_unique_and_all_read_the_provisioned_data_source(self):
        source = (GRAFANA / "provisioning/datasources/prometheus.yml").read_text(encoding="utf-8")
        uid = re.search(r"uid: (\S+)", source).group(1)
        boards = dashboards()
        self.assertEqual(len({board["uid"] for board in boards.values()}), len(boards))
        for board in boards.values():
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(set(ids)), len(ids))
            for panel in panels(board):
                for part in (panel, *panel["targets"]):
                    self.assertEqual(part["datasource"], {"type": "prometheus", "uid": uid})

    @unittest.skipUnless(shutil.which("promtool"), "no promtool: apt-get install prometheus")
    def test_every_query_is_valid(self):
        lines = ["groups:", "- name: queries", "  rules:"]
        for i, (_, _, target) in enumerate(queries()):
            expression = target["expr"].replace("$__rate_interval", "1m").replace("$run", ".*")
            lines += [f"  - record: query:{i}", f"    expr: {json.dumps(expression)}"]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "queries.yml").write_text("\n".join(lines), encoding="utf-8")
            done = promtool("check", "rules", "queries.yml", folder=folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Pictures(unittest.TestCase):
    """tools/dashboards.py, as far as it needs neither matplotlib nor Prometheus."""

    def test_figures_are_written_in_the_units_that_the_dashboards_use(self):
        for value, unit, text in ((0.5, "percentunit", "50 %"), (25_000, "short", "25k"),
                                  (3_200_000, "decbytes", "3.2MB"), (0.0042, "s", "4.2 ms"),
                                  (90, "s", "90 s"), (0, "s", "0 s"), (float("nan"), "s", "-")):
            self.assertEqual(pictures.in_unit(value, unit), text)
        units = {panel["fieldConfig"]["defaults"]["unit"] for board in dashboards().values()
                 for panel in panels(board)}
        self.assertEqual(units, {"percentunit", "short", "decbytes", "s"})

    def test_a_number_has_the_colour_of_the_last_threshold_that_it_reaches(self):
        steps = [{"color": "red", "value": None}, {"color": "green", "value": 1}]
        self.assertEqual(pictures.threshold_colour(steps, 0.9), pictures.RED)
        self.assertEqual(pictures.threshold_colour(steps, 1), pictures.GREEN)

    def test_without_prometheus_it_says_how_to_start_one(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/dashboards.py",
                               "http://127.0.0.1:1"], capture_output=True, text=True, check=False,
                              timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "no Prometheus answers at http://127.0.0.1:1|matplotlib")

    def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/dashboards.py",
                               "http://127.0.0.1:1", "--out", "/proc/none"], capture_output=True,
                              text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "dashboards: --out /proc/none cannot be written: "
                                      "No such file or directory\n")


class Alerts(unittest.TestCase):

    def test_every_metric_and_label_in_them_is_served(self):
        for alert, text in alerts().items():
            with self.subTest(alert=alert):
                expression = re.search(r"expr: (?:>-\n)?(.*?)\n +(?:for|labels):", text,
                                       re.DOTALL).group(1)
                self.assertEqual(faults_of(" ".join(expression.split())), [])

    def test_each_says_what_to_do_how_grave_it_is_and_where_to_read_on(self):
        self.assertGreater(len(alerts()), 7)
        for alert, text in alerts().items():
            with self.subTest(alert=alert):
                self.assertIn(re.search(r"severity: (\w+)", text).group(1), SEVERITIES)
                self.assertRegex(text, r"summary: \S")
                self.assertRegex(text, r"description: >-\n +\S")
                self.assertIn(f"runbook: docs/OPERATIONS.md#{alert.lower()}\n", text)

    def test_the_run_book_has_a_section_for_each_and_for_no_other(self):
        headings = re.findall(r"^#+ (\w+)$", RUN_BOOK.read_text(encoding="utf-8"), re.MULTILINE)
        self.assertLessEqual(set(alerts()), set(headings))
        camel = {heading for heading in headings if re.search(r"[a-z][A-Z]", heading)}
        self.assertLessEqual(camel, set(alerts()), "sections of alerts that are gone")

    def test_reasons_of_refusals_that_the_run_book_names_are_those_of_the_metric(self):
        source = (ROOT / "services/coordinator/control_metrics.cc").read_text(encoding="utf-8")
        table = re.search(r"kRefusals = \{(.*?)\};", source, re.DOTALL).group(1)
        reasons = set(re.findall(r'"(\w+)"', table))
        self.assertGreater(len(reasons), 5)
        text = RUN_BOOK.read_text(encoding="utf-8")
        sentences = re.findall(r"\bby reason\b(.*?)\.\s", text, re.DOTALL)
        named = {name for sentence in sentences for name in re.findall(r"`([^`-][^`]*)`", sentence)}
        self.assertTrue(named)
        self.assertLessEqual(named, reasons)

    def test_each_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(self):
        text = (PROMETHEUS / "alerts_test.yml").read_text(encoding="utf-8")
        cases = {}
        for name, body in re.findall(r"^  - name: (\w+)\n(.*?)(?=^  - name|\Z)", text,
                                     re.MULTILINE | re.DOTALL):
            cases[name] = cases.get(name, "") + body
        self.assertEqual(set(cases), set(alerts()))
        for alert, body in cases.items():
            self.assertIn("exp_samples: [{value: 1}]", body, alert)
            self.assertIn("exp_samples: []", body, alert)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool: apt-get install prometheus")
    def test_promtool_accepts_the_configurations_and_the_alerts_pass_their_tests(self):
        for arguments in (("check", "config", "prometheus.yml"), ("check", "config", "local.yml"),
                          ("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
            done = promtool(*arguments)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
