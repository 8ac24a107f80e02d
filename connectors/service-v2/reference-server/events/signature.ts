/**
 * How deliveries are signed (SIG-01, SIG-05).
 *
 * Promise: one `v1` for each secret that holds at the time, the newest first (H-08); a secret's UTF-8 bytes are the key
 * (H-09); the signed bytes are the bytes that are sent.
 */
import { createHmac } from "node:crypto"

/** The value of Svc-Signature; `seconds` since 1970. */
export const signature = (seconds: number, body: Uint8Array, secrets: ReadonlyArray<string>): string => {
  const macs = secrets.map((secret) => createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex"))
  return [`t=${seconds}`, ...macs.map((mac) => `v1=${mac}`)].join(",")
}
