-- The privacy rules under which the stored values of a resource were kept.
create table tributary.privacy_rules (
  resource text primary key,
  statement text not null,
  fields text not null,
  rewritten_rows bigint not null default 0,
  applied_at timestamptz not null default tributary.now()
);
comment on table tributary.privacy_rules is 'The privacy rules of the configuration (exclude, hash, mask) that the stored values of a resource follow. A change is applied to rows, versions, quarantine and deliveries before the next sync reads.';
comment on column tributary.privacy_rules.resource is 'The path of the resource in the API.';
comment on column tributary.privacy_rules.applied_at is 'When the stored values were made to follow the rules.';
comment on column tributary.privacy_rules.statement is 'All rules of the resource, also those for fields that no record has had.';
comment on column tributary.privacy_rules.fields is 'JSON: the rule of each column, by the name of its field.';
comment on column tributary.privacy_rules.rewritten_rows is 'Rows and versions that the latest change of the rules rewrote.';
