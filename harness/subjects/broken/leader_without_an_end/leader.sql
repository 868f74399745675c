create table leader (one boolean primary key default true check (one), who text not null)
