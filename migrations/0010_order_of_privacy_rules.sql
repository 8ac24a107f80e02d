-- The order of the privacy rules: which ones others replaced, and a number by which a process notices a change.
alter table tributary.privacy_rules
  add column replaced text[] not null default '{}',
  add column revision bigint not null default 0,
  add column tables text;
-- short: it has at most one row for each resource
update tributary.privacy_rules set replaced = '{""}' where statement <> '';
comment on column tributary.privacy_rules.replaced is 'Rules that the stored values followed before: they are the older ones, and only tributary schema apply goes back to them.';
comment on column tributary.privacy_rules.tables is 'The identity of the tables whose values were found to follow the rules: another one is of a restored table, whose values are compared again.';
comment on column tributary.privacy_rules.revision is 'Rises with each change of the rules of any resource.';

-- The revision of the rules, null while a change is being applied. The caller's transaction ends before the next change begins.
create function tributary.rules_revision() returns bigint language plpgsql volatile as $$
begin
  if not pg_try_advisory_xact_lock_shared(7261003) then
    return null;
  end if;
  -- Read after the lock was acquired, and so not as of the beginning of the caller's statement.
  return (select coalesce(max(revision), 0) from tributary.privacy_rules);
end $$;
comment on function tributary.rules_revision() is 'The revision of the privacy rules, null while a change of them is being applied: a writer of deliveries compares it with its own.';
