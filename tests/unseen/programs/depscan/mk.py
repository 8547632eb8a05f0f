"""Tiny make: finds out which objects are older than their sources and headers."""
import os, re

INCLUDE = re.compile(r'^#include "(.+)"$', re.M)

def deps(path, seen):
    for h in INCLUDE.findall(open(path).read()):
        h = os.path.join("src", h)
        if h not in seen:
            seen.add(h)
    return seen

def outdated(src):
    obj = src.replace("src/", "obj/").replace(".c", ".o")
    if not os.path.exists(obj):
        return True
    for h in deps(src, {src}):
        if os.path.getmtime(h) > os.path.getmtime(obj):
            return True
    return False

stale = 0
for name in sorted(os.listdir("src")):
    if name.endswith(".c") and outdated("src/" + name):
        stale += 1
print("to build:", stale)
