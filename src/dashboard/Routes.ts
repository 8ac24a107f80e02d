/** The routes of all pages and actions. */
import type { Route } from "./Page.ts"
import * as Actions from "./pages/Actions.ts"
import * as Budget from "./pages/Budget.ts"
import * as Endpoints from "./pages/Endpoints.ts"
import * as Invariants from "./pages/Invariants.ts"
import * as Outbox from "./pages/Outbox.ts"
import * as Overview from "./pages/Overview.ts"
import * as Processes from "./pages/Processes.ts"
import * as Quarantine from "./pages/Quarantine.ts"
import * as Records from "./pages/Records.ts"
import * as Resource from "./pages/Resource.ts"
import * as Resources from "./pages/Resources.ts"
import * as Runs from "./pages/Runs.ts"
import * as Webhooks from "./pages/Webhooks.ts"

export const routes: ReadonlyArray<Route> = [
  Overview,
  Resources,
  Resource,
  Runs,
  Actions,
  Budget,
  Webhooks,
  Outbox,
  Endpoints,
  Quarantine,
  Invariants,
  Records,
  Processes
].flatMap(({ routes }) => routes)
