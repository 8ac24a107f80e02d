/** Deliveries signed as the service does, for tests of the receiver; written without code of sender or receiver. */
import { createHmac } from "node:crypto"

export const bodyOf = (id: string, more: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({
    id,
    type: "orders.updated",
    createdate: "2026-01-02T03:04:05Z",
    companyid: 1,
    data: { id: 17, lastchangedate: "2026-01-02T03:04:05Z" },
    ...more
  })

export const mac = (secret: string, t: number | string, body: string | Uint8Array): string =>
  createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex")

/** The signature header; `t` is in seconds since 1970. */
export const signatureOf = (secret: string, t: number, body: string | Uint8Array): string =>
  `t=${t},v1=${mac(secret, t, body)}`

/** Ways to forge a delivery with this body: the headers and the body to send. */
export const forgeries = (
  secret: string,
  otherSecret: string,
  t: number,
  body: string
): ReadonlyArray<{
  readonly name: string
  readonly signatures: ReadonlyArray<string>
  readonly body: string
}> => {
  const good = mac(secret, t, body)
  const header = `t=${t},v1=${good}`
  const flipped = `${good.startsWith("0") ? "1" : "0"}${good.slice(1)}`
  return [
    { name: "no signature", signatures: [], body },
    { name: "an empty one", signatures: [""], body },
    { name: "a bad mac", signatures: [`t=${t},v1=${flipped}`], body },
    { name: "another company's secret", signatures: [signatureOf(otherSecret, t, body)], body },
    { name: "a truncated mac", signatures: [`t=${t},v1=${good.slice(0, 62)}`], body },
    { name: "upper case", signatures: [`t=${t},v1=${good.toUpperCase()}`], body },
    { name: "a t that was not signed", signatures: [`t=${t + 1},v1=${good}`], body },
    { name: "a body that was not signed", signatures: [header], body: body.replace("17", "18") },
    { name: "a space behind the body", signatures: [header], body: `${body} ` },
    { name: "t in milliseconds", signatures: [signatureOf(secret, t * 1000, body)], body },
    { name: "a t in the future", signatures: [signatureOf(secret, t + 3_600, body)], body },
    { name: "a t that is too old", signatures: [signatureOf(secret, t - 3_600, body)], body },
    { name: "two headers, both good", signatures: [header, header], body },
    { name: "two t", signatures: [`t=${t},${header}`], body },
    { name: "no v1", signatures: [`t=${t},v0=${good}`], body },
    { name: "no t", signatures: [`v1=${good}`], body },
    {
      name: "a mac of the body alone",
      signatures: [`t=${t},v1=${createHmac("sha256", secret).update(body).digest("hex")}`],
      body
    },
    { name: "an empty secret", signatures: [signatureOf("", t, body)], body }
  ]
}
