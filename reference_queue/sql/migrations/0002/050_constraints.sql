-- NOT VALID: new rows are checked from now on, old ones are not read under this lock.
alter table queue_job
    drop constraint if exists claimable_has_attempts_left,
    drop constraint if exists running_of_a_tenant_has_a_permit,
    drop constraint if exists business_key_is_short,
    drop constraint if exists tenant_is_known,
    add constraint claimable_has_attempts_left check (state not in ('pending', 'retry') or attempts < max_attempts) not valid,
    add constraint running_of_a_tenant_has_a_permit check (state <> 'running' or tenant is null or permit is not null) not valid,
    add constraint business_key_is_short check (octet_length(business_key) between 1 and 1024) not valid,
    add constraint tenant_is_known foreign key (tenant) references queue_tenant not valid;
