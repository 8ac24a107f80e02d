/** The sandbox of this API: records are put into the reference server by its control plane, without rules and events. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Sandbox } from "../../../src/connector/Sandbox.ts"
import { serviceV2 } from "../catalogue/index.ts"
import * as ControlPlane from "./ControlPlane.ts"

/** Records of one call to the control plane. */
const recordsPerCall = 1000

const Id = Schema.fromJsonString(Schema.Struct({ id: Schema.Int }))
const idOf = (what: string, record: string) => Effect.map(ControlPlane.decoded(what, Id, record), ({ id }) => id)

export const sandbox: Sandbox = {
  replace: Effect.fnUntraced(function* (reference, companyId, resource, records) {
    if (!serviceV2.resources.has(resource)) return null
    const company = Number(companyId)
    const before = yield* ControlPlane.state(reference, companyId, resource)
    const surplus = new Set(yield* Effect.forEach(before, (record) => idOf(`GET /state of ${resource}`, record)))
    let count = 0
    yield* Stream.runForEachArray(Stream.rechunk(records, recordsPerCall), (texts) =>
      Effect.gen(function* () {
        const body = `{"company":${company},"resource":${JSON.stringify(resource)},"records":[${texts.join(",")}]}`
        yield* ControlPlane.call(reference, "POST", "/records", body)
        for (const text of texts) surplus.delete(yield* idOf(`a record of ${resource}`, text))
        count += texts.length
      })
    )
    for (const id of surplus)
      yield* ControlPlane.call(reference, "POST", "/remove", JSON.stringify({ company, resource, id }))
    return count
  }),
  issueToken: (reference, companyId) => ControlPlane.issueToken(reference, companyId, "sandbox")
}
