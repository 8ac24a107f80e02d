/** The menu of the dashboard. */
import type { MenuEntry } from "../web/Layout.ts"
import type { Section } from "./Page.ts"

/** The words after the number of what the kinds of problems of a section count. */
const counted = ["to resolve", "to resolve"] as const

export const menu: ReadonlyArray<MenuEntry & { readonly section: Section }> = [
  { section: "overview", path: "/", text: "Overview" },
  { section: "resources", path: "/resources", text: "Resources" },
  { section: "runs", path: "/runs", text: "Runs" },
  { section: "records", path: "/records", text: "Records" },
  { section: "webhooks", path: "/webhooks", text: "Webhooks", counted },
  { section: "outbox", path: "/outbox", text: "Outbox", counted },
  { section: "endpoints", path: "/endpoints", text: "Change feed", counted },
  { section: "quarantine", path: "/quarantine", text: "Quarantine", counted },
  { section: "invariants", path: "/invariants", text: "Invariants", counted },
  { section: "budget", path: "/budget", text: "Budget" },
  { section: "processes", path: "/processes", text: "Processes" }
]
