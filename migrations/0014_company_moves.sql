-- The move of a company to another warehouse.
-- short: a row for each company
alter table tributary.company_settings
  add column move_id text,
  add column move_state text check (move_state in ('leaving', 'arriving')),
  add constraint company_settings_move check (move_state is null or move_id is not null);
comment on column tributary.company_settings.move_id is 'The move of the company to another warehouse, the same in both; null before the first attempt.';
comment on column tributary.company_settings.move_state is 'leaving: its rows are copied to another warehouse; arriving: its rows were copied, and the other warehouse still has the company. In both states no process works for it, and its deliveries are refused. Null while it does not move.';

-- short: a row for each removal
alter table tributary.company_receipts
  add column move_id text,
  drop constraint company_receipts_action_check,
  add constraint company_receipts_action_check check (action in ('detach', 'erase', 'move'));
comment on table tributary.company_receipts is 'What tributary company remove and move did: who, when, and how many rows of each table were deleted.';
comment on column tributary.company_receipts.action is 'detach: the company is no longer configured, and its rows stay; erase: its rows were deleted; move: its rows are in another warehouse, and were deleted here';
comment on column tributary.company_receipts.move_id is 'The move: from the commit of this row on, the company belongs to the other warehouse.';

-- In a table of records only _company_id is of the company: a record may have a field that is called company.
create or replace function tributary.delete_company_rows(for_company text, for_company_id bigint, relations text[])
  returns table (relation text, deleted bigint) language plpgsql as $$
declare
  condition text;
begin
  foreach relation in array relations loop
    select string_agg(format('%I = %s', a.attname, case a.attname when 'company' then '$1' else '$2' end), ' or ' order by a.attname)
      into condition from pg_attribute a
     where a.attrelid = relation::regclass and not a.attisdropped
       and a.attname = any(case when relation like 'tributary.%' then array['company', 'company_id'] else array['_company_id'] end);
    if condition is null then
      raise exception 'the table % has no column of a company', relation;
    end if;
    execute format('delete from %s where %s', relation::regclass, condition) using for_company, for_company_id;
    get diagnostics deleted = row_count;
    if deleted > 0 then return next; end if;
  end loop;
end $$;
