/** All calls of the control plane, in the order of the documents. */
import type { ControlRoute } from "./Route.ts"
import { faultRoutes } from "./routes/faults.ts"
import { recordRoutes } from "./routes/records.ts"
import { settingRoutes } from "./routes/settings.ts"
import { stateRoutes } from "./routes/state.ts"
import { tokenRoutes } from "./routes/tokens.ts"
import { trafficRoutes } from "./routes/traffic.ts"
import { snapshotRoutes, worldRoutes } from "./routes/worlds.ts"

export const controlRoutes: ReadonlyArray<ControlRoute> = [
  ...stateRoutes,
  ...tokenRoutes,
  ...settingRoutes,
  ...recordRoutes,
  ...faultRoutes,
  ...trafficRoutes,
  ...snapshotRoutes,
  ...worldRoutes
]
