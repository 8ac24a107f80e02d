-- An event that failed names the run that failed to read its record.
comment on column tributary.inbox.run_id is 'The run that read its record, or failed to; null where none did.';
