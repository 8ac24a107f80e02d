-- Postgres inserts the text of a function into a query only where the function is not declared more constant than its
-- text. `extract` of a time is stable. A lease computes one time for each lease of the last minute.
alter function tributary.budget_ms(timestamptz) stable;
