/** Addresses of the dashboard's pages. */
import { address } from "../web/Escape.ts"

export const recordAddress = (company: string, resource: string, id: string): string =>
  address("/records", { company, resource, id })

export const companyAddress = (company: string): string => `/companies/${encodeURIComponent(company)}`

export const resourceAddress = (company: string, resource: string): string =>
  `${companyAddress(company)}/${encodeURIComponent(resource)}`

export const runAddress = (id: bigint): string => `/runs/${id}`
