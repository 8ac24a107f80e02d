/** The lookup by externalid at a source that compares texts loosely. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ConnectorShape, SourceRecord } from "../../src/connector/Connector.ts"
import { findByExternalid } from "../../src/outbox/SourceLookup.ts"
import { resourceOf } from "./support.ts"

const resource = resourceOf("salesmen")

const record = (id: string, externalid: string): SourceRecord => ({
  id,
  columns: resource.fields.map(({ name }) => (name === "id" ? id : name === "externalid" ? externalid : null)),
  partial: false,
  customFields: null,
  extra: null
})

/** A source whose filter returns these records for any request. */
const answering = (...records: ReadonlyArray<SourceRecord>) =>
  ({
    page: () =>
      Effect.succeed({
        records,
        rejected: [],
        next: null,
        syncedThrough: null,
        beganAt: 0,
        attempts: 1,
        bytes: 0,
        source: ""
      })
  }) as unknown as ConnectorShape

const idsOf = (externalid: string, ...records: ReadonlyArray<SourceRecord>) =>
  Effect.map(findByExternalid(answering(...records), resource, externalid), (matches) =>
    matches.map((one) => one.record?.id)
  )

describe("the lookup by externalid", () => {
  it.effect("returns exact matches, else records that differ only in case, blanks or Unicode form", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* idsOf("crm-1", record("1", "CRM-1"), record("2", "crm-1")), ["2"])
      assert.deepStrictEqual(
        yield* idsOf("crm-1", record("1", "CRM-1"), record("3", " crm-1"), record("4", "crm-10")),
        ["1", "3"]
      )
      assert.deepStrictEqual(yield* idsOf("Caf\u00e9", record("1", "Cafe\u0301")), ["1"])
      assert.deepStrictEqual(yield* idsOf("crm-1", record("4", "crm-10")), [])
    })
  )
})
