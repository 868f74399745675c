-- The keys that the harness enqueued. Rows with other keys are a library's own and are never gated or judged.
create table queueproof.enqueued (
    key text primary key
)
