"""Which checkpoint folders are whole, which is the newest, and where a run stands on other ranks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from glpilot.app.results.checkpoint.folders import folder_of, list_checkpoints, newest
from glpilot.app.results.checkpoint.manifest import FORMAT_VERSION, checksum, read_manifest, verify
from glpilot.app.results.checkpoint.position import Position
from glpilot.data.errors import UserError
from glpilot.data.sealed_json import write_sealed


def make_checkpoint(run: Path, step: int, **changes) -> Path:
    """A folder as a run leaves it, with anything as its files' content; `changes` are put into the manifest."""
    folder = folder_of(run, step)
    folder.mkdir(parents=True)
    for name in ("rows-00000.h5", "rows-00001.h5", "model.h5"):
        (folder / name).write_bytes(f"{name} of step {step}".encode())
    manifest = {
        "number": len(list(folder.parent.iterdir())),
        "offsets": [0, 3, 5],
        "files": {path.name: checksum(path) for path in folder.iterdir()},
        **changes,
    }
    write_sealed(folder / "manifest.json", FORMAT_VERSION, manifest)
    return folder


def remove_shard(folder: Path):
    (folder / "rows-00001.h5").unlink()


def put_folder_in_place_of_shard(folder: Path):
    remove_shard(folder)
    (folder / "rows-00001.h5").mkdir()


def flip_a_bit(folder: Path):
    path = folder / "model.h5"
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)


def cut_shard(folder: Path):
    path = folder / "rows-00000.h5"
    path.write_bytes(path.read_bytes()[:-1])


def append_to_shard(folder: Path):
    with open(folder / "rows-00000.h5", "ab") as file:
        file.write(b"x")


def remove_manifest(folder: Path):
    (folder / "manifest.json").unlink()


def cut_manifest(folder: Path):
    path = folder / "manifest.json"
    path.write_text(path.read_text()[:-10])


def edit_manifest(folder: Path):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "offsets": [0, 5]}))


def write_manifest(content: bytes):
    return lambda folder: (folder / "manifest.json").write_bytes(content)


# Each kind of damage, with a word that the message must hold.
DAMAGES = {
    "missing shard": (remove_shard, "rows-00001.h5 is missing"),
    "folder for shard": (put_folder_in_place_of_shard, "rows-00001.h5 is missing"),
    "wrong bit": (flip_a_bit, "model.h5 does not have its checksum"),
    "cut shard": (cut_shard, "rows-00000.h5 does not have its checksum"),
    "longer shard": (append_to_shard, "rows-00000.h5 does not have its checksum"),
    "no manifest": (remove_manifest, "manifest.json is missing"),
    "cut manifest": (cut_manifest, "manifest.json: cannot be read"),
    "empty manifest": (write_manifest(b""), "manifest.json: cannot be read"),
    "binary manifest": (write_manifest(b"\xff\x00\xfe"), "manifest.json: cannot be read"),
    "manifest of a list": (write_manifest(b"[1, 2]"), "manifest.json: cannot be read"),
    "manifest of a number": (write_manifest(b"7"), "manifest.json: cannot be read"),
    "manifest without version": (write_manifest(b"{}"), "manifest.json: cannot be read"),
    "edited manifest": (edit_manifest, "manifest.json: does not have its checksum"),
    "manifest without checksum": (
        write_manifest(b'{"format_version": 1, "files": {}}'),
        "manifest.json: does not have its checksum",
    ),
    "another version": (
        write_manifest(b'{"format_version": 99, "files": {}, "offsets": [0]}'),
        "expected format version 1, found 99",
    ),
}


@pytest.fixture(params=DAMAGES)
def damage(request):
    return DAMAGES[request.param]


def test_a_whole_checkpoint_is_accepted(tmp_path):
    folder = make_checkpoint(tmp_path, 7, position={"step": 7})
    assert verify(folder) == read_manifest(folder)
    assert verify(folder)["position"] == {"step": 7}
    assert newest(tmp_path) == (folder, [])


