"""Nothing in the sources unpickles, evaluates text, builds YAML objects, or trusts code of
others.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "benchmarks").glob("*.py"))
MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "torch.load",
    "np.load",
    "numpy.load",
}
CALLS |= {
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "tarfile.extractall",
    "tar.extractall",
    "tar.extract",
}
CODE = {"shell", "trust_remote_code", "allow_pickle"}  # keywords that may only be False


def found(source: str) -> list[str]:
    """What is forbidden in a source."""
    bad = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            bad += [name.name for name in node.names if name.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            bad.append(node.module)
        elif isinstance(node, ast.Call):
            bad += [name] if (name := ast.unparse(node.func)) in CALLS else []
            keywords = [key for key in node.keywords if key.arg in CODE]
            bad += [
                key.arg
                for key in keywords
                if not (isinstance(key.value, ast.Constant) and key.value.value is False)
            ]
    return bad


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_runs_what_it_reads(path):
    assert not found(path.read_text())


@pytest.mark.parametrize(
    "source",
    [
        *(
            "import pickle",
            "from joblib import load",
            "eval(x)",
            "torch.load(path)",
            "yaml.load(text, yaml.Loader)",
            "np.load(p)",
        ),
        *(
            "run(x, shell=True)",
            "f(trust_remote_code=flag)",
            "np.lib.f(allow_pickle=True)",
            "os.system(x)",
        ),
    ],
)
def test_the_search_finds(source):
    assert found(source) and not found(
        "model.eval(); yaml.safe_load(text); f(trust_remote_code=False)"
    )


def test_models_of_others_are_read_as_safetensors_alone():
    """Wherever weights come from transformers."""
    calls = 0
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".from_pretrained"):
                calls += 1
                name = ast.unparse(node.func)
                text = ast.unparse(node)
                if "Config" not in name and "Tokenizer" not in name:
                    # A GGUF holds numbers alone, and is pinned by its digest.
                    safe = "use_safetensors=True" in text or "gguf_file=" in text
                    assert safe, f"{path}: {text}"
    assert calls >= 3, "The search finds them where they are."
