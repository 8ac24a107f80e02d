-- A table that loses its primary key while a process runs is another table: its next landing could double rows.
create or replace function tributary.table_identity(of_table regclass, of_history regclass) returns text
  language sql stable parallel safe set search_path = pg_catalog as $$
  select concat_ws(' ', 'database=' || (select d.oid from pg_database d where d.datname = current_database()),
    'checkpoints=' || c.oid, 'control=' || pg_relation_filenode(c.oid),
    'table=' || of_table::oid, 'file=' || pg_relation_filenode(of_table),
    'history=' || of_history::oid, 'historyfile=' || pg_relation_filenode(of_history),
    case when (select count(*) from pg_index i
                where i.indrelid in (of_table, of_history) and i.indisprimary and i.indisvalid and i.indimmediate) < 2
         then 'keys=missing' end)
    from (select 'tributary.checkpoints'::regclass::oid as oid) c
$$;
comment on function tributary.table_identity(regclass, regclass) is 'The identity of a table and its history: oids of the database and the tables, which change with a restore, files, which change with a truncate or rewrite, and whether a primary key is missing.';
