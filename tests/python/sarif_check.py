"""Checks a SARIF log against the schema of OASIS (sarif-2.1.0.json, draft 07) and prints
the paths of its results, decoded, as a JSON list. Usage: sarif_check.py LOG
"""

import json
import pathlib
import sys
import urllib.parse

import fastjsonschema

SCHEMA = pathlib.Path(__file__).with_name("sarif-2.1.0.json")


def main():
    log = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")))(log)
    paths = []
    for run in log["runs"]:
        rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
        for result in run["results"]:
            assert result["ruleId"] in rules, result["ruleId"]
            for location in result.get("locations", []):
                uri = urllib.parse.urlparse(location["physicalLocation"]["artifactLocation"]["uri"])
                assert uri.scheme == "file", uri
                paths.append(urllib.parse.unquote(uri.path))
    json.dump(paths, sys.stdout)


main()
