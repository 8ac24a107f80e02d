-- The rows of a company that a process of serve writes: they are deleted too, and none is written afterwards.
create or replace function tributary.delete_company_rows(for_company text, for_company_id bigint, relations text[])
  returns table (relation text, deleted bigint) language plpgsql as $$
declare
  condition text;
begin
  -- The triggers of the records keep no version of these rows.
  perform set_config('tributary.removes_company', 'on', true);
  foreach relation in array relations loop
    select string_agg(format('%I = %s', a.attname, case a.attname when 'company' then '$1' else '$2' end), ' or ' order by a.attname)
      into condition from pg_attribute a
     where a.attrelid = relation::regclass and not a.attisdropped
       and a.attname = any(case when relation like 'tributary.%' then array['company', 'company_id', 'company_number'] else array['_company_id'] end);
    if condition is null then
      raise exception 'the table % has no column of a company', relation;
    end if;
    -- A session that is writing such rows finishes before; the next one finds no company.
    case relation
      when 'tributary.activity' then perform from tributary.activity_watermarks for update;
      when 'tributary.alert_conditions' then perform from tributary.alert_evaluations for update;
      when 'tributary.invariant_states' then perform from tributary.invariant_evaluation for update;
      else
    end case;
    execute format('delete from %s where %s', relation::regclass, condition) using for_company, for_company_id;
    get diagnostics deleted = row_count;
    if deleted > 0 then return next; end if;
  end loop;
  perform set_config('tributary.removes_company', '', true);
end $$;
