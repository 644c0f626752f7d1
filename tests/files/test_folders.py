"""Folders that cannot be read are refused, not passed over: what lies in them would be missing."""

import os

import pytest

from confide.corpora.mail import LAYOUTS
from confide.errors import InputError
from confide.files.folders import visible, walk
from confide.provenance.artefacts import files_below

MESSAGE = b"From: a@b.c\nSubject: x\n\nhello\n"


@pytest.fixture
def mail(tmp_path, monkeypatch):
    """Messages in two folders, of which one cannot be listed; root may list any, so it is told."""
    for name in ("open", "closed"):
        for part in ("cur", "new"):
            (tmp_path / name / part).mkdir(parents=True)
        (tmp_path / name / "cur" / "1").write_bytes(MESSAGE)
    listed = os.scandir

    def refusing(place):
        if "closed" in str(place):
            raise PermissionError(13, "Permission denied", str(place))
        return listed(place)

    monkeypatch.setattr(os, "scandir", refusing)
    return tmp_path


@pytest.mark.parametrize(
    ("below", "error"),
    [(walk, PermissionError), (visible, InputError), (files_below, PermissionError)],
)
def test_a_folder_that_cannot_be_listed_is_an_error(mail, below, error):
    assert list(below(mail / "open"))
    with pytest.raises(error):
        list(below(mail))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mail_in_a_folder_that_cannot_be_listed_is_one_line(mail, layout):
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        list(LAYOUTS[layout](mail))