def test_damage_is_found_and_named(tmp_path, damage):
    spoil, word = damage
    folder = make_checkpoint(tmp_path, 7)
    spoil(folder)
    with pytest.raises(UserError) as caught:
        verify(folder)
    assert word in str(caught.value) and str(folder) in str(caught.value) and "\n" not in str(caught.value)


def test_the_newest_whole_checkpoint_is_taken(tmp_path, damage):
    spoil, word = damage
    make_checkpoint(tmp_path, 8)
    whole = make_checkpoint(tmp_path, 9)
    spoil(make_checkpoint(tmp_path, 100))
    folder, rejected = newest(tmp_path)
    assert folder == whole
    assert len(rejected) == 1 and word in rejected[0] and "step-100" in rejected[0]


def test_no_checkpoint_is_whole(tmp_path):
    for step in (3, 20):
        remove_shard(make_checkpoint(tmp_path, step))
    folder, rejected = newest(tmp_path)
    assert folder is None
    assert ["step-20" in rejected[0], "step-3" in rejected[1], len(rejected)] == [True, True, 2]


def test_a_folder_that_is_not_there_is_not_a_checkpoint(tmp_path):
    assert newest(tmp_path / "none") == (None, [])
    with pytest.raises(UserError, match="manifest.json is missing"):
        verify(tmp_path / "none")


def test_checkpoints_are_listed_in_the_order_of_writing_newest_first(tmp_path):
    for step in (9, 100, 10):
        make_checkpoint(tmp_path, step)
    folder = tmp_path / "checkpoints"
    shutil.copytree(folder / "step-9", folder / ".step-200.tmp")  # what a run that was killed leaves behind
    shutil.copytree(folder / "step-9", folder / ".step-300.old")
    shutil.copytree(folder / "step-9", folder / "step-latest")
    assert [path.name for path in list_checkpoints(folder)] == ["step-10", "step-100", "step-9"]
    assert newest(tmp_path)[0].name == "step-10"  # the run went on from step 9


def test_checksums_tell_files_apart(tmp_path):
    sums = []
    for index, content in enumerate([b"", b"a", b"b", b"ab", bytes(5 << 20), bytes((5 << 20) - 1) + b"\1"]):
        path = tmp_path / str(index)
        path.write_bytes(content)
        sums.append(checksum(path))
    assert len(set(sums)) == 6


def make_position(**changes) -> Position:
    return Position(
        **{
            "step": 27,
            "epoch": 2,
            "step_in_epoch": 7,
            "steps_per_epoch": 10,
            "epoch_loss_sum": 14.0,
            "epoch_seconds": [1.0, 2.0],
            "partial_epoch_seconds": 0.5,
            "metrics_bytes": 99,
            **changes,
        }
    )


def test_a_position_stays_where_the_epoch_is_as_long():
    assert make_position().on_steps_per_epoch(10) == make_position()


@pytest.mark.parametrize("steps_per_epoch, step_in_epoch", [(20, 14), (5, 3), (1, 0), (15, 10)])
def test_a_position_on_an_epoch_of_another_length(steps_per_epoch, step_in_epoch):
    position = make_position().on_steps_per_epoch(steps_per_epoch)
    expected = make_position(
        step_in_epoch=step_in_epoch, steps_per_epoch=steps_per_epoch, epoch_loss_sum=2.0 * step_in_epoch
    )
    assert position == expected  # so the mean loss so far is the same, and all else


@pytest.mark.parametrize("old, new", [(10, 3), (3, 10), (1, 7)])
def test_the_ends_of_an_epoch_stay_its_ends(old, new):
    for step_in_epoch, expected in ((0, 0), (old, new)):
        position = make_position(step_in_epoch=step_in_epoch, steps_per_epoch=old).on_steps_per_epoch(new)
        assert position.step_in_epoch == expected


def test_a_new_run_begins_at_the_beginning():
    assert Position().on_steps_per_epoch(12) == Position(steps_per_epoch=12)
