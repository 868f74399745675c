alter table task add column grp text
