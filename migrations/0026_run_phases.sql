-- The phases of a run, for its page.
alter table tributary.runs add column phases json;
comment on column tributary.runs.phases is 'Where the time of the run went, written at its end: took_ms; for budget (waiting for a permit), request, retry (the pause before one) and landing the ms, times and longest_ms, and the ms in each slot of slot_ms; and the answers of the source by kind with their requests, retries and retry_ms. Null for a run whose process was killed, and for quiet runs.';
