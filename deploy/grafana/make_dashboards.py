#!/usr/bin/env python3
"""Writes dashboards/*.json: python3 deploy/grafana/make_dashboards.py [--check].

declaration.py says what the dashboards show; the JSON is what this makes of it, and a test compares
the two (--check does the same: exit status 1 when they differ). Standard library only.
"""

import json
import pathlib
import sys

from declaration import DASHBOARDS, GREEN

HERE = pathlib.Path(__file__).resolve().parent / "dashboards"
SOURCE = {"type": "prometheus", "uid": "tetrion-prometheus"}  # of provisioning/datasources
COLUMNS = 24


def field_config(spec):
    thresholds = spec.get("thresholds", ((None, GREEN),))
    steps = [{"color": colour, "value": value} for value, colour in thresholds]
    defaults = {"unit": spec["unit"], "thresholds": {"mode": "absolute", "steps": steps}}
    if spec["kind"] == "stat":
        defaults["color"] = {"mode": "thresholds"}
    else:
        defaults["color"] = {"mode": "palette-classic"}
        stacked = spec.get("stack", False)
        defaults["custom"] = {
            "lineWidth": 2, "showPoints": "never", "spanNulls": False,
            "fillOpacity": 40 if stacked else 8,
            "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "line" if "thresholds" in spec else "off"}}
    for name, key in (("low", "min"), ("high", "max")):
        if name in spec:
            defaults[key] = spec[name]
    return {"defaults": defaults, "overrides": []}


def options(spec):
    if spec["kind"] == "stat":
        return {"graphMode": "area", "colorMode": "value", "textMode": "value",
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    return {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"}}


def panel_json(spec, number, x, y):
    targets = [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expression,
                "legendFormat": legend} for i, (expression, legend) in enumerate(spec["queries"])]
    return {"id": number, "type": spec["kind"], "title": spec["title"],
            "description": spec["help"], "datasource": SOURCE, "targets": targets,
            "gridPos": {"x": x, "y": y, "w": spec["width"], "h": spec["height"]},
            "fieldConfig": field_config(spec), "options": options(spec)}


def panels_json(rows):
    made, y = [], 0
    for title, specs in rows:
        made.append({"id": len(made) + 1, "type": "row", "title": title, "collapsed": False,
                     "panels": [], "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})
        y, x, height = y + 1, 0, 0
        for spec in specs:
            if x + spec["width"] > COLUMNS:
                x, y, height = 0, y + height, 0
            made.append(panel_json(spec, len(made) + 1, x, y))
            x, height = x + spec["width"], max(height, spec["height"])
        y += height
    return made


def dashboard_json(name, title, rows):
    run = {"name": "run", "label": "Run", "type": "query", "datasource": SOURCE, "refresh": 2,
           "query": {"query": "label_values(tetrion_coordinator_actors, run)", "refId": "run"},
           "includeAll": True, "allValue": ".*", "multi": False, "sort": 1,
           "current": {"text": "All", "value": "$__all", "selected": True}}
    links = [{"title": "Tetrion", "type": "dashboards", "tags": ["tetrion"], "keepTime": True,
              "includeVars": True, "asDropdown": False, "icon": "external link"}]
    return {"uid": f"tetrion-{name}", "title": title, "tags": ["tetrion"], "schemaVersion": 38,
            "version": 1, "editable": True, "graphTooltip": 1, "refresh": "5s", "links": links,
            "time": {"from": "now-15m", "to": "now"}, "timezone": "browser",
            "annotations": {"list": []}, "templating": {"list": [run]}, "panels": panels_json(rows)}


def texts():
    """{path: text} of all dashboards."""
    return {HERE / f"{name}.json": json.dumps(dashboard_json(name, title, rows), indent=1) + "\n"
            for name, (title, rows) in DASHBOARDS.items()}


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    stale = [path for path, text in texts().items()
             if not path.exists() or path.read_text(encoding="utf-8") != text]
    if sys.argv[1:]:
        for path in stale:
            print(f"{path.name} is not what the declaration makes: run {__file__}")
        sys.exit(1 if stale else 0)
    HERE.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(texts()[path], encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
