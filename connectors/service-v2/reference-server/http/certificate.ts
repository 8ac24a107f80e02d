/** The certificate of the listeners. */
import { readFileSync } from "node:fs"
import { isIP } from "node:net"
import { createSecureContext } from "node:tls"
import { isWildcard } from "./access.ts"

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

/** Reads the files of a certificate and its key; throws when they cannot be read or do not fit. */
export const readCertificate = (certFile: string, keyFile: string): Certificate => {
  const certificate = { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") }
  createSecureContext(certificate)
  return certificate
}

/** Makes a certificate for loopback and these hosts, which clients trust as their own authority. */
export const selfSigned = async (hosts: ReadonlyArray<string>): Promise<Certificate> => {
  const { generate } = await import("selfsigned")
  const names = new Set(["localhost", "127.0.0.1", "::1", ...hosts.filter((host) => !isWildcard(host))])
  const altNames = [...names].map((name) =>
    isIP(name) === 0 ? { type: 2 as const, value: name } : { type: 7 as const, ip: name }
  )
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "subjectAltName", altNames }
    ]
  })
  return { cert, key }
}
