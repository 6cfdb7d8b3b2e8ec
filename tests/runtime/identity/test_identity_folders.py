"""Keys, certificates and folders of peers."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fedelect.errors import ConfigurationError
from fedelect.protocol import ElectionSettings
from fedelect.runtime.identity import (
    CA_NAME,
    CERTIFICATE_NAME,
    SIGNING_KEY_NAME,
    TLS_KEY_NAME,
    Authority,
    create_federation,
    new_signing_key,
    read_identity,
)
from fedelect.runtime.roster import ROSTER_NAME, encode_roster, read_roster
from fedelect.runtime.signing import Ed25519Signer

SETTINGS = ElectionSettings(budget=1, exploration=0.1 + 0.2)


@pytest.fixture
def fed(tmp_path: Path) -> Path:
    create_federation(
        tmp_path / "fed",
        addresses=("127.0.0.1:7001", "localhost:7002", "[::1]:7003"),
        edges=((0, 1), (1, 2)),
        couplings=(0.1, 1 / 3),
        settings=SETTINGS,
    )
    return tmp_path / "fed"


def test_each_folder_is_all_its_peer_needs_and_holds_only_its_own_secrets(fed: Path) -> None:
    for client in range(3):
        identity = read_identity(fed / f"peer{client:02d}")
        assert identity.client == client
        assert identity.config == read_roster(fed / "server").config()  # floats to the last bit
    assert {path.name for path in (fed / "server").iterdir()} == {ROSTER_NAME}
    secrets = [fed / "ca" / "ca.key", *fed.glob("peer*/*.key")]
    assert len(secrets) == 7 and len({path.read_bytes() for path in secrets}) == 7
    assert {path.stat().st_mode & 0o777 for path in secrets} == {0o600}


def test_clients_can_bring_their_own_keys_and_no_secret_to_sign_with_is_dealt(tmp_path: Path) -> None:
    keys = [new_signing_key(tmp_path / f"mine{client}") for client in range(2)]
    arguments: dict[str, Any] = {"addresses": ("a:1", "b:1"), "edges": ((0, 1),), "couplings": (0.1,)}
    roster = create_federation(tmp_path / "fed", **arguments, settings=SETTINGS, keys=keys)
    assert roster.config().keys == tuple(keys)
    assert not list((tmp_path / "fed").rglob(SIGNING_KEY_NAME))
    with pytest.raises(ConfigurationError, match=f"cannot read .*{SIGNING_KEY_NAME}"):
        read_identity(tmp_path / "fed" / "peer01")
    shutil.copytree(tmp_path / "fed" / "peer01", tmp_path / "mine1", dirs_exist_ok=True)
    assert read_identity(tmp_path / "mine1").client == 1
    with pytest.raises(ConfigurationError, match="never overwritten"):
        new_signing_key(tmp_path / "mine1")
    for wrong, match in ((keys[:1], "got 1 keys"), ([keys[0], b"short"], r"of \[5, 32\] bytes")):
        with pytest.raises(ConfigurationError, match=match):
            create_federation(tmp_path / "other", **arguments, settings=SETTINGS, keys=wrong)
    with pytest.raises(ConfigurationError, match="2 different public keys"):
        create_federation(tmp_path / "other", **arguments, settings=SETTINGS, keys=[keys[0]] * 2)


def test_a_folder_with_keys_is_never_overwritten(fed: Path) -> None:
    with pytest.raises(ConfigurationError, match="not empty"):
        create_federation(fed, addresses=("a:1",), edges=(), couplings=(), settings=SETTINGS)


@pytest.mark.parametrize("name", [CA_NAME, CERTIFICATE_NAME, TLS_KEY_NAME, SIGNING_KEY_NAME, ROSTER_NAME])
def test_nothing_can_be_left_out(fed: Path, name: str) -> None:
    (fed / "peer01" / name).unlink()
    with pytest.raises(ConfigurationError, match=f"cannot read .*{name}"):
        read_identity(fed / "peer01")


@pytest.mark.parametrize("name", [CA_NAME, CERTIFICATE_NAME, TLS_KEY_NAME, SIGNING_KEY_NAME, ROSTER_NAME])
def test_no_file_can_be_nonsense(fed: Path, name: str) -> None:
    (fed / "peer01" / name).write_bytes(b"nonsense\xff")
    with pytest.raises(ConfigurationError):
        read_identity(fed / "peer01")


def test_a_key_that_is_not_in_the_roster_is_refused(fed: Path) -> None:
    (fed / "peer01" / SIGNING_KEY_NAME).write_text(Ed25519Signer.generate().secret.hex())
    with pytest.raises(ConfigurationError, match="not in the roster"):
        read_identity(fed / "peer01")


def test_another_peers_certificate_another_cas_and_another_key_are_refused(fed: Path) -> None:
    folder = fed / "peer01"
    own = (folder / CERTIFICATE_NAME).read_bytes()
    shutil.copy(fed / "peer00" / CERTIFICATE_NAME, folder / CERTIFICATE_NAME)
    with pytest.raises(ConfigurationError, match=r"peer00.*calls the holder of this key 'peer01'"):
        read_identity(folder)
    (folder / CERTIFICATE_NAME).write_bytes(Authority.generate().certify("peer01", "localhost")[0])
    with pytest.raises(ConfigurationError, match="do not belong together"):
        read_identity(folder)
    (folder / CERTIFICATE_NAME).write_bytes(own)
    shutil.copy(fed / "peer00" / TLS_KEY_NAME, folder / TLS_KEY_NAME)
    with pytest.raises(ConfigurationError, match="is not the key of"):
        read_identity(folder)


def test_a_secret_that_others_can_read_is_refused(fed: Path) -> None:
    (fed / "peer01" / SIGNING_KEY_NAME).chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        read_identity(fed / "peer01")


def test_two_members_at_one_address_are_refused(fed: Path) -> None:
    roster = read_roster(fed / "server")
    twin = msgspec.structs.replace(roster.members[1], address=roster.members[0].address)
    wrong = msgspec.structs.replace(roster, members=(roster.members[0], twin, roster.members[2]))
    (fed / "server" / ROSTER_NAME).write_bytes(encode_roster(wrong))
    with pytest.raises(ConfigurationError, match="share a name or an address"):
        read_roster(fed / "server").config()


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (b'"max_faulty"', b'"faulty"', "unknown settings: faulty; known are budget, rule"),
        (b'"rule": "bp-ucb"', b'"rule": "dictator"', "is no roster: rule must be one of"),
        (b'"byzantine": false', b'"byzantine": "no"', "is no roster: Expected `bool`"),
    ],
)
def test_settings_that_no_election_has_are_refused(fed: Path, old: bytes, new: bytes, match: str) -> None:
    path = fed / "server" / ROSTER_NAME
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    with pytest.raises(ConfigurationError, match=match):
        read_roster(path.parent)
