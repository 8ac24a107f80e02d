/** All calls of the control plane, in the order of the documents. */
import * as Schema from "effect/Schema"
import { controlOpenApi } from "./openapi.ts"
import type { ControlRoute } from "./Route.ts"
import { jsonAnswer, jsonOf, route } from "./Route.ts"
import { faultRoutes } from "./routes/faults.ts"
import { recordRoutes } from "./routes/records.ts"
import { scenarioRoutes } from "./routes/scenarios.ts"
import { settingRoutes } from "./routes/settings.ts"
import { stateRoutes } from "./routes/state.ts"
import { tokenRoutes } from "./routes/tokens.ts"
import { trafficRoutes } from "./routes/traffic.ts"
import { snapshotRoutes } from "./routes/worlds.ts"

const openApi = route({
  method: "GET",
  path: "/openapi.json",
  summary: "Describes these calls as OpenAPI 3.1.",
  output: jsonOf(Schema.Record(Schema.String, Schema.Unknown)),
  example: { output: { openapi: "3.1.0" } },
  answer: () => jsonAnswer(controlOpenApi(controlRoutes))
})

export const controlRoutes: ReadonlyArray<ControlRoute> = [
  ...stateRoutes,
  ...tokenRoutes,
  ...settingRoutes,
  ...recordRoutes,
  ...faultRoutes,
  ...trafficRoutes,
  ...snapshotRoutes,
  ...scenarioRoutes,
  openApi
]
