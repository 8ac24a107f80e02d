/**
 * Addresses of private and special networks.
 *
 * Promise: an address is public only if it is IPv4 or IPv6 unicast of the public Internet, in any spelling. IPv4 inside
 * IPv6 counts as the IPv4 address. Prefixes that translate to IPv4 (NAT64, 6to4, Teredo) are private.
 */
import { BlockList, isIP } from "node:net"

const special = new BlockList()
for (const network of [
  "0.0.0.0/8", // this host
  "10.0.0.0/8",
  "100.64.0.0/10", // carrier-grade NAT
  "127.0.0.0/8",
  "169.254.0.0/16", // link-local, and the metadata of cloud providers
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3" // multicast, reserved, broadcast
]) {
  const [address, bits] = network.split("/")
  special.addSubnet(address!, Number(bits), "ipv4")
}

const global = new BlockList()
global.addSubnet("2000::", 3, "ipv6")
for (const network of ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]) {
  const [address, bits] = network.split("/")
  special.addSubnet(address!, Number(bits), "ipv6")
}

/** IPv4 that is written as IPv6: `::ffff:10.0.0.1` or `::ffff:a00:1`. A list of IPv4 networks is compared with it. */
const mapped = new BlockList()
mapped.addSubnet("::ffff:0:0", 96, "ipv6")

/** Whether an address without brackets is not of the public Internet; also for a text that is no address. */
export const isPrivate = (address: string): boolean => {
  const bare = address.replace(/%.*$/, "")
  switch (isIP(bare)) {
    case 4:
      return special.check(bare, "ipv4")
    case 6:
      return special.check(bare, "ipv6") || !(global.check(bare, "ipv6") || mapped.check(bare, "ipv6"))
    default:
      return true
  }
}
