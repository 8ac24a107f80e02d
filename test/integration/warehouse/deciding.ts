/** Every reading of the reader on which a decision rests, and a role that reads as DATABASE_READER_URL says. */
import { randomUUID } from "node:crypto"
import { Effect, Redacted, Stream } from "effect"
import * as Snapshot from "../../../src/close/Snapshot.ts"
import * as Export from "../../../src/export/Export.ts"
import * as QueryInput from "../../../src/outbox/input/QueryInput.ts"
import { ReaderOptions } from "../../../src/warehouse/Reader.ts"
import * as SourceRecords from "../../../src/warehouse/SourceRecords.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { run } from "../invariants/landings.ts"
import { temporaryFolder } from "../../support/servers.ts"

/** A role that may read everything, in the database of the session. It ends with the scope. */
export const readerRole = Effect.acquireRelease(
  Effect.gen(function* () {
    const name = `reader_${randomUUID().replaceAll("-", "")}`
    yield* run(`create role ${name} login password 'reads'`)
    yield* run(`grant pg_read_all_data to ${name}`)
    return name
  }),
  (name) => Effect.orDie(run(`drop role ${name}`))
)

/** Reads by this role from the database of a URL. */
export const readingFrom =
  (url: string, role: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) => {
    const reader = new URL(url)
    reader.username = role
    reader.password = "reads"
    return Effect.provideService(effect, ReaderOptions, {
      url: Redacted.make(reader.href),
      datasets: datasetsDefault
    })
  }

const messageOf = <A, E extends { readonly message: string }, R>(read: Effect.Effect<A, E, R>) =>
  Effect.match(read, { onFailure: ({ message }) => message, onSuccess: () => null })

/** The message with which each of them fails; null where it read. */
export const refusals = Effect.gen(function* () {
  const exported = yield* temporaryFolder
  return {
    close: yield* messageOf(Effect.scoped(Snapshot.open(1n))),
    export: yield* messageOf(
      Export.run({
        folder: exported,
        format: "ndjson",
        datasets: datasetsDefault,
        history: false,
        companyId: null,
        since: null,
        tables: ["things"]
      })
    ),
    push: yield* messageOf(Stream.runDrain(QueryInput.read("select id from erp.things"))),
    rehearsal: yield* messageOf(Effect.scoped(SourceRecords.open()))
  }
})
