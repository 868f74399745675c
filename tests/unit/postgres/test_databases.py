"""Names of databases: ours to see, short enough, one per name, and never another run's."""

from hypothesis import given
from hypothesis import strategies as st

from harness.postgres.address import Address
from harness.postgres.databases import Databases

ADDRESS = Address("h", 1, "u", "d")
names = st.text(max_size=200)


@given(names)
def test_a_real_name_is_ours_and_fits(name: str) -> None:
    real = Databases(ADDRESS).real_name(name)

    assert real.startswith("queueproof_")
    assert len(real.encode()) <= 63
    assert real == real.lower()


@given(names)
def test_the_real_name_will_do_as_well(name: str) -> None:
    databases = Databases(ADDRESS)

    assert databases.real_name(databases.real_name(name)) == databases.real_name(name)


@given(names, names)
def test_different_names_are_different_databases(one: str, other: str) -> None:
    databases = Databases(ADDRESS)

    assert (databases.real_name(one) == databases.real_name(other)) == (one == other)


def test_two_runs_do_not_collide() -> None:
    assert Databases(ADDRESS).real_name("x") != Databases(ADDRESS).real_name("x")
