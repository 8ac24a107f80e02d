/** What a sync leaves for invariants, without a source: changes in the feed, and checkpoints of completed scans. */
import * as Effect from "effect/Effect"
import { sql } from "../../support/postgres.ts"

export const run = <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
  sql.unsafe<Row>(text, values)

/** A change of each resource of each company. */
export const changed = (companies: ReadonlyArray<number>, resources: ReadonlyArray<string>) =>
  Effect.andThen(
    run(
      `insert into tributary.change_batches (company_id, resource, history, ids, changes, began)
       select c, r, 'erp_history.' || r, '{1}', 1, tributary.now() from unnest($1::bigint[]) c, unnest($2::text[]) r`,
      [companies, resources]
    ),
    run("select tributary.order_changes()")
  )

/** Each resource of each company was read to its end by a scan that began now. */
export const scanned = (companies: ReadonlyArray<number>, resources: ReadonlyArray<string>) =>
  run(
    `insert into tributary.checkpoints (company_id, resource, lane, full_scan_at, updated_at)
     select c, r, 'live', tributary.now(), tributary.now() from unnest($1::bigint[]) c, unnest($2::text[]) r
     on conflict (company_id, resource, lane) do update set full_scan_at = excluded.full_scan_at`,
    [companies, resources]
  )

/** The current violations in words, by rule. */
export const current = Effect.map(
  run<{ line: string }>(
    `select invariant || ' of ' || company_id || ': ' || resource || ' ' || record_id || case when opened_at is null then ' unconfirmed' else '' end as line
       from tributary.violations where ended_at is null order by invariant, company_id, resource, record_id`
  ),
  (rows) => rows.map(({ line }) => line)
)

/** The state of each rule and company. */
export const states = Effect.map(
  run<{ line: string }>(
    `select invariant || ' of ' || company_id || ': ' || state || coalesce(' (' || error || ')', '') as line
       from tributary.invariant_states order by invariant, company_id`
  ),
  (rows) => rows.map(({ line }) => line)
)
