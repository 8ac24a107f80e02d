/**
 * A company that moves to another warehouse by a command that is killed with -9 at each of its steps: the move can be
 * repeated or undone, and the company is never active in both warehouses. A step is a statement of the command.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { never, openTap } from "../../support/tap.ts"
import { change, makeWarehouses, move, rowsBehind, succeed, type Warehouses } from "./warehouses.ts"
import { untilSeen } from "../../support/reference.ts"
import { liveTest } from "../../support/live.ts"

type Side = "from" | "to"
type State = ReadonlyArray<"active" | "leaving" | "arriving">

/**
 * The command is killed before the statement goes to its database; a second one is expected after the first. Then the
 * company has these states in both warehouses.
 */
type Step = readonly [name: string, side: Side, statements: ReadonlyArray<RegExp>, from: State, to: State]

const given = /delete from tributary\.company_settings where company = \$1 and move_id/
const deletion = /delete_company_rows/
const copy = /insert into "tributary"\."company_settings"/
const commit = /^commit$/i
const steps: ReadonlyArray<Step> = [
  ["before the company is stopped", "from", [/set move_state = 'leaving'/], ["active"], []],
  ["while the rows are copied", "to", [copy], ["leaving"], []],
  ["before the copy is committed", "to", [copy, commit], ["leaving"], []],
  ["before the rows are deleted", "from", [deletion], ["leaving"], ["arriving"]],
  ["before the company is given away", "from", [deletion, commit], ["leaving"], ["arriving"]],
  ["before the settings are deleted", "from", [given], ["leaving"], ["arriving"]],
  ["before the company is active", "to", [/set move_id = null, move_state = null/], [], ["arriving"]]
]

const states = ({ from, to }: Warehouses) =>
  Effect.all(
    [from, to].map((on) =>
      Effect.map(
        on.query<{ state: "leaving" | "arriving" | null }>(
          "select move_state as state from tributary.company_settings"
        ),
        (rows): State => rows.map(({ state }) => state ?? "active")
      )
    )
  )

liveTest(
  "tributary company move is repeated or undone after a kill with -9 at each step; then the company moves back",
  function* () {
    const warehouses = yield* makeWarehouses
    const { from, to, run, start, differences, world } = warehouses
    succeed(yield* run(to, ["schema", "apply"]))
    const tapOf = (databaseUrl: string) =>
      Effect.acquireRelease(
        Effect.promise(() => openTap({ baseUrl: world.reference.baseUrl, databaseUrl })),
        (one) => Effect.promise(() => one.close())
      )
    const taps = { from: yield* tapOf(from.url), to: yield* tapOf(to.url) }
    const killAt = Effect.fnUntraced(function* ([name, side, statements, ...expected]: Step) {
      const left = [...statements]
      let kill = () => {}
      taps[side === "from" ? "to" : "from"].watch(() => {})
      taps[side].watch((moment) => {
        if (moment.kind !== "message" || left[0]?.test(moment.text) !== true) return
        left.shift()
        if (left.length > 0) return
        kill()
        return never
      })
      const command = start({ url: taps.from.databaseUrl }, move, { OTHER: taps.to.databaseUrl })
      kill = () => command.child.kill("SIGKILL")
      const { signal, stderr } = yield* Effect.promise(() => command.done)
      assert.strictEqual(signal, "SIGKILL", `${name}: ${stderr}`)
      // The next command is refused while the server still has sessions of the killed one.
      for (const on of [from, to])
        yield* untilSeen(
          "the sessions of the killed command end",
          on.count("pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"),
          (sessions) => sessions === 0
        )
      assert.deepStrictEqual<ReadonlyArray<State>>(yield* states(warehouses), expected, name)
    })
    const undo = Effect.gen(function* () {
      succeed(yield* run(from, ["company", "resume", "south"]))
      yield* change(warehouses, "Changed after the move was undone")
      succeed(yield* run(from, ["sync", "--company", "south"]))
      assert.deepStrictEqual(yield* differences(from), [])
    })

    for (const step of steps.slice(0, 3)) yield* killAt(step)
    assert.deepStrictEqual(yield* rowsBehind(to), [], "the copy is undone")
    const refused = yield* run(from, ["sync", "--company", "south"])
    assert.strictEqual(refused.code, 2, refused.stderr)
    yield* undo

    // The copy of an earlier attempt is replaced.
    for (const step of steps.slice(3, 5)) yield* killAt(step)
    assert.strictEqual((yield* run(to, ["sync", "--company", "south"])).code, 2)
    yield* undo

    for (const step of steps.slice(5)) yield* killAt(step)
    assert.isTrue((JSON.parse(succeed(yield* run(from, move)).stdout) as { isNew: boolean }).isNew)
    assert.deepStrictEqual(yield* states(warehouses), [[], ["active"]])
    assert.deepStrictEqual(yield* rowsBehind(from), [])
    assert.deepStrictEqual(yield* differences(to), [])

    const back = Effect.map(run(to, move, { OTHER: from.url }), succeed)
    yield* back
    assert.isFalse((JSON.parse((yield* back).stdout) as { isNew: boolean }).isNew)
    assert.deepStrictEqual(yield* states(warehouses), [["active"], []])
    yield* change(warehouses, "Changed after it came back")
    succeed(yield* run(from, ["sync", "--company", "south"]))
    assert.deepStrictEqual(yield* differences(from), [])
    assert.strictEqual(
      yield* from.count("tributary.runs where company_id = 2 and resource = 'customers' and kind = 'full'"),
      1
    )
  }
)
