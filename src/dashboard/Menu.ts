/** The menu of the dashboard. */
import type { MenuEntry } from "../web/Layout.ts"
import type { Section } from "./Page.ts"

/** An entry with the words of its number is one of which `OpenNumbers.ts` counts what is open. */
export const menu: ReadonlyArray<MenuEntry & { readonly section: Section }> = [
  { section: "overview", path: "/", text: "Overview" },
  { section: "resources", path: "/resources", text: "Resources" },
  { section: "runs", path: "/runs", text: "Runs" },
  { section: "records", path: "/records", text: "Records" },
  { section: "webhooks", path: "/webhooks", text: "Webhooks", counted: ["dead letter", "dead letters"] },
  { section: "outbox", path: "/outbox", text: "Outbox", counted: ["rejected", "rejected"] },
  { section: "endpoints", path: "/endpoints", text: "Change feed" },
  { section: "quarantine", path: "/quarantine", text: "Quarantine", counted: ["open", "open"] },
  { section: "invariants", path: "/invariants", text: "Invariants", counted: ["violated", "violated"] },
  { section: "budget", path: "/budget", text: "Budget" },
  { section: "processes", path: "/processes", text: "Processes" }
]
