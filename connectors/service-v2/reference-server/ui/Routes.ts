/** The routes of all pages and actions, and the menu. */
import type { Route, Section } from "./Page.ts"
import { root } from "./Page.ts"
import * as Clock from "./pages/Clock.ts"
import * as Deliveries from "./pages/Deliveries.ts"
import * as Facts from "./pages/Facts.ts"
import * as Faults from "./pages/Faults.ts"
import * as Records from "./pages/Records.ts"
import * as Requests from "./pages/Requests.ts"
import * as Scenarios from "./pages/Scenarios.ts"
import * as Settings from "./pages/Settings.ts"
import * as Subscriptions from "./pages/Subscriptions.ts"
import * as Tokens from "./pages/Tokens.ts"

export const menu: ReadonlyArray<readonly [section: Section, path: string, text: string]> = [
  ["requests", `${root}/`, "Requests"],
  ["records", `${root}/records`, "Records"],
  ["tokens", `${root}/tokens`, "Tokens"],
  ["subscriptions", `${root}/subscriptions`, "Subscriptions"],
  ["deliveries", `${root}/deliveries`, "Deliveries"],
  ["clock", `${root}/clock`, "Clock"],
  ["faults", `${root}/faults`, "Faults"],
  ["settings", `${root}/settings`, "Settings"],
  ["scenarios", `${root}/scenarios`, "Scenarios"],
  ["facts", `${root}/facts`, "Facts"]
]

export const routes: ReadonlyArray<Route> = [
  Requests,
  Records,
  Tokens,
  Subscriptions,
  Deliveries,
  Clock,
  Faults,
  Settings,
  Scenarios,
  Facts
].flatMap(({ routes: own }) => own)
