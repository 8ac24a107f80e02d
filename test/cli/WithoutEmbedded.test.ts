/** An installation without the optional packages, as the image is: nothing recommends what is impossible there. */
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { commandFailed, requireWarehouse } from "../../src/cli/Command.ts"
import { about } from "../../src/cli/doctor/Finding.ts"
import * as Machine from "../../src/cli/doctor/Machine.ts"
import { loadSettings } from "../../src/cli/doctor/Settings.ts"
import { Source } from "../../src/cli/Source.ts"
import * as Targets from "../../src/cli/Targets.ts"
import * as Warehouse from "../../src/cli/Warehouse.ts"
import { load } from "../../src/configuration/Configuration.ts"
import { test } from "../support/suite.ts"

/** Until the end of the scope there are no binaries for this machine. */
const withoutBinaries = Effect.acquireRelease(
  Effect.sync(() => {
    const { arch } = process
    Object.defineProperty(process, "arch", { value: "none" })
    return arch
  }),
  (arch) => Effect.sync(() => Object.defineProperty(process, "arch", { value: arch }))
)

const source = Layer.mock(Source)({ catalogue: serviceV2 })

describe("without the embedded Postgres and without DATABASE_URL", () => {
  test("a command and serve end with 2, and say to set DATABASE_URL", function* () {
    const settings = yield* load({}, { TRIBUTARY_HOME: "/nowhere" })
    yield* Warehouse.requireServer(settings)
    yield* withoutBinaries
    for (const required of [Warehouse.requireServer(settings), requireWarehouse(settings)]) {
      const { code, message } = commandFailed(yield* Effect.flip(required))
      assert.strictEqual(code, 2)
      assert.include(message, "set DATABASE_URL")
      assert.notInclude(message, "npm")
    }
    const named = yield* load({}, { DATABASE_URL: "postgres://u:p@127.0.0.1/d" })
    yield* Warehouse.requireServer(named)
    const wrong = yield* load({}, { DATABASE_URL: "mysql://u:p@127.0.0.1/d" })
    assert.strictEqual(commandFailed(yield* Effect.flip(Warehouse.requireServer(wrong))).code, 2)
  })

  test("the demo is recommended, and the disk examined, only with it", function* () {
    const settings = yield* load({}, {})
    const shown = Effect.gen(function* () {
      const { message } = yield* Effect.flip(Targets.check(settings, { companies: [] }, false))
      const { value } = yield* loadSettings(null)
      const disk = yield* Machine.disk(about("disk"), settings)
      return { recommended: [message, value?.noCompany.remedy ?? ""].map((text) => text.includes("demo")), disk }
    }).pipe(Effect.provide(source))
    const installed = yield* shown
    assert.deepStrictEqual(installed.recommended, [true, true])
    assert.isNotEmpty(installed.disk)
    yield* withoutBinaries
    assert.deepStrictEqual(yield* shown, { recommended: [false, false], disk: [] })
  })
})
