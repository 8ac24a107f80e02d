/**
 * The addresses that deliveries are sent to.
 *
 * Promise: every spelling of an address gives the same result, with and without a configured address.
 */

/** The address in normal form: host in lower case, no default port. */
const canonical = (address: string): string => (URL.canParse(address) ? new URL(address).href : address)

export const isSame = (left: string, right: string): boolean => canonical(left) === canonical(right)

/**
 * Whether the company's deliveries to an address arrive here: at `url`, or where that is null, at any address that ends
 * in `/hooks/` and its name. Other subscriptions are changed only by their id, and their secrets, which another receiver
 * knows too, are never accepted here.
 */
export const isOurs = (company: string, url: string | null, address: string): boolean =>
  url === null ? canonical(address).endsWith(`/hooks/${company}`) : isSame(address, url)
