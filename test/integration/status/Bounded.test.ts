/** Questions of the pages and of the metrics that read a bounded number of rows, whatever the tables remember. */
import { assert, describe } from "@effect/vitest"
import * as InboxMetrics from "../../../src/status/InboxMetrics.ts"
import * as Problems from "../../../src/status/Problems.ts"
import * as Processes from "../../../src/status/Processes.ts"
import * as Webhooks from "../../../src/status/Webhooks.ts"
import { lastFullScanStatement } from "../../../src/verify/Explain.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

const stored = 6_000

const rows: ReadonlyArray<string> = [
  "insert into tributary.companies (company, company_id) values ('north', 1)",
  // One resource never succeeded; the others are read well once a minute, after one full scan.
  `insert into tributary.runs (company_id, resource, kind, status, fence, started_at, finished_at)
   select 1, case when n % 2 = 0 then 'broken' else 'good' || n % 6 end, case when n > ${stored} - 12 then 'full' else 'incremental' end,
          case when n % 2 = 0 then 'failed' else 'done' end, 1, at, at
     from generate_series(${stored}, 1, -1) n, lateral (select tributary.now() - n * interval '1 minute' as at) t`,
  `insert into tributary.processes (process_id, companies, started_at, heartbeat_at, stopped_at)
   select 'p' || n, '{north}', at, at, case when n % 2 = 0 then at end
     from generate_series(1, ${stored}) n, lateral (select tributary.now() - n * interval '10 minutes' as at) t`,
  `insert into tributary.inbox (company, event_id, event_type, sent_at, body, state, resolved_at)
   select 'north', 'e' || n, 'things.updated', at, '', 'done', at
     from generate_series(${stored}, 1, -1) n, lateral (select tributary.now() - n * interval '2 minutes' as at) t`,
  `insert into tributary.delivery_gaps (company, resource, cause, detail, closed_at)
   select 'north', 'things', 'subscription_inactive', '', tributary.now() - n * interval '1 hour' from generate_series(1, ${stored}) n`,
  `insert into tributary.invariants (name, severity, statement, comment, resources, query)
   values ('sums', 'critical', 'lines add up', '', '{things}', 'select 1')`,
  `insert into tributary.invariant_states (invariant, company_id, state)
   select 'sums', n, case when n % 2 = 0 then 'holds' else 'unconfirmed' end from generate_series(1, ${stored}) n`,
  `insert into tributary.checkpoints (company_id, resource, updated_at)
   select company_id, resource, max(started_at) from tributary.runs group by 1, 2`,
  "analyze"
]

interface Plan {
  readonly "Relation Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly Plans?: ReadonlyArray<Plan>
}

/** The rows that a statement reads from tables and indexes. */
const rowsRead = (plan: Plan): number =>
  (plan["Relation Name"] === undefined
    ? 0
    : (plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)) * plan["Actual Loops"]) +
  (plan.Plans ?? []).reduce((sum, one) => sum + rowsRead(one), 0)

describe("bounded questions", () => {
  const test = testWith(layerWarehouse)

  test("read few rows of tables with many", function* () {
    for (const statement of rows) yield* sql.unsafe(statement)
    const statements: ReadonlyArray<readonly [text: string, parameters: ReadonlyArray<unknown>, rowsMax: number]> = [
      ["select since from tributary.resource_problems where company = 'north' and subject = 'broken'", [], 1_060],
      [Processes.processesStatement.text, [], 10],
      [Processes.listStatement.text, [null], 320],
      [Processes.listStatement.text, ["p77"], 10],
      [Webhooks.closedGapsStatement.text, [["north"]], 40],
      [InboxMetrics.readStatement.text, ['["north"]'], 10],
      // The processes of the last day.
      [Problems.menuStatement.text, [], 160],
      [lastFullScanStatement.text, [1, "good1", null], 10]
    ]
    for (const [text, parameters, rowsMax] of statements) {
      const [row] = yield* sql.unsafe<{ readonly "QUERY PLAN": ReadonlyArray<{ readonly Plan: Plan }> }>(
        `explain (analyze, format json) ${text}`,
        parameters
      )
      assert.isAtMost(rowsRead(row!["QUERY PLAN"][0]!.Plan), rowsMax, text)
    }
  })

  test("find when a resource began to fail", function* () {
    const runs = [
      ["never", "full", "failed"],
      ["since", "incremental", "failed"],
      ["since", "incremental", "done"],
      ["since", "incremental", "abandoned"],
      ["since", "incremental", "failed"],
      ["since", "incremental", "failed"],
      ["quarantined", "incremental", "failed"],
      ["quarantined", "incremental", "quarantined"],
      ["quarantined", "incremental", "failed"],
      ["children", "full", "done"],
      ["children", "children", "failed"],
      ["children", "children", "done"],
      ["children", "children", "failed"],
      ["well", "incremental", "failed"],
      ["well", "incremental", "done"]
    ]
    yield* sql`insert into tributary.runs (company_id, resource, kind, status, fence, started_at, finished_at)
        select 1, r ->> 0, r ->> 1, r ->> 2, 1, to_timestamp(n), to_timestamp(n)
          from jsonb_array_elements(${JSON.stringify(runs)}::jsonb) with ordinality as x(r, n) order by n`
    yield* sql`insert into tributary.companies (company, company_id) values ('north', 1)`
    yield* sql`insert into tributary.checkpoints (company_id, resource, updated_at)
        select company_id, resource, max(started_at) from tributary.runs group by 1, 2`
    const found = yield* Problems.read(["north"])
    assert.deepStrictEqual(
      found
        .filter(({ kind }) => kind === "failing")
        .map(({ subject, since }) => `${subject} ${since!.getTime() / 1000}`),
      ["never 1", "since 5", "quarantined 9", "children 13"]
    )
  })
})
