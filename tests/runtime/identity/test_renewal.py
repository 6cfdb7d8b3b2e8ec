"""New TLS certificates for old members."""

import datetime
import shutil
import threading
from pathlib import Path

import pytest
from cryptography import x509

from fedelect.errors import ConfigurationError
from fedelect.protocol import ElectionSettings
from fedelect.runtime.host_messages import Notice, Trouble
from fedelect.runtime.identity import (
    CA_NAME,
    CERTIFICATE_NAME,
    SIGNING_KEY_NAME,
    TLS_KEY_NAME,
    VALID_DAYS,
    Authority,
    create_federation,
    read_identity,
    renew,
)
from fedelect.runtime.identity.files import CA_KEY_NAME
from fedelect.runtime.process import serve, warn_before_expiry
from fedelect.runtime.roster import ROSTER_NAME
from fedelect.runtime.transport import MemoryNetwork, MemoryTransport


@pytest.fixture
def fed(tmp_path: Path) -> Path:
    return federation(tmp_path / "fed")


def federation(out: Path) -> Path:
    addresses = ("127.0.0.1:7001", "localhost:7002")
    create_federation(out, addresses=addresses, edges=((0, 1),), couplings=(0.1,), settings=ElectionSettings(budget=1))
    return out


def let_it_age(fed: Path, name: str, days_left: float) -> None:
    """A certificate of the same CA that has this many days left."""
    certificate, key = Authority.read(fed / "ca").certify(name, "localhost", days_left)
    (fed / name / CERTIFICATE_NAME).write_bytes(certificate)
    (fed / name / TLS_KEY_NAME).write_bytes(key)


def test_a_renewed_peer_has_another_certificate_and_tls_key_and_is_the_same_member(fed: Path) -> None:
    folder = fed / "peer01"
    let_it_age(fed, "peer01", 3.0)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    was = read_identity(folder)
    done = renew("peer01", folder, fed / "ca")
    now = read_identity(folder)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {CERTIFICATE_NAME, TLS_KEY_NAME}
    assert set(after) == set(before) and (folder / TLS_KEY_NAME).stat().st_mode & 0o777 == 0o600
    assert (now.client, now.signer.key, now.config) == (was.client, was.signer.key, was.config)
    left = done.expires - datetime.datetime.now(datetime.UTC)
    assert (done.name, done.host, done.expires) == ("peer01", "localhost", now.expires)
    assert VALID_DAYS - 1 <= left.days <= VALID_DAYS


def test_an_expired_certificate_stops_the_peer_with_advice_and_can_be_renewed(fed: Path) -> None:
    let_it_age(fed, "peer01", -1.0)
    with pytest.raises(ConfigurationError, match=r"expired on .* fedelect peers renew peer01 --folder .*peer01 --ca"):
        read_identity(fed / "peer01")
    renew("peer01", fed / "peer01", fed / "ca")
    read_identity(fed / "peer01")


def test_a_renewal_that_was_interrupted_stops_the_peer_with_advice_and_is_mended_by_another(fed: Path) -> None:
    folder = fed / "peer01"
    old = (folder / CERTIFICATE_NAME).read_bytes()
    renew("peer01", folder, fed / "ca")
    (folder / CERTIFICATE_NAME).write_bytes(old)  # the new key is there, the new certificate is not
    with pytest.raises(ConfigurationError, match=r"is not the key of .* interrupted.* fedelect peers renew peer01 --f"):
        read_identity(folder)
    renew("peer01", folder, fed / "ca")
    assert read_identity(folder).client == 1


