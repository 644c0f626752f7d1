"""Digests of what was made elsewhere: by content and names, wherever it lies."""

import hashlib
import os

from confide.files.io import sha256
from confide.provenance import artefacts
from confide.provenance.artefacts import corpus_state, digest_of


def test_a_file_a_folder_a_package_and_nothing(tmp_path):
    (tmp_path / "words.json").write_text("{}")
    assert digest_of(str(tmp_path / "words.json")) == sha256(tmp_path / "words.json")
    before = digest_of(str(tmp_path))
    (tmp_path / "words.json").rename(tmp_path / "names.json")
    assert len(before) == 64 and digest_of(str(tmp_path)) != before
    assert len(digest_of("orjson")) == 64
    assert digest_of(None) is digest_of("no/such") is digest_of("no such name at all!") is None


def test_a_model_of_the_hub_is_found_where_it_was_downloaded_to(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    model = tmp_path / "models--someone--small"
    snapshot = model / "snapshots/0123456789012345678901234567890123456789"
    (snapshot / "parts").mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs/main").write_text(snapshot.name)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "parts/weights").write_text("1")
    lines = [
        f"{name}\0{hashlib.sha256(text).hexdigest()}\n"
        for name, text in (("config.json", b"{}"), ("parts/weights", b"1"))
    ]
    assert digest_of("someone/small") == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert digest_of("someone/else") is None


def test_a_corpus_is_its_content_whatever_its_dates(tmp_path, monkeypatch):
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    (folder / "a.csv").write_text("text\none\n")
    (folder / "more/b.csv").write_text("text\ntwo\n")
    before = corpus_state(folder)
    os.utime(folder / "a.csv", (1000, 1000))
    assert corpus_state(folder) == before
    (folder / "a.csv").write_text("text\nsix\n")
    os.utime(folder / "a.csv", (1000, 1000))
    assert corpus_state(folder) != before
    monkeypatch.setattr(artefacts, "MUCH", 1)  # of more than that names, sizes and dates count
    dated = corpus_state(folder)
    os.utime(folder / "a.csv", (2000, 2000))
    assert corpus_state(folder) != dated
    assert corpus_state(tmp_path / "nowhere") is None
