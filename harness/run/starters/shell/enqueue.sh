#!/usr/bin/env bash
# A job per line of JSON; the line comes back once the job is in.
set -euo pipefail
while IFS= read -r line || [ -n "$line" ]; do
  psql "$DATABASE_URL" -qAtX -v ON_ERROR_STOP=1 -v payload="$line" <<< "insert into jobs (payload) values (:'payload')"
  printf '%s\n' "$line"
done
