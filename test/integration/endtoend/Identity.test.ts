/** A company whose source becomes another one: it is refused until a person accepts it, and pushes pause then. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SourceGuard from "../../../src/sync/SourceGuard.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { scripted } from "../../support/tiny.ts"
import { suite } from "../../support/suite.ts"

/** The message with which a source with this number and address is refused; empty where it is accepted. */
const refusal = Effect.fnUntraced(function* (companyId: bigint, address: string, acceptsNewSource = false) {
  const { connector } = scripted(companyId, () => ({ records: [], rejected: [], syncedThrough: null, next: null }))
  const source = { ...connector, source: { address, settings: {} } }
  const { identify } = yield* SourceGuard.guarded("north", source, acceptsNewSource)
  return yield* Effect.match(identify, { onFailure: ({ message }) => message, onSuccess: () => "" })
})

suite("a company whose source is another one", layerWarehouse, (test) => {
  test("is refused by its number and by its address, until a person accepts it", function* () {
    const [one, two] = ["https://one/api", "https://two/api"] as const
    const reason = execute<{ reason: string | null }>("select pause_reason as reason from tributary.installation").pipe(
      Effect.map(([row]) => row!.reason)
    )
    yield* SourceGuard.saveCompanyId("north", 1n)
    yield* execute(`insert into tributary.sources (company_id, address, since) values (1, '${one}', tributary.now())`)
    yield* execute("insert into tributary.outbox (company, resource) values ('north', 'things')")
    assert.strictEqual(yield* refusal(1n, one), "")
    assert.match(yield* refusal(2n, one), /had the number 1, and its token is now of company 2/)
    assert.match(yield* refusal(1n, two), /https:\/\/one\/api.*https:\/\/two\/api/)
    assert.isNull(yield* reason)
    assert.strictEqual(yield* refusal(1n, two, true), "")
    assert.strictEqual(yield* refusal(1n, two), "")
    assert.match(yield* refusal(1n, one), /https:\/\/two\/api.*https:\/\/one\/api/)
    assert.match((yield* reason)!, /company north has a new source/)
  })
})
