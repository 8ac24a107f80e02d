/** The routes of all pages and actions, and the menu. */
import type { MenuEntry } from "../../../../src/web/Layout.ts"
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

export const menu: ReadonlyArray<MenuEntry & { readonly section: Section }> = [
  { section: "requests", path: `${root}/`, text: "Requests" },
  { section: "records", path: `${root}/records`, text: "Records" },
  { section: "tokens", path: `${root}/tokens`, text: "Tokens" },
  { section: "subscriptions", path: `${root}/subscriptions`, text: "Subscriptions" },
  { section: "deliveries", path: `${root}/deliveries`, text: "Deliveries" },
  { section: "clock", path: `${root}/clock`, text: "Clock" },
  { section: "faults", path: `${root}/faults`, text: "Faults" },
  { section: "settings", path: `${root}/settings`, text: "Settings" },
  { section: "scenarios", path: `${root}/scenarios`, text: "Scenarios" },
  { section: "facts", path: `${root}/facts`, text: "Facts" }
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
