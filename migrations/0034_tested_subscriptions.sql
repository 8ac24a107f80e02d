-- The result of the last test delivery of a subscription: a failed one outweighs what was delivered before it.
alter table tributary.subscriptions
  add column tested_at timestamptz,
  add column test_error text,
  add column tested_after timestamptz;
comment on column tributary.subscriptions.tested_at is 'When its last test delivery was sent; null before the first.';
comment on column tributary.subscriptions.test_error is 'Why the last test delivery did not arrive; null where it arrived.';
comment on column tributary.subscriptions.tested_after is 'The last delivery before that test, by the source''s clock. A later one proves that deliveries arrive again.';
