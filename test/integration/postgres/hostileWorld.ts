/** An installation whose roles have unusual settings. */
import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Grants from "../../../src/warehouse/Grants.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "../../../src/warehouse/Model.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { makeHostile } from "../../support/hostileRole.ts"
import { makeWorld } from "../../support/world.ts"

/** An installation with a hostile owner and a hostile reader. `hostile` is the environment of their commands. */
export const makeHostileWorld = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  world.configure("budget: { requests_per_minute: unlimited }\nsync: { custom_fields: true }\n")
  const administer = <A, E>(work: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
    Effect.flatMap(SqlClient.SqlClient, work).pipe(
      Effect.provide(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(world.databaseUrl)))))
    )
  const database = new URL(world.databaseUrl).pathname.slice(1)
  const role = `odd_${randomUUID().slice(0, 8)}`
  const names = { owner: role, loader: role, reader: `${role}_reader` }
  const all = {
    ...datasetsDefault,
    models: modelsDatasetDefault,
    asOfModels: asOfModelsDataset,
    control: Grants.controlDataset
  }
  const roles = [role, names.reader]
  yield* Effect.acquireRelease(
    administer((sql) =>
      Effect.gen(function* () {
        for (const one of roles) yield* sql.unsafe(`create role ${one} login password 'not-a-secret'`)
        yield* sql.unsafe(`grant create, temporary on database ${database} to ${role}`)
        yield* makeHostile(sql, roles)
      })
    ),
    () =>
      Effect.orDie(
        administer((sql) =>
          Effect.forEach([...roles].reverse(), (one) =>
            Effect.andThen(sql.unsafe(`drop owned by ${one} cascade`), sql.unsafe(`drop role ${one}`))
          )
        )
      )
  )
  const urlOf = (user: string) => {
    const url = new URL(world.databaseUrl)
    url.username = user
    url.password = "not-a-secret"
    return url.href
  }
  const hostile = { DATABASE_URL: urlOf(role), DATABASE_READER_URL: urlOf(names.reader) }
  const succeeds = Effect.fnUntraced(function* (args: ReadonlyArray<string>, env = {}, codes = [0]) {
    const done = yield* world.run(args, env)
    assert.include(codes, done.code, `${args.join(" ")}\n${done.stdout}${done.stderr}`)
    return done.stdout
  })
  /** Lets the reader read, once a sync has created the tables. */
  const grant = administer((sql) => Effect.forEach(Grants.statements(all, names), (statement) => sql.unsafe(statement)))
  return { world, hostile, succeeds, grant }
})
