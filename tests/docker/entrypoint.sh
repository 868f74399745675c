#!/bin/sh
# What the official image does with POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB, for one version from Debian's packages.
set -eu
bin=/usr/lib/postgresql/15/bin
data=/var/lib/postgresql/data
user=${POSTGRES_USER:-postgres}
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -g postgres -m 0700 "$data"
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$data/PG_VERSION" ]; then
    password=$(mktemp)
    printf '%s' "${POSTGRES_PASSWORD:?}" > "$password"
    "$bin/initdb" -D "$data" -U "$user" --encoding=UTF8 --locale=C.UTF-8 --auth=scram-sha-256 --pwfile="$password" --no-sync
    rm "$password"
    echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
    if [ "${POSTGRES_DB:-$user}" != postgres ]; then
        printf 'create database "%s";\n' "${POSTGRES_DB:-$user}" | "$bin/postgres" --single -D "$data" postgres
    fi
fi
exec "$bin/postgres" -D "$data" -c listen_addresses='*' -c unix_socket_directories='' "$@"
