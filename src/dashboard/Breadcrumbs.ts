/**
 * The breadcrumbs of a page: the pages above it, from an entry of the menu down, made from the page's address alone.
 * A page states its own level only where its address does not say what is above it.
 */
import type { Crumb } from "../web/Layout.ts"
import { address, visible } from "../web/Escape.ts"
import { companyAddress, recordAddress, resourceAddress } from "./Addresses.ts"
import { menu } from "./Menu.ts"
import type { Level } from "./Page.ts"

/** A parameter of the path or of the query; null where it is absent or empty. */
type Parameter = (name: string) => string | null

/** A list of a company is below the list of all. */
const ofCompany =
  (path: string) =>
  (of: Parameter): Level =>
    of("company") === null ? entry(path) : { text: of("company")!, above: path }

const entry = (path: string): Level => ({ text: menu.find((one) => one.path === path)?.text ?? path, above: null })

const recordLevel = (of: Parameter): Level => {
  const [company, resource, id] = [of("company"), of("resource"), of("id")]
  if (resource === null || id === null) return entry("/records")
  if (company === null) return { text: `${resource} ${id}`, above: "/records" }
  const part = of("list") !== null ? "Related records" : of("below") === null ? null : "Older versions"
  return part === null
    ? { text: id, above: resourceAddress(company, resource) }
    : { text: part, above: recordAddress(company, resource, id) }
}

const rejectedLevel = (of: Parameter): Level => ({
  text: of("resource") === null ? "Rejected records" : `Rejected records of ${of("resource")}`,
  above: of("push") === null ? "/outbox" : `/outbox/pushes/${encodeURIComponent(of("push")!)}`
})

/** The levels by the pattern of the route. A page that has none is an entry of the menu, or stands for itself. */
const levels: Readonly<Record<string, (of: Parameter) => Level>> = {
  "/companies/:company": (of) => ({ text: of("company")!, above: "/" }),
  "/companies/:company/:resource": (of) => ({ text: of("resource")!, above: companyAddress(of("company")!) }),
  "/resources": ofCompany("/resources"),
  "/records": recordLevel,
  "/runs/:id": (of) => ({ text: `Run ${of("id")}`, above: "/runs" }),
  "/webhooks": ofCompany("/webhooks"),
  "/webhooks/events": () => ({ text: "Events", above: "/webhooks" }),
  "/webhooks/event": (of) => ({
    text: of("event") ?? "Event",
    above: address("/webhooks/events", { company: of("company") })
  }),
  "/webhooks/:company/:subscription/deliveries": (of) => ({
    text: `Delivery log of ${of("subscription")}`,
    above: address("/webhooks", { company: of("company") })
  }),
  "/outbox/pushes/:id": (of) => ({ text: `Push ${of("id")}`, above: "/outbox" }),
  "/outbox/rows": () => ({ text: "Rows", above: "/outbox" }),
  "/outbox/rows/:id": (of) => ({ text: `Row ${of("id")}`, above: "/outbox/rows" }),
  "/outbox/rejected": rejectedLevel,
  "/quarantine/:id": (of) =>
    of("whole") === null
      ? { text: `Entry ${of("id")}`, above: "/quarantine" }
      : { text: "The whole record", above: `/quarantine/${of("id")}` },
  "/budget": ofCompany("/budget"),
  "/processes/:id": (of) => ({ text: of("id")!, above: "/processes" })
}

const patterns = Object.entries(levels).map(
  ([route, level]) => [new RegExp(`^${route.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`), level] as const
)

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The level of an address within the pages; null where it has none. */
export const levelOf = (to: string): Level | null => {
  const { pathname, searchParams } = new URL(to, "http://page")
  if (menu.some(({ path }) => path === pathname) && !(pathname in levels)) return entry(pathname)
  for (const [pattern, level] of patterns) {
    const parts = pattern.exec(pathname)
    if (parts === null) continue
    return level((name) => {
      const part = parts.groups?.[name]
      const value = part === undefined ? (searchParams.get(name)?.trim() ?? "") : decoded(part)
      return value === "" ? null : value
    })
  }
  return null
}

const crumbsTo = (to: string): ReadonlyArray<Crumb> => {
  const level = levelOf(to)
  if (level === null) return []
  return [...(level.above === null ? [] : crumbsTo(level.above)), { text: visible(level.text), to }]
}

/** The breadcrumbs of a page with this level, without links to itself; none for an entry of the menu. */
export const crumbsOf = (level: Level | null, to: string): ReadonlyArray<Crumb> =>
  level === null || level.above === null ? [] : [...crumbsTo(level.above), { text: visible(level.text), to }]
