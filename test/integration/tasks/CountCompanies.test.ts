/** The counted states of companies: they are those of their resources, and change when these change. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import * as CompanyStates from "../../../src/status/CompanyStates.ts"
import * as Resources from "../../../src/status/Resources.ts"
import * as CountCompanies from "../../../src/tasks/CountCompanies.ts"
import { seed, shownCompany } from "../../support/pages.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

const test = testWith(layerWarehouse)
const names = ["north", "south", "west"]
const countAll = Effect.gen(function* () {
  while ((yield* CountCompanies.countDue()).some(({ isNew }) => isNew));
})
const stateOf = (company: string) =>
  Effect.map(CompanyStates.list(names, { ...CompanyStates.anyCompany, text: company }, null, 1), ([one]) => one!)

describe("the states of companies", () => {
  test("count each resource once, by the state that the page of the company shows", function* () {
    const resources = Array.from({ length: 26 }, (_, index) => `r${index + 1}`)
    yield* seed([["north", 7]], resources, 26)
    yield* execute("insert into tributary.companies (company, company_id) values ('south', 8)")
    yield* countAll
    const states = yield* Resources.read([shownCompany("north", 7n)])
    const inState = (state: Resources.HealthState) => states.filter(({ health }) => health.state === state).length
    const counted = yield* stateOf("north")
    assert.deepInclude(counted, {
      state: "failing",
      resources: 26,
      failing: inState("failing"),
      late: inState("late"),
      never_synced: inState("never-synced"),
      blocked: inState("blocked"),
      paused: inState("paused"),
      fresh: inState("fresh") + inState("quarantine"),
      quarantined: 1,
      error: "the service failed (500) <script>alert(1)</script>",
      remedy: "report the request id"
    })
    assert.isAbove(counted.failing, 0)
    assert.isAbove(counted.late, 0)
    // A company without tasks and runs has no state to show but this.
    assert.deepInclude(yield* stateOf("south"), { state: "never-synced", resources: 0, worstResource: null })
  })

  test("are counted again after a failure, a dead letter, a recovery, and when a target has passed", function* () {
    yield* execute("insert into tributary.companies (company, company_id) values ('west', 9)")
    yield* execute(
      `insert into tributary.tasks (company, resource, kind, freshness_target_ms, status, started_at, finished_at)
         values ('west', 'a', 'sync', 3600000, 'done', tributary.now(), tributary.now())`
    )
    yield* execute(
      `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
         values (9, 'a', 'incremental', 'live', 'done', 1, tributary.now(), tributary.now())`
    )
    yield* countAll
    assert.strictEqual((yield* stateOf("west")).state, "fresh")
    const dueNow = Effect.map(CountCompanies.countDue(), (due) => due.some(({ company }) => company === "west"))
    assert.isFalse(yield* dueNow, "nothing changed")

    yield* execute(
      `insert into tributary.inbox (company, event_id, event_type, sent_at, body, state)
         values ('west', 'e1', 'x', tributary.now(), '', 'dead_letter')`
    )
    assert.isTrue(yield* dueNow)
    assert.deepInclude(yield* stateOf("west"), { state: "attention", dead_letters: 1 })

    yield* execute(
      `update tributary.tasks set status = 'failed', failures = 1, error = 'no answer', finished_at = tributary.now(),
                updated_at = tributary.now() where company = 'west'`
    )
    assert.isTrue(yield* dueNow)
    assert.deepInclude(yield* stateOf("west"), { state: "failing", worstResource: "a", error: "no answer" })

    yield* execute(
      "update tributary.tasks set status = 'done', failures = 0, finished_at = started_at where company = 'west'"
    )
    yield* execute("delete from tributary.inbox where company = 'west'")
    assert.isTrue(yield* dueNow)
    assert.strictEqual((yield* stateOf("west")).state, "fresh")

    yield* execute("update tributary.runs set started_at = started_at - interval '2 hours' where company_id = 9")
    yield* execute("update tributary.company_states set late_at = tributary.now() where company = 'west'")
    assert.isTrue(yield* dueNow)
    const late = yield* stateOf("west")
    assert.deepInclude(late, { state: "late", late: 1, fresh: 0 })
    assert.approximately(late.lateness, 2, 0.1)
  })

  test("are listed part by part, the worst first, and leave out companies that are not asked for", function* () {
    yield* seed([["north", 7]], ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "failing"], 11)
    yield* seed([["west", 9]], ["a", "b", "c", "d", "e", "f", "late"], 7)
    yield* execute("insert into tributary.companies (company, company_id) values ('south', 8)")
    yield* countAll
    const any = CompanyStates.anyCompany
    const first = yield* CompanyStates.list(names, any, null, 2)
    const rest = yield* CompanyStates.list(names, any, CompanyStates.placeOf(first.at(-1)!, "worst"), 2)
    assertEach([...first, ...rest], ({ company, state }) => `${company} ${state}`, [
      "north failing",
      "west late",
      "south never-synced"
    ])
    const { byState, uncounted, companies } = yield* CompanyStates.readSummary(["south", "unknown"])
    assert.deepInclude(
      { ...byState, uncounted, companies },
      { "never-synced": 1, failing: 0, uncounted: 1, companies: 2 }
    )
  })
})
