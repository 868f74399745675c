"""Where a database is and who we are there. Never shows a password."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from psycopg.conninfo import make_conninfo


@dataclass(frozen=True)
class Address:
    """A database as libpq knows it. ``params`` are further libpq parameters, such as sslmode."""

    host: str
    port: int
    user: str
    dbname: str
    password: str | None = field(default=None, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def at(self, dbname: str) -> "Address":
        """Another database of the same server."""
        return dataclasses.replace(self, dbname=dbname)

    def as_user(self, user: str, password: str | None = None) -> "Address":
        """The same database as somebody else, whose password is not ours."""
        return dataclasses.replace(self, user=user, password=password)

    def via(self, host: str, port: int) -> "Address":
        """The same database through something that listens elsewhere, in the clear: a proxy."""
        return dataclasses.replace(self, host=host, port=port, params={})

    def dsn(self, dbname: str | None = None, user: str | None = None) -> str:
        """The libpq connection string. For another user it carries no password."""
        same = user is None or user == self.user
        return make_conninfo(
            host=self.host,
            port=self.port,
            user=user or self.user,
            dbname=dbname or self.dbname,
            password=self.password if same else None,
            **self.params,
        )

    def url(self, dbname: str | None = None, user: str | None = None) -> str:
        """The same as a URL, for DATABASE_URL."""
        same = user is None or user == self.user
        login = quote(user or self.user, safe="")
        if same and self.password is not None:
            login += f":{quote(self.password, safe='')}"
        return f"postgresql://{login}@{self._place()}/{quote(dbname or self.dbname, safe='')}{self._query()}"

    def env(self) -> dict[str, str]:
        """What libpq and most drivers read from the environment."""
        variables = {"PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": self.user, "PGDATABASE": self.dbname}
        if self.password is not None:
            variables["PGPASSWORD"] = self.password
        return variables

    def shown(self) -> str:
        """Fit to print: no password."""
        return f"postgresql://{quote(self.user, safe='')}@{self._place()}/{quote(self.dbname, safe='')}"

    def _place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        return f"{host}:{self.port}"

    def _query(self) -> str:
        return f"?{urlencode(self.params, quote_via=quote)}" if self.params else ""
