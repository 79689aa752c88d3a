"""Writes the licences of all crates that are linked into the program for a target: their names,
and the texts that they carry, each text once.

    python3 packaging/licences.py TARGET
"""

import json
import re
import subprocess
import sys
from pathlib import Path


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], check=True, capture_output=True, text=True).stdout


sys.stdout.reconfigure(encoding="utf-8", newline="\n")
target = sys.argv[1]
tree = cargo(
    *("tree", "--locked", "--target", target, "--edges", "normal,no-proc-macro"),
    *("--prefix", "none", "--no-dedupe", "--format", "{p}"),
)
linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target))
packages = [
    package
    for package in metadata["packages"]
    if package["source"] and (package["name"], "v" + package["version"]) in linked
]
assert len(packages) > 50, "the tree of dependencies could not be read"

users = {}
for package in sorted(packages, key=lambda package: (package["name"], package["version"])):
    name = f"{package['name']} {package['version']}"
    print(f"{name}: {package['license'] or 'see its text below'}")
    for path in sorted(Path(package["manifest_path"]).parent.iterdir()):
        if path.is_file() and re.match(r"licen[cs]e|copying|notice|unlicense", path.name, re.IGNORECASE):
            text = path.read_text(errors="replace").strip()
            users.setdefault(text, []).append(name)
for text, names in users.items():
    print(f"\n\n{'=' * 78}\n{', '.join(names)}\n{'=' * 78}\n\n{text}")
