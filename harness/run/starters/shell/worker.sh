#!/usr/bin/env bash
# Takes one job at a time, calls the outside, and writes down how it went. Put your own worker in its place.
#
# What queueproof gives it: DATABASE_URL, QUEUEPROOF_SINK (the outside), QUEUEPROOF_WORKER (its name), and what
# subject.toml lists under env. What it must do: POST $QUEUEPROOF_SINK/<job key> once per job, and obey the answer.
set -u

sql() {
  psql "$DATABASE_URL" -qAtX -F ' ' -v ON_ERROR_STOP=1 -v worker="$QUEUEPROOF_WORKER" -v lease="$LEASE" "$@"
}

claim() {  # prints: id, version, and the key with every byte as %XX, as a URL wants it
  sql <<'SQL'
update jobs
set status = 'busy', worker = :'worker', version = version + 1, lease_until = now() + :'lease' * interval '1 second'
where id = (
  select id from jobs
  where status = 'new' or (status = 'busy' and lease_until < now())
  order by id
  limit 1
  for update skip locked
)
returning id, version, regexp_replace(encode(convert_to(payload->>'key', 'UTF8'), 'hex'), '(..)', '%\1', 'g')
SQL
}

result() {  # the new status; counts only while the job is still ours
  sql -v id="$id" -v version="$version" -v status="$1" <<'SQL'
update jobs set status = :'status', worker = null, lease_until = null
where id = :id and status = 'busy' and worker = :'worker' and version = :version
SQL
}

call() {
  curl -s -o /dev/null -w '%{http_code}' --max-time 60 --path-as-is -X POST \
    -H "Idempotency-Key: $key" -H "Fencing-Token: $version" "$QUEUEPROOF_SINK/$key"
}

while :; do
  id=
  read -r id version key < <(claim)
  if [ -z "$id" ]; then
    sleep "$POLL"
    continue
  fi
  case $(call) in
    2??) result "done" ;;
    4??) result failed ;;             # the job is at fault: not again
    *) result new; sleep "$POLL" ;;   # the outside is at fault: again, later
  esac
done
