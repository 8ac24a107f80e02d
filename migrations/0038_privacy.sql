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
comment on column tributary.privacy_rules.fields is 'JSON: each rule with its pattern.';
comment on column tributary.privacy_rules.rewritten_rows is 'Rows and versions that the latest change of the rules rewrote.';

-- What tributary forget removed.
create table tributary.forgotten_records (
  id bigint generated always as identity primary key,
  company_id bigint not null,
  resource text not null,
  record_id bigint not null,
  performed_by text not null,
  performed_at timestamptz not null default tributary.now(),
  row_counts text not null
);
comment on table tributary.forgotten_records is 'Receipts of tributary forget: whose values were removed from which versions, by whom and when. The values are not in it.';
comment on column tributary.forgotten_records.id is 'Number of the receipt.';
comment on column tributary.forgotten_records.company_id is 'The number of the company.';
comment on column tributary.forgotten_records.record_id is 'The number of the record.';
comment on column tributary.forgotten_records.performed_by is 'The user and the machine of the command.';
comment on column tributary.forgotten_records.performed_at is 'When it was done.';
comment on column tributary.forgotten_records.resource is 'The path of the resource in the API.';
comment on column tributary.forgotten_records.row_counts is 'JSON: changed rows by table.';
create index forgotten_records_by_record on tributary.forgotten_records (resource, record_id);
