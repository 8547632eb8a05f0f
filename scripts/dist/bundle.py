#!/usr/bin/python3
"""Gives the container of a runtime bundle what the Helm chart gives it: the processes of the host, its capabilities,
and its mounts.

Usage: bundle.py CONFIG STATE VALUES COMMAND...
"""

import json
import re
import sys
from pathlib import Path

# Numbers of capabilities in linux/capability.h.
NUMBERS = {
    "DAC_READ_SEARCH": 2, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_RESOURCE": 24, "PERFMON": 38, "BPF": 39,
}


def main():
    config_path, state, values, command = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4:]
    listed = re.search(r"^capabilities: \[(.*)\]$", values.read_text(encoding="utf-8"), re.M)[1]
    # A virtual machine or container may lack some of them.
    bounding = int(re.search(r"^CapBnd:\s*(\w+)$", Path("/proc/self/status").read_text(), re.M)[1], 16)
    names = [name.strip() for name in listed.split(",")]
    capabilities = ["CAP_" + name for name in names if bounding >> NUMBERS[name] & 1]
    config = json.loads(config_path.read_text(encoding="utf-8"))
    process = config["process"]
    process["terminal"] = False
    process["args"] = command
    process["user"] = {"uid": 0, "gid": 0}
    process["noNewPrivileges"] = True
    process["capabilities"] = {kind: capabilities for kind in ("bounding", "effective", "permitted")}
    process.pop("rlimits", None)
    config["root"]["readonly"] = True
    linux = config["linux"]
    linux["namespaces"] = [{"type": kind} for kind in ("ipc", "uts", "mount")]
    for key in ("seccomp", "maskedPaths", "readonlyPaths", "resources", "uidMappings", "gidMappings"):
        linux.pop(key, None)
    wanted = ("/proc", "/dev")
    config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] in wanted]
    config["mounts"] += [
        {"destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "ro", "rslave"]},
        {"destination": "/var/lib/fathom", "type": "bind", "source": state, "options": ["rbind", "rw"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]},
    ]
    config_path.write_text(json.dumps(config), encoding="utf-8")


main()
