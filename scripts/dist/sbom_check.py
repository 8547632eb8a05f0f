"""Checks a bill of materials against the schema of CycloneDX. Usage: sbom_check.py FILE..."""

import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

for name in sys.argv[1:]:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(pathlib.Path(name).read_text(encoding="utf-8"))
    if error:
        sys.exit(f"{name}: {error}")
