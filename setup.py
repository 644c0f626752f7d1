"""What pyproject.toml cannot say: the wheel carries the workflow, which lies beside src/.

Snakefile and all that belongs to it go into the package as confide/_workflow, laid out as here. An
editable installation has none: there the package finds them where they are.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
CARRIED = (
    "Snakefile",
    "params.yaml",
    "dvc.yaml",
    "workflow/rules/*.smk",
    "workflow/report/*",
    "workflow/schemas/*.yaml",
    "profiles/*/*.yaml",
    "studies/*.yaml",
)
TARGET = "confide/_workflow"


class BuildWithWorkflow(build_py):
    """Copies the package, and the workflow into it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for source, target in self.carried().items():
            self.mkpath(str(target.parent))
            self.copy_file(str(source), str(target), preserve_mode=False)

    def carried(self) -> dict[Path, Path]:
        """Files of the workflow, as seen from here, and where each goes.

        A pattern that finds no file is an error: the wheel would lack something.
        """
        found: dict[Path, Path] = {}
        for pattern in CARRIED:
            files = sorted(ROOT.glob(pattern))
            if not files:
                raise FileNotFoundError(f"{pattern}: the wheel needs it, and it is not here")
            for file in files:
                name = file.relative_to(ROOT)
                found[name] = Path(self.build_lib, TARGET, name)
        return found

    def get_source_files(self) -> list[str]:
        """What an archive of the sources must hold, too."""
        return [*super().get_source_files(), *map(str, self.carried())]


setup(cmdclass={"build_py": BuildWithWorkflow})
