/** A warehouse with a table of things, and rules about them, for tests of their evaluation. */
import { Duration, Effect } from "effect"
import { evaluateOnce } from "../../../src/invariants/Evaluate.ts"
import type { Invariant } from "../../../src/invariants/Invariant.ts"
import { clockIs, layerWarehouse } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"
import { changed, run, scanned } from "./landings.ts"

export const test = testWith(layerWarehouse, 60_000)

export const ruleOf = (name: string, sql: string, change: Partial<Invariant> = {}): Invariant => ({
  name,
  severity: "warning",
  statement: `${name} holds.`,
  comment: "",
  resources: ["things"],
  sql,
  ...change
})

export const priced = ruleOf(
  "price_is_positive",
  `select _company_id as company_id, 'things' as resource, id, 'the price is ' || price as detail from {{things}} where price <= 0`,
  { severity: "critical" }
)

export const evaluate = (
  invariants: ReadonlyArray<Invariant>,
  {
    isNow = true,
    timeout = Duration.seconds(30)
  }: { readonly isNow?: boolean; readonly timeout?: Duration.Duration } = {}
) => evaluateOnce({ invariants, current: "erp", timeout }, { isNow })

/** A table with ten things of company 1, which was read to its end. */
export const prepare = Effect.gen(function* () {
  yield* run("create table public.test_clock (at timestamptz not null)")
  yield* run("insert into public.test_clock values ('2026-11-20T12:00:00Z')")
  yield* run(clockIs("(select at from public.test_clock)"))
  yield* run("create schema erp")
  yield* run("create table erp.things (_company_id bigint, id bigint, price numeric, primary key (_company_id, id))")
  yield* run("insert into erp.things select 1, n, n from generate_series(1, 10) n")
  yield* run("insert into tributary.companies (company, company_id) values ('north', 1)")
  yield* scanned([1], ["things"])
  yield* changed([1], ["things"])
})

export const pass = (seconds: number) => run(`update public.test_clock set at = at + interval '${seconds} seconds'`)
