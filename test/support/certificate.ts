/**
 * Throw-away certificates for HTTPS receivers on loopback, created with node:crypto alone: no file that expires, no
 * private key in the repository, no program to install.
 */
import { generateKeyPairSync, sign } from "node:crypto"

const der = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, Math.floor(length / 256), length % 256]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: ReadonlyArray<Uint8Array>) => der(0x30, ...parts)
const hex = (text: string) => Buffer.from(text, "hex")
const commonName = hex("0603550403")
const subjectAltName = hex("0603551d11")
const basicConstraints = hex("0603551d13")
const ecdsaWithSha256 = sequence(hex("06082a8648ce3d040302"))
const time = (year: number) => der(0x18, Buffer.from(`${year}0101000000Z`))

/** A self-signed certificate for host names and IPv4 addresses, and its key, as PEM. It is its own CA. */
export const certificate = (
  names: ReadonlyArray<string>,
  addresses: ReadonlyArray<string> = []
): { readonly cert: string; readonly key: string } => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const name = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from("Tributary test receiver")))))
  const alternatives = sequence(
    ...names.map((host) => der(0x82, Buffer.from(host))),
    ...addresses.map((address) => der(0x87, Buffer.from(address.split(".").map(Number))))
  )
  const extensions = der(
    0xa3,
    sequence(
      sequence(subjectAltName, der(0x04, alternatives)),
      sequence(basicConstraints, hex("0101ff"), der(0x04, sequence(hex("0101ff"))))
    )
  )
  const toBeSigned = sequence(
    hex("a003020102"),
    der(0x02, hex("01")),
    ecdsaWithSha256,
    name,
    sequence(time(2020), time(2999)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    extensions
  )
  const signature = sign("sha256", toBeSigned, privateKey)
  const whole = sequence(toBeSigned, ecdsaWithSha256, der(0x03, hex("00"), signature))
  const lines = whole.toString("base64").match(/.{1,64}/g)!
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  }
}
