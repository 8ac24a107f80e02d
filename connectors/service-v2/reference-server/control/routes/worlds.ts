/** Control calls for snapshots and isolated worlds. */
import * as Schema from "effect/Schema"
import { printSnapshot } from "../../snapshot/print.ts"
import { printInstant } from "../../time.ts"
import { nameGrammar, pathOf } from "../../worlds/Worlds.ts"
import type { WorldState } from "../../World.ts"
import { field, optional } from "../Input.ts"
import { jsonAnswer, jsonOf, linesOf, route, streamAnswer } from "../Route.ts"

const nameForm = Schema.String.check(Schema.isPattern(nameGrammar))
const nameText = "1 to 64 letters, digits, dots, dashes or underscores, with a letter or digit first"
const named = (description: string) => Schema.Struct({ name: field(nameForm, nameText, description) })

const summaryShown = Schema.Struct({
  name: Schema.NullOr(Schema.String),
  companies: Schema.Array(Schema.Int).annotate({ description: "the companies that have records" }),
  records: Schema.Int.annotate({ description: "the number of current records" }),
  changes: Schema.Int.annotate({ description: "the number of changes in the history" }),
  clock: Schema.NullOr(Schema.String).annotate({ description: "where the clock is stopped; null while it runs" })
})

const summaryOf = (name: string | null, { store, clock }: WorldState) => ({
  name,
  companies: [...new Set(store.tables.map(({ company }) => company))]
    .filter((company) => company > 0)
    .sort((a, b) => a - b),
  records: store.tables.reduce((sum, { size }) => sum + size, 0),
  changes: store.history.length,
  clock: clock.stoppedAt === null ? null : printInstant(clock.stoppedAt)
})

const exampleSummary = { companies: [1, 2], records: 4133, changes: 8201, clock: "2026-03-16T09:00:00.000000Z" }

const saveSnapshot = route({
  method: "POST",
  path: "/snapshots",
  summary: "Keeps the present state in memory under a name.",
  description:
    "Everything but the journal of requests. The snapshot shares the records with the world until one of them is written. All worlds see all snapshots.",
  input: Schema.Struct({ name: optional(nameForm, nameText, "its name; default snapshot-1 and so on") }),
  output: jsonOf(summaryShown, 201),
  example: { input: { name: "before" }, output: { name: "before", ...exampleSummary } },
  errors: ["a snapshot of the name exists"],
  answer: ({ worlds, world, input }) => {
    const name = worlds.save(world, input.name ?? null)
    return jsonAnswer(summaryOf(name, worlds.snapshot(name)), 201)
  }
})

const listSnapshots = route({
  method: "GET",
  path: "/snapshots",
  summary: "Lists the snapshots.",
  output: jsonOf(Schema.Struct({ snapshots: Schema.Array(summaryShown) })),
  example: { output: { snapshots: [{ name: "before", ...exampleSummary }] } },
  answer: ({ worlds }) =>
    jsonAnswer({ snapshots: worlds.snapshotNames().map((name) => summaryOf(name, worlds.snapshot(name))) })
})

const readSnapshot = route({
  method: "GET",
  path: "/snapshots/{name}",
  summary: "Shows a snapshot as NDJSON.",
  description:
    "A line per setting, token, subscription, event, attempt, stored answer and change. `POST /restore` and `--load` read it. It contains the secrets that sign deliveries.",
  parameters: named("the name of the snapshot"),
  output: linesOf(Schema.Record(Schema.String, Schema.Unknown)),
  example: { parameters: { name: "before" }, output: { format: "tributary-reference-server", version: 1 } },
  errors: ["the snapshot does not exist"],
  answer: ({ worlds, parameters }) => streamAnswer(printSnapshot(worlds.snapshot(parameters.name)))
})

