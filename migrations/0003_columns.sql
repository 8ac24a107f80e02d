-- Beyond the catalogue: SQL names, unknown fields and their inferred columns, and the privacy rules of the stored values.

create table tributary.sql_names (
  scope text not null,
  api_name text not null,
  sql_name text not null,
  given_at timestamptz not null default tributary.now(),
  inferred_type text
    check (inferred_type in ('integer', 'number', 'decimal', 'boolean', 'text', 'date', 'timestamp', 'json')),
  inferred_position bigint,
  primary key (scope, api_name)
);
comment on table tributary.sql_names is 'The SQL name of a table (scope is empty) or of a column (scope is the resource) whose API name needs another, or that was inferred from records. A stored name never changes.';
comment on column tributary.sql_names.scope is 'Empty for a table; the path of the resource for a column.';
comment on column tributary.sql_names.api_name is 'The name in the API.';
comment on column tributary.sql_names.sql_name is 'The name in the warehouse.';
comment on column tributary.sql_names.given_at is 'When the name was given.';
comment on column tributary.sql_names.inferred_type is 'The type of the values, of a column that the catalogue does not state: all companies have it. Null for any other name.';
comment on column tributary.sql_names.inferred_position is 'The place among the inferred columns of the resource.';
create unique index sql_names_given_once on tributary.sql_names (scope, lower(sql_name));

create table tributary.unknown_fields (
  company_id bigint not null,
  resource text not null,
  field text not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  times bigint not null default 0,
  sample_types text[] not null,
  type_mismatches bigint not null default 0,
  run_id bigint not null,
  promoted_at timestamptz,
  primary key (company_id, resource, field)
);
comment on table tributary.unknown_fields is 'Fields of records that the catalogue does not state. Their values are in _extra until a column is made (tributary schema apply).';
comment on column tributary.unknown_fields.company_id is 'The number of the company in this warehouse.';
comment on column tributary.unknown_fields.resource is 'The path of the resource.';
comment on column tributary.unknown_fields.field is 'The name of the field in the API.';
comment on column tributary.unknown_fields.first_seen_at is 'When the field was first seen.';
comment on column tributary.unknown_fields.last_seen_at is 'When the field was last seen without a column.';
comment on column tributary.unknown_fields.times is 'Records that carried the field while it had no column.';
comment on column tributary.unknown_fields.sample_types is 'The kinds of all values so far: null, boolean, integer, number, numeral (digits in a string), decimal, date, timestamp, text, nested.';
comment on column tributary.unknown_fields.type_mismatches is 'Records whose value did not fit the inferred column. The value is in _extra.';
comment on column tributary.unknown_fields.run_id is 'The run that saw it first.';
comment on column tributary.unknown_fields.promoted_at is 'When a column was made of it; null before.';

create function tributary.is_day(value text) returns boolean language sql immutable parallel safe as $$
  select case
    when value !~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' or left(value, 4) = '0000' then false
    when right(value, 2) <= '28' then true
    else right(value, 2)::int <= extract(day from
      make_date(left(value, 4)::int, substr(value, 6, 2)::int, 1) + interval '1 month' - interval '1 day')
  end
$$;
comment on function tributary.is_day(text) is 'Whether the text is a day of the calendar, YYYY-MM-DD.';

-- The connector's rules for an inferred field, for values that landed before it had a column.
create function tributary.inferred_text(value jsonb, type text) returns text language sql immutable parallel safe as $$
  select case jsonb_typeof(value)
    when 'null' then null
    when 'string' then case type
      when 'text' then value #>> '{}'
      when 'json' then value::text
      when 'decimal' then case
        when value #>> '{}' ~ '^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?$' and value #>> '{}' !~ '^-0(\.0*)?$'
        then value #>> '{}' end
      when 'date' then case when tributary.is_day(value #>> '{}') then value #>> '{}' end
      when 'timestamp' then case
        when value #>> '{}' ~ '^.{10}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?Z$'
          and tributary.is_day(left(value #>> '{}', 10))
        then value #>> '{}' end
    end
    when 'number' then case
      when type = 'json' then value::text
      when type = 'integer' then case when value::text ~ '^-?(0|[1-9][0-9]{0,17})$' then value::text end
      when type in ('number', 'text') then case
        when value::text ~ '^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?$' and value::text !~ '^-0(\.0*)?$'
        then value::text end
    end
    when 'boolean' then case when type in ('boolean', 'text', 'json') then value::text end
    else case when type = 'json' then value::text end
  end
$$;
comment on function tributary.inferred_text(jsonb, text) is 'The part of a value that an inferred column of the type can hold, as text; null when there is none.';

create function tributary.inferred_is_complete(value jsonb, type text) returns boolean language sql immutable parallel safe as $$
  select jsonb_typeof(value) = 'null'
    or (tributary.inferred_text(value, type) is not null and (type <> 'text' or jsonb_typeof(value) = 'string'))
$$;
comment on function tributary.inferred_is_complete(jsonb, text) is 'Whether an inferred column of the type can hold the whole value, so that _extra need not.';

-- The privacy rules under which the stored values of a resource were kept.
create table tributary.privacy_rules (
  resource text primary key,
  statement text not null,
  fields text not null,
  rewritten_rows bigint not null default 0,
  applied_at timestamptz not null default tributary.now(),
  replaced text[] not null default '{}',
  revision bigint not null default 0,
  tables text
);
comment on table tributary.privacy_rules is 'The privacy rules of the configuration (exclude, hash, mask) that the stored values of a resource follow. A change is applied to rows, versions, quarantine and deliveries before the next sync reads.';
comment on column tributary.privacy_rules.resource is 'The path of the resource in the API.';
comment on column tributary.privacy_rules.statement is 'All rules of the resource, also those for fields that no record has had.';
comment on column tributary.privacy_rules.fields is 'JSON: each rule with its pattern.';
comment on column tributary.privacy_rules.rewritten_rows is 'Rows and versions that the latest change of the rules rewrote.';
comment on column tributary.privacy_rules.applied_at is 'When the stored values were made to follow the rules.';
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
