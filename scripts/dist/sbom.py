#!/usr/bin/python3
"""Prints the bill of materials of a program as CycloneDX 1.6: the crates that are linked into it, the packages of
the page, libbpf, and DuckDB's library.

Usage: sbom.py full|record TIME TARGET [NAME=VERSION=SHA256 of a library]...

The crates are those that cargo resolves for the program with its features, without what only builds or tests need.
"""

import hashlib
import json
import re
import subprocess
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(kind, target):
    """Names and versions of the crates in the program, and what each depends on."""
    command = ["cargo", "tree", "--locked", "-p", "fathom-cli", "-e", "normal,no-proc-macro", "--target", target]
    command += ["--prefix", "depth", "--format", "\t{p}"] + (["--no-default-features"] if kind == "record" else [])
    crates, edges, above = set(), {}, []
    # Repeated crates are printed without what is below them.
    for line in output(*command).splitlines():
        match = re.match(r"(\d+)\t(\S+) v(\S+)", line)
        depth, crate = int(match[1]), (match[2], match[3])
        above[depth:] = [crate]
        crates.add(crate)
        edges.setdefault(crate, set())
        if depth:
            edges[above[depth - 1]].add(crate)
    return crates, edges


def licences(text):
    return [{"expression": " OR ".join(part.strip() for part in text.split("/"))}] if text else []


def crate_components(crates, packages):
    for crate in sorted(crates):
        package = packages[crate]
        name, version = crate
        purl = f"pkg:cargo/{name}@{version}"
        component = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "description": (package["description"] or "").strip(),
            "licenses": licences(package["license"]),
            "purl": purl,
        }
        if package["source"]:
            component["hashes"] = [{"alg": "SHA-256", "content": package["checksum"]}]
        yield {key: value for key, value in component.items() if value}


def page_components():
    lock = json.loads((ROOT / "web/package-lock.json").read_text(encoding="utf-8"))
    for path, package in sorted(lock["packages"].items()):
        # Types exist for the compiler only.
        if not path or package.get("dev") or "@types/" in path or path.endswith("undici-types"):
            continue
        name = path.rsplit("node_modules/", 1)[1]
        purl = f"pkg:npm/{name}@{package['version']}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": package["version"],
            "licenses": licences(package.get("license")),
            "purl": purl,
        }


def checksums():
    text = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    found = re.findall(r'name = "(.*)"\nversion = "(.*)"\n(?:source = ".*"\n)?(?:checksum = "(.*)")?', text)
    return {(name, version): checksum for name, version, checksum in found}


def main():
    kind, time, target, libraries = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked"))
    sums = checksums()
    packages = {(p["name"], p["version"]): p | {"checksum": sums[p["name"], p["version"]]} for p in metadata["packages"]}
    crates, edges = linked(kind, target)
    root = next(crate for crate in crates if crate[0] == "fathom-cli")
    components = list(crate_components(crates - {root}, packages))
    extra = list(page_components()) if kind == "full" else []
    bundled = next(version for name, version in crates if name == "libbpf-sys").split("+v")[1]
    extra.append({
        "type": "library", "bom-ref": f"libbpf@{bundled}", "name": "libbpf", "version": bundled,
        "licenses": licences("LGPL-2.1-only OR BSD-2-Clause"), "purl": f"pkg:github/libbpf/libbpf@v{bundled}",
    })
    for library in libraries:
        name, version, licence, checksum = library.split("=")
        extra.append({
            "type": "library", "bom-ref": f"{name}@{version}", "name": name, "version": version,
            "licenses": licences(licence), "hashes": [{"alg": "SHA-256", "content": checksum}],
        })
    own = {"type": "application", "bom-ref": "fathom", "name": "fathom", "version": root[1],
           "licenses": licences(packages[root]["license"]), "purl": f"pkg:generic/fathom@{root[1]}"}
    ref = lambda crate: "fathom" if crate == root else f"pkg:cargo/{crate[0]}@{crate[1]}"
    depends = {ref(crate): sorted(ref(other) for other in others) for crate, others in edges.items()}
    depends["fathom"] = sorted(depends["fathom"] + [component["bom-ref"] for component in extra])
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": own,
        },
        "components": sorted(components + extra, key=lambda component: component["bom-ref"]),
        "dependencies": [{"ref": ref, "dependsOn": others} for ref, others in sorted(depends.items())],
    }
    # Same contents, same number.
    digest = hashlib.sha256(json.dumps(bom, sort_keys=True).encode()).digest()
    bom["serialNumber"] = uuid.UUID(bytes=digest[:16], version=4).urn
    json.dump(bom, sys.stdout, indent=1, sort_keys=True)
    print()


main()