const deleteSnapshot = route({
  method: "DELETE",
  path: "/snapshots/{name}",
  summary: "Forgets a snapshot.",
  parameters: named("the name of the snapshot"),
  output: jsonOf(Schema.Struct({ deleted: Schema.Literal(true) })),
  example: { parameters: { name: "before" }, output: { deleted: true } },
  errors: ["the snapshot does not exist"],
  answer: ({ worlds, parameters }) => {
    worlds.forget(parameters.name)
    return jsonAnswer({ deleted: true })
  }
})

const restore = route({
  method: "POST",
  path: "/restore",
  summary: "Restores a snapshot, by its name or from NDJSON.",
  description:
    "The body is `{name}`, or the lines of `GET /snapshots/{name}`. It replaces the whole state. Deliveries under way are cancelled, the journal of requests begins anew. A wrong line is named, and then nothing changes.",
  input: Schema.Struct({ name: field(nameForm, nameText, "the name of the snapshot") }),
  takesLines: true,
  output: jsonOf(summaryShown),
  example: { input: { name: "before" }, output: { name: "before", ...exampleSummary } },
  errors: ["the snapshot does not exist", "a line of the NDJSON cannot be read"],
  answer: ({ worlds, world, input, lines }) => {
    const state = lines === null ? worlds.snapshot(input.name) : worlds.read(lines)
    world.restore(state)
    return jsonAnswer(summaryOf(lines === null ? input.name : null, state))
  }
})

const worldShown = Schema.Struct({
  name: Schema.String,
  path: Schema.String.annotate({ description: "the path before those of its API and its control plane" }),
  baseUrl: Schema.String.annotate({ description: "the base address of its API" }),
  controlUrl: Schema.String.annotate({ description: "the address of its control plane" })
})

const exampleWorld = {
  name: "invoices",
  path: "/worlds/invoices",
  baseUrl: "http://127.0.0.1:8123/worlds/invoices/!/api/v2",
  controlUrl: "http://127.0.0.1:8124/worlds/invoices"
}

const createWorld = route({
  method: "POST",
  path: "/worlds",
  summary: "Makes an isolated world for a test.",
  description:
    "It begins as the snapshot, or as the main world is now. It has its own records, clock, tokens, limits, faults, subscriptions and journal. Every call of this control plane and of the API is below its addresses.",
  input: Schema.Struct({
    name: optional(nameForm, nameText, "its name; default world-1 and so on"),
    from: optional(nameForm, nameText, "the snapshot from which it begins; default: the main world as it is now")
  }),
  output: jsonOf(worldShown, 201),
  example: { input: { name: "invoices", from: "before" }, output: exampleWorld },
  errors: ["a world of the name exists", "the snapshot does not exist"],
  answer: ({ worlds, input, urls }) => {
    const name = worlds.create(input.name ?? null, input.from ?? null)
    return jsonAnswer({ name, path: pathOf(name), ...urls(name) }, 201)
  }
})

const listWorlds = route({
  method: "GET",
  path: "/worlds",
  summary: "Lists the worlds beside the main one.",
  output: jsonOf(Schema.Struct({ worlds: Schema.Array(worldShown) })),
  example: { output: { worlds: [exampleWorld] } },
  answer: ({ worlds, urls }) =>
    jsonAnswer({ worlds: worlds.names().map((name) => ({ name, path: pathOf(name), ...urls(name) })) })
})

const deleteWorld = route({
  method: "DELETE",
  path: "/worlds/{name}",
  summary: "Ends a world.",
  parameters: named("the name of the world"),
  output: jsonOf(Schema.Struct({ deleted: Schema.Literal(true) })),
  example: { parameters: { name: "invoices" }, output: { deleted: true } },
  errors: ["the world does not exist"],
  answer: ({ worlds, parameters }) => {
    worlds.remove(parameters.name)
    return jsonAnswer({ deleted: true })
  }
})

/** Calls of the whole server, which a world does not have. */
export const worldRoutes = [createWorld, listWorlds, deleteWorld]

export const snapshotRoutes = [saveSnapshot, listSnapshots, readSnapshot, restore, ...worldRoutes, deleteSnapshot]
