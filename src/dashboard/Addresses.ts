/** Addresses of the dashboard's pages. */
import { address } from "../web/Escape.ts"

export const recordAddress = (company: string, resource: string, id: string): string =>
  address("/records", { company, resource, id })

export const companyAddress = (company: string): string => `/companies/${encodeURIComponent(company)}`

export const resourceAddress = (company: string, resource: string): string =>
  `${companyAddress(company)}/${encodeURIComponent(resource)}`

/** The table of resources: of a company or of all, in a state or in any. */
export const resourcesAddress = (query: Readonly<Record<string, string | null>>): string => address("/resources", query)

export const runAddress = (id: bigint): string => `/runs/${id}`

export const eventAddress = (company: string, eventId: string): string =>
  address("/webhooks/event", { company, event: eventId })

export const pushAddress = (id: bigint): string => `/outbox/pushes/${id}`

export const processAddress = (id: string): string => `/processes/${encodeURIComponent(id)}`

/** The list of push requests without a known outcome. */
export const outboxRequestsAddress = "/outbox#calls"

export const outboxRowAddress = (id: bigint): string => `/outbox/rows/${id}`

/** The runs that ended in the hour that begins at this time. */
export const runsOfHour = (
  at: Date,
  filter: { readonly company?: string | null; readonly resource?: string | null; readonly status?: string | null } = {}
): string => address("/runs", { ...filter, hour: `${at.toISOString().slice(0, 13)}:00Z` })
