select
    rolsuper,
    rolcreatedb,
    rolcreaterole,
    (select pg_encoding_to_char(encoding)::text from pg_database where datname = 'template1') as template_encoding
from pg_roles
where rolname = current_user