def test_a_certificate_that_is_not_good_yet_stops_the_peer(fed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Behind(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Behind":
            return cls(2001, 1, 1, tzinfo=tz)

    monkeypatch.setattr(datetime, "datetime", Behind)
    with pytest.raises(ConfigurationError, match=r"good only from .* clock says 2001-01-01 00:00; set the clock"):
        read_identity(fed / "peer01")


def test_copies_without_any_secret_are_enough_and_the_other_files_go_home(fed: Path, tmp_path: Path) -> None:
    desk = tmp_path / "desk"
    desk.mkdir()
    for name in (ROSTER_NAME, CA_NAME, CERTIFICATE_NAME):
        shutil.copy(fed / "peer00" / name, desk / name)
    renew("peer00", desk, fed / "ca")
    for name in (CERTIFICATE_NAME, TLS_KEY_NAME):
        shutil.copy(desk / name, fed / "peer00" / name)
    assert not (desk / SIGNING_KEY_NAME).exists() and read_identity(fed / "peer00").client == 0


def test_another_ca_is_refused_by_its_fingerprint_and_nothing_changes(fed: Path, tmp_path: Path) -> None:
    other = federation(tmp_path / "other")
    before = {path.name: path.read_bytes() for path in (fed / "peer01").iterdir()}
    with pytest.raises(
        ConfigurationError, match=r"another CA than the one .* SHA-256 [0-9a-f]{16}, but .* was founded"
    ):
        renew("peer01", fed / "peer01", other / "ca")
    (fed / "peer01" / CERTIFICATE_NAME).write_bytes((other / "peer01" / CERTIFICATE_NAME).read_bytes())
    with pytest.raises(ConfigurationError, match="is not of the CA in"):
        renew("peer01", fed / "peer01", fed / "ca")
    (fed / "peer01" / CERTIFICATE_NAME).write_bytes(before[CERTIFICATE_NAME])
    assert {path.name: path.read_bytes() for path in (fed / "peer01").iterdir()} == before


def test_a_ca_that_is_not_whole_and_a_certificate_of_no_member_are_refused(fed: Path, tmp_path: Path) -> None:
    stranger, key = Authority.read(fed / "ca").certify("mallory", "localhost")
    own = (fed / "peer01" / CERTIFICATE_NAME).read_bytes()
    for content, match in ((stranger, "is of 'mallory', not of 'peer01'"), (b"nonsense", "is no certificate")):
        (fed / "peer01" / CERTIFICATE_NAME).write_bytes(content)
        with pytest.raises(ConfigurationError, match=match):
            renew("peer01", fed / "peer01", fed / "ca")
    (fed / "peer01" / CERTIFICATE_NAME).write_bytes(own)
    for content, match in ((key, "is not the key of"), (b"nonsense", "holds no certificate authority")):
        (fed / "ca" / CA_KEY_NAME).write_bytes(content)
        with pytest.raises(ConfigurationError, match=match):
            renew("peer01", fed / "peer01", fed / "ca")
    with pytest.raises(ConfigurationError, match=r"has no ca.pem and no ca.key; name the folder `ca`"):
        renew("peer01", fed / "peer01", fed / "server")


def test_whom_to_certify_and_where_is_not_taken_from_what_an_applicant_brings(fed: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "brought"
    theirs.mkdir()
    for name in (ROSTER_NAME, CA_NAME, CERTIFICATE_NAME):
        shutil.copy(fed / "peer00" / name, theirs / name)  # all of it is public: peer 1 applies in the name of peer 0
    with pytest.raises(ConfigurationError, match="is of 'peer00', not of 'peer01'"):
        renew("peer01", theirs, fed / "ca")
    text = (theirs / ROSTER_NAME).read_text()
    (theirs / ROSTER_NAME).write_text(text.replace("127.0.0.1:7001", "mallory.example:7001"))
    with pytest.raises(ConfigurationError, match="not the roster of this CA"):
        renew("peer00", theirs, fed / "ca")
    with pytest.raises(ConfigurationError, match=r"'peer7' is not in .*, peer00 to peer01"):
        renew("peer7", theirs, fed / "ca")
    assert not (theirs / TLS_KEY_NAME).exists()


def test_a_ca_without_a_roster_says_what_to_copy_and_then_renews(fed: Path) -> None:
    (fed / "ca" / ROSTER_NAME).unlink()
    with pytest.raises(ConfigurationError, match=r"holds no roster.json, .*copy roster.json .* `server`"):
        renew("peer01", fed / "peer01", fed / "ca")
    shutil.copy(fed / "server" / ROSTER_NAME, fed / "ca" / ROSTER_NAME)
    assert renew("peer01", fed / "peer01", fed / "ca").host == "localhost"


def test_no_certificate_outlives_its_ca() -> None:
    authority = Authority.generate()
    short, _ = authority.certify("one", "localhost", 10.0)
    long, _ = authority.certify("two", "localhost", 100_000.0)
    ends = [x509.load_pem_x509_certificate(one).not_valid_after_utc for one in (short, long)]
    assert ends[0] < ends[1] == authority.certificate.not_valid_after_utc


@pytest.mark.parametrize(("days_left", "warned"), [(30.0, True), (90.0, False)])
def test_a_peer_says_at_its_start_that_its_certificate_will_expire(fed: Path, days_left: float, warned: bool) -> None:
    let_it_age(fed, "peer01", days_left)
    said: list[Notice] = []
    links = MemoryTransport(MemoryNetwork(), 1, frozenset({0}))
    with open("/dev/null", "rb") as no_commands:
        serve(fed / "peer01", no_commands, said.append, transport=links)
    assert bool([one for one in said if isinstance(one, Trouble) and "expires on" in one.text]) == warned


def test_a_peer_that_stays_up_says_it_again_until_it_ends(fed: Path) -> None:
    let_it_age(fed, "peer01", 30.0)
    over = threading.Event()
    said: list[Notice] = []

    def tell(notice: Notice) -> None:
        said.append(notice)
        if len(said) == 3:
            over.set()

    thread = warn_before_expiry(read_identity(fed / "peer01"), tell, over, every_s=0.01)
    assert len(said) >= 1
    thread.join(60.0)
    assert (
        not thread.is_alive()
        and len(said) == 3
        and all(isinstance(one, Trouble) and "start the peer" in one.text for one in said)
    )
