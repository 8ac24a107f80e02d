/** Foreign text as code, and links to the pages of things by their names. */
import { visible } from "../web/Escape.ts"
import { companyAddress, pushAddress, recordAddress, resourceAddress, runAddress } from "./Addresses.ts"
import { html, type Html } from "./Page.ts"

export const code = (text: string): Html => html`<code>${visible(text)}</code>`

/** A text that a click selects as a whole, to be copied. */
export const copied = (text: string): Html => html`<code class="copied">${visible(text)}</code>`

/** A remark below a value. */
export const detail = (text: Html | string): Html => html`<span class="detail">${text}</span>`

const link = (to: string, text: string): Html => html`<a href="${to}">${visible(text)}</a>`

export const companyLink = (company: string): Html => link(companyAddress(company), company)

export const resourceLink = (company: string, resource: string): Html =>
  link(resourceAddress(company, resource), resource)

/** A record by its number, or the whole resource. */
export const recordOrResourceLink = (company: string, resource: string, id: string | null): Html =>
  id === null ? resourceLink(company, resource) : link(recordAddress(company, resource, id), `${resource} ${id}`)

export const runLink = (id: bigint): Html => link(runAddress(id), `run ${id}`)

export const pushLink = (id: bigint): Html => link(pushAddress(id), `push ${id}`)
