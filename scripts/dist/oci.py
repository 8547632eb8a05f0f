#!/usr/bin/python3
"""Writes a container image as an OCI layout in one tar file, with the same bytes for the same files.

Usage: oci.py ROOT VERSION MACHINE TIME OUTPUT

ROOT is the directory that becomes the image's only layer. Owners are root, times are TIME.
"""

import gzip
import hashlib
import io
import json
import os
import stat
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def entry(name, mode, time, kind=tarfile.REGTYPE, size=0):
    info = tarfile.TarInfo(name)
    info.mode, info.mtime, info.type, info.size = mode, time, kind, size
    info.uname = info.gname = ""
    return info


def layer(root, time):
    """All files of a directory, in order of their names."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            name, status = str(path.relative_to(root)), path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            if path.is_symlink():
                info = entry(name, 0o777, time, tarfile.SYMTYPE)
                info.linkname = os.readlink(path)
                tar.addfile(info)
            elif path.is_dir():
                tar.addfile(entry(name, mode, time, tarfile.DIRTYPE))
            else:
                with path.open("rb") as file:
                    tar.addfile(entry(name, mode, time, size=status.st_size), file)
    return out.getvalue()


def main():
    root, version, machine, time, output = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
    blobs = {}

    def blob(kind, content):
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(content)}

    def as_json(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    plain = layer(root, time)
    compressed = gzip.compress(plain, compresslevel=6, mtime=0)
    created = datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "fathom",
        "org.opencontainers.image.description": "records the storage I/O of the host",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
    }
    config = blob("config.v1+json", as_json({
        "architecture": ARCHITECTURES[machine],
        "os": "linux",
        "created": created,
        "config": {
            "Entrypoint": ["/usr/bin/fathom"],
            "Cmd": ["agent"],
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/var/lib/fathom",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created": created, "created_by": "fathom: ./do dist"}],
    }))
    manifest = blob("manifest.v1+json", as_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [blob("layer.v1.tar+gzip", compressed)],
        "annotations": labels,
    }))
    index = as_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest | {
            "platform": {"architecture": ARCHITECTURES[machine], "os": "linux"},
            "annotations": {"org.opencontainers.image.ref.name": version},
        }],
    })
    files = {"oci-layout": as_json({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    files |= {"blobs/sha256/" + digest.split(":")[1]: content for digest, content in blobs.items()}
    with tarfile.open(output, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ("blobs", "blobs/sha256"):
            tar.addfile(entry(name, 0o755, time, tarfile.DIRTYPE))
        for name, content in sorted(files.items()):
            tar.addfile(entry(name, 0o644, time, size=len(content)), io.BytesIO(content))


main()
