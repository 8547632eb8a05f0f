"""Checks a description of an HTTP interface against OpenAPI 3.1. Usage: openapi_check.py FILE"""

import json
import pathlib
import sys

from openapi_spec_validator import OpenAPIV31SpecValidator

OpenAPIV31SpecValidator(json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))).validate()
