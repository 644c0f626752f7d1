"""What is installed, package by package with version, licence and origin: a CycloneDX document in
JSON.

    python tools/sbom.py [FILE]     (`make sbom`)

CycloneDX's own program describes the environment of this Python; addresses of files on this machine
are taken out of it.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from confide.files import permissions

ROOT = Path(__file__).parents[1]
FORM = (
    "--no-validate",
    "--spec-version",
    "1.6",
    "--output-format",
    "JSON",
    "--output-reproducible",
    "--mc-type",
    "application",
)


def document() -> dict[str, Any]:
    """The document as it is to be shown."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sbom.json"
        command = (
            sys.executable,
            "-m",
            "cyclonedx_py",
            "environment",
            "--pyproject",
            str(ROOT / "pyproject.toml"),
            *FORM,
        )
        subprocess.run([*command, "--output-file", str(file), sys.executable], check=True)
        found = json.loads(file.read_text())
    for component in found["components"]:
        elsewhere = [
            one
            for one in component.get("externalReferences", ())
            if not one["url"].startswith("file:")
        ]
        component.pop("externalReferences", None)
        component |= {"externalReferences": elsewhere} if elsewhere else {}
    return found


def main() -> int:
    """Write the document, whole or not at all."""
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "results/sbom.json")
    permissions.private()
    found = document()
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    print(f"{file}: {len(found['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
