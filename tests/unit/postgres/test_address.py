"""An address says the same in every form, and its password in none that is printed."""

from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from harness.postgres.address import Address

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30)
addresses = st.builds(
    Address,
    host=st.sampled_from(["127.0.0.1", "::1", "db.example.org"]),
    port=st.integers(1, 65535),
    user=words,
    dbname=words,
    password=st.none() | words,
    params=st.dictionaries(st.sampled_from(["sslmode", "options", "target_session_attrs"]), words),
)


@given(addresses)
def test_url_and_dsn_are_one_address_to_libpq(address: Address) -> None:
    parsed = {name: value for name, value in conninfo_to_dict(address.dsn()).items() if value is not None}

    assert parsed == {name: value for name, value in conninfo_to_dict(address.url()).items() if value is not None}
    assert parsed["user"] == address.user
    assert parsed["dbname"] == address.dbname
    assert parsed.get("password") == address.password
    assert {name: parsed[name] for name in address.params} == dict(address.params)


def test_password_is_in_no_printed_form() -> None:
    address = Address("h", 1, "u", "d", password="s3cret", params={"sslpassword": "s3cret"})

    assert "s3cret" not in f"{address!r} {address} {address.shown()}"
    assert address.env()["PGPASSWORD"] == "s3cret"
    assert "s3cret" in address.dsn()
    assert "s3cret" in address.url()


def test_another_user_does_not_get_our_password() -> None:
    address = Address("h", 1, "owner", "d", password="s3cret")

    assert "s3cret" not in address.dsn(user="worker")
    assert "s3cret" not in address.url(user="worker")
    assert "PGPASSWORD" not in address.as_user("worker").env()
    assert address.as_user("worker", "own").env()["PGPASSWORD"] == "own"


def test_moving_an_address_keeps_the_rest() -> None:
    address = Address("db", 5432, "u", "d", password="p", params={"sslmode": "require"})

    assert address.at("other") == Address("db", 5432, "u", "other", password="p", params={"sslmode": "require"})
    assert address.via("127.0.0.1", 7) == Address("127.0.0.1", 7, "u", "d", password="p"), "a proxy speaks no TLS"
    assert address.dsn(dbname="other") == address.at("other").dsn()


def test_addresses_are_values() -> None:
    assert len({Address("h", 1, "u", "d", params={"sslmode": "disable"}) for _ in range(2)}) == 1
