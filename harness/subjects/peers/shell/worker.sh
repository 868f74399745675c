#!/usr/bin/env bash
# Takes one job at a time, calls the outside, and writes down how it went.
# FENCED=yes: a result counts only from the worker and the attempt that hold the job.
set -u
fence=
[ "${FENCED:-no}" = yes ] && fence="and status = 'busy' and worker = :'worker' and attempts = :attempt"

sql() {
  psql "$DATABASE_URL" -qAtX -F ' ' -v ON_ERROR_STOP=1 -v worker="$QUEUEPROOF_WORKER" -v lease="$LEASE" "$@"
}

claim() {  # prints: id, attempt, and the key with every byte as %XX, as a URL wants it
  sql <<'SQL'
update jobs
set status = 'busy', worker = :'worker', attempts = attempts + 1, lease_until = now() + :'lease' * interval '1 second'
where id = (
  select id from jobs
  where status = 'new' or (status = 'busy' and lease_until < now())
  order by id limit 1
  for update skip locked
)
returning id, attempts, regexp_replace(encode(convert_to(payload->>'key', 'UTF8'), 'hex'), '(..)', '%\1', 'g')
SQL
}

write() {  # the new status
  sql -v id="$id" -v attempt="$attempt" -v status="$1" <<SQL
update jobs set status = :'status', worker = null, lease_until = null where id = :id $fence
SQL
}

call() {
  local headers=()
  [ -n "$fence" ] && headers=(-H "Idempotency-Key: $key" -H "Fencing-Token: $attempt")
  curl -s -o /dev/null -w '%{http_code}' --path-as-is -X POST "${headers[@]}" "$QUEUEPROOF_SINK/$key"
}

while :; do
  id=
  read -r id attempt key < <(claim)
  if [ -z "$id" ]; then
    sleep "$POLL"
    continue
  fi
  answer=$(call)
  case $answer in
    2??) write done ;;
    409) [ -n "$fence" ] || write failed ;;  # a fenced outside has seen a later attempt: the job is not ours any more
    4??) write failed ;;
    *) write new; sleep "$POLL" ;;
  esac
done
