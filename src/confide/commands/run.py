"""`confide run [OPTION ...]`: build what params.yaml in this folder selects, and nothing twice.

It calls Snakemake with the workflow that is installed with confide. Every option is Snakemake's and
is passed on as it is; `snakemake --help` lists them. Ctrl-C stops, and the same command goes on.

  confide run                     all that params.yaml selects, on all cores
  confide run -n                  what that would be, and why; nothing is run
  confide run prepare --cores 2   only redaction and what it misses, on two cores
  confide run -d mine             in the folder mine, which has params.yaml
  confide run --profile slurm     on a cluster; slurm, kubernetes and gpu come with confide, as
                                  files that can be copied and changed: --profile FOLDER
"""

from confide.runtime import packaged


def run(*options: str) -> None:
    """Become Snakemake, whose exit status this is."""
    packaged.become(options)
