-- What the owner commits, so that a session of the reader can prove that it sees it.
create table tributary.reader_marks (
  mark text primary key default gen_random_uuid()::text,
  at timestamptz not null default tributary.now()
);
comment on table tributary.reader_marks is 'Marks that the owner commits before the reader reads what a decision rests on: a close, an evaluation of invariants, an export, a push. A snapshot of the reader that has the mark has everything that was committed before it. A replica that is behind does not have it yet, and another database never gets it. Marks are removed after a day.';
comment on column tributary.reader_marks.mark is 'Drawn at random, so that no other database has it.';
comment on column tributary.reader_marks.at is 'When the mark was made.';
