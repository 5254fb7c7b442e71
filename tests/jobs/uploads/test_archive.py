"""What somebody sends is packed anew: what a machine unpacks are plain files below one folder, whatever the archive said."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from jobs.uploads import archive, refusing
from jobs.uploads.archive import repack
from jobs.uploads.refusing import UploadRefused
from tests.jobs.uploads.archives import special, tar_of, zip_of


def unpacked(file: io.BytesIO, name: str) -> dict[str, tuple[bytes, int]]:
    packed = repack(file, name, mtime=1_800_000_000)
    with packed.file, tarfile.open(fileobj=packed.file, mode="r:gz") as tar:
        members = tar.getmembers()
        assert all(member.isreg() or member.isdir() for member in members)
        assert len(members) == packed.file_count
        return {member.name: (content(tar, member), member.mode) for member in members}


def content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    data = tar.extractfile(member)
    return data.read() if data else b""


def refusal(file: io.BytesIO, name: str) -> str:
    with pytest.raises(UploadRefused) as caught:
        repack(file, name, mtime=0)
    return str(caught.value)


@pytest.mark.parametrize(("mode", "name"), [("w:gz", "a.tar.gz"), ("w", "a.tar"), ("w:gz", "A.TGZ")])
def test_a_tar_becomes_its_files(mode, name):
    made = tar_of({"train.py": b"print()", "./lib/run.sh": b"#!/bin/sh"}, mode=mode)
    assert unpacked(made, name) == {"train.py": (b"print()", 0o600), "lib/run.sh": (b"#!/bin/sh", 0o700)}


def test_a_zip_becomes_its_files():
    assert unpacked(zip_of({"lib/": b"", "lib/a.py": b"1"}), "a.zip") == {
        "lib": (b"", 0o700),
        "lib/a.py": (b"1", 0o600),
    }


def test_another_file_stays_one_also_where_it_is_an_archive_inside():
    assert unpacked(io.BytesIO(b"weights"), "model.bin") == {"model.bin": (b"weights", 0o600)}
    assert list(unpacked(zip_of({"../x": b""}), "app.jar")) == ["app.jar"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "a\nb", "a\x1b[2J", "..", "a\\..\\x", "x" * 401])
def test_names_that_lead_out_or_hide_something_are_refused(name):
    assert refusal(tar_of({"ok": b"", name: b"x"}), "a.tar.gz")
    if "\\" not in name:
        assert refusal(zip_of({"ok": b"", name: b"x"}), "a.zip")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_links_and_devices_are_refused(kind):
    assert "link" in refusal(tar_of({"ok": b"x", "evil": special("evil", kind, "/etc")}), "a.tar.gz")


def test_a_link_in_a_zip_is_refused():
    assert "link" in refusal(zip_of({"evil": b"/etc"}, mode=stat.S_IFLNK | 0o777), "a.zip")


def test_a_file_behind_a_link_or_in_place_of_a_folder_is_refused():
    assert refusal(tar_of({"a": b"", "a/b": b""}), "a.tar")
    assert refusal(tar_of({"a/b": b"", "a": b""}), "a.tar")
    assert refusal(zip_of({"a": b"", "./a": b""}), "a.zip")


@pytest.mark.parametrize("name", ["hosts", "hosts/x", "repository/x"])
def test_our_own_names_are_refused(name):
    assert "Rackrent" in refusal(tar_of({name: b""}), "a.tar.gz")


def test_bombs_are_refused_by_what_comes_out_of_them(monkeypatch):
    monkeypatch.setattr(refusing, "MOST_UNPACKED_BYTES", 4 * 1024 * 1024)
    zeros = b"\0" * (5 * 1024 * 1024)
    assert len(zip_of({"a": zeros}).getvalue()) < 20_000
    for made, name in ((zip_of({"a": zeros}), "a.zip"), (tar_of({"a": zeros}), "a.tgz"), (io.BytesIO(zeros), "a.bin")):
        assert "MiB" in refusal(made, name)


def test_a_zip_that_lies_about_its_sizes_is_refused():
    made = bytearray(zip_of({"a": b"x" * 100_000}).getvalue())
    entry = made.rindex(b"PK\x01\x02")
    made[entry + 24 : entry + 28] = (10).to_bytes(4, "little")
    assert "cannot be read" in refusal(io.BytesIO(bytes(made)), "a.zip")


def test_too_many_files_are_refused(monkeypatch):
    monkeypatch.setattr(refusing, "MOST_FILES", 10)
    monkeypatch.setattr(archive, "MOST_ZIP_ENTRIES", 15)
    many = {f"f{number}": b"" for number in range(11)}
    for made, name in ((tar_of(many), "a.tgz"), (zip_of(many), "a.zip")):
        assert "files and folders" in refusal(made, name)
    listed = zip_of({f"f{number}": b"" for number in range(16)})
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda _archive: pytest.fail("its list was read"))
    assert "files and folders" in refusal(listed, "a.zip")


def test_a_header_larger_than_any_file_needs_is_refused_before_it_is_read():
    """A long name of 64 MiB of zeros is 64 KiB in gzip."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 64 * 1024 * 1024
    raw = header.tobuf(format=tarfile.GNU_FORMAT) + b"\0" * header.size
    assert "headers" in refusal(io.BytesIO(gzip.compress(raw)), "a.tar.gz")


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip"])
@pytest.mark.parametrize("data", [b"", b"no archive", b"\x1f\x8b\x08\x00broken", b"PK\x03\x04", b"\0" * 700])
def test_what_is_no_archive_or_holds_nothing_is_refused(name, data):
    assert name in refusal(io.BytesIO(data), name)


def test_a_cut_archive_is_refused():
    whole = tar_of({"a": bytes(range(256)) * 4000}).getvalue()
    assert refusal(io.BytesIO(whole[: len(whole) // 2]), "a.tar.gz")


def test_an_encrypted_zip_is_refused():
    made = bytearray(zip_of({"a": b"x"}).getvalue())
    made[made.rindex(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refusal(io.BytesIO(bytes(made)), "a.zip")
