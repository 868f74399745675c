-- How many jobs of a tenant may run at once. Zero holds the tenant back, which is also how tenants are moved one by one.
create table if not exists queue_tenant (
    tenant text primary key,
    cap integer not null,
    constraint cap_is_bounded check (cap between 0 and 1000)
);
