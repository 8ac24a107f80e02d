/**
 * Signatures of deliveries (SIG-01, SIG-05).
 *
 * Promise: one `v1` for each secret that is valid at the time, newest first (H-08). The key is the secret's UTF-8 bytes
 * (H-09). The signed bytes are the bytes that are sent.
 */
import { createHmac } from "node:crypto"

/** The value of Svc-Signature; `seconds` since 1970. */
export const signature = (seconds: number, body: Uint8Array, secrets: ReadonlyArray<string>): string => {
  const macs = secrets.map((secret) => createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex"))
  return [`t=${seconds}`, ...macs.map((mac) => `v1=${mac}`)].join(",")
}
