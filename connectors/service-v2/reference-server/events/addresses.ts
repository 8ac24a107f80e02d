/**
 * Public addresses: which ones a receiver may have (H-22; the list follows svix-server).
 *
 * Promise: any address that is not public unicast is refused, in any spelling. IPv4 inside IPv6 counts as the IPv4
 * address. Translation prefixes that could carry a private address (NAT64, 6to4, Teredo) are refused entirely.
 */
import { BlockList, isIP } from "node:net"

const refused4: ReadonlyArray<readonly [network: string, bits: number]> = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4]
]

const refused6: ReadonlyArray<readonly [network: string, bits: number]> = [
  // Unspecified, loopback and IPv4-compatible; IPv4-mapped is looked up as IPv4.
  ["::", 96],
  ["::ffff:0:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["100::", 64],
  ["100:0:0:1::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
  ["5f00::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8]
]

const blocked = new BlockList()
for (const [network, bits] of refused4) blocked.addSubnet(network, bits, "ipv4")
for (const [network, bits] of refused6) blocked.addSubnet(network, bits, "ipv6")

/** Whether an IP address, without brackets, is public; false for a text that is not an IP address. */
export const isPublic = (address: string): boolean => {
  const bare = address.replace(/%.*$/, "")
  const family = isIP(bare)
  return family !== 0 && !blocked.check(bare, family === 4 ? "ipv4" : "ipv6")
}
