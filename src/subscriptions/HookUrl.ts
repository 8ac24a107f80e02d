/**
 * The addresses that deliveries are sent to.
 *
 * Promise: whoever asks whether a subscription delivers to us gets the same answer, however the address is spelt, and
 * whether or not anybody said under which address we are reached.
 */

/** The address in the one way of writing it: host in lower case, no port that goes without saying. */
const canonical = (address: string): string => (URL.canParse(address) ? new URL(address).href : address)

export const isSame = (left: string, right: string): boolean => canonical(left) === canonical(right)

/**
 * Whether an address is the one where the company's deliveries are received: `url`, or where that is null, since nobody
 * said, one that ends as ours do. Nothing else is ever changed without being named.
 */
export const isOurs = (company: string, url: string | null, address: string): boolean =>
  url === null ? canonical(address).endsWith(`/hooks/${company}`) : isSame(address, url)
