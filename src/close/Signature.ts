/**
 * The Ed25519 signature of a close.
 *
 * Promise: a signature is valid only for the same content. Whether the key is the right one is known to the reader: the file
 * carries its public key, which is compared with the key of this installation or with one that the reader names.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes
} from "node:crypto"
import { dirname } from "node:path"
import * as Redacted from "effect/Redacted"
import * as AtomicFile from "../files/AtomicFile.ts"
import * as Folder from "../files/Folder.ts"
import * as Mode from "../files/Mode.ts"
import * as ReadFile from "../files/ReadFile.ts"
import { CloseFailed } from "./CloseFailed.ts"
import { canonical, type Content, type Document, type Parsed, type SignatureMember } from "./Document.ts"

export interface SigningKey {
  readonly key: Redacted.Redacted<KeyObject>
  /** Whether it was just made. */
  readonly isNew: boolean
}

const fingerprintOf = (publicKey: KeyObject): string =>
  createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("hex")

const bytesOf = (path: string): Buffer => {
  try {
    return ReadFile.bytes(path)
  } catch (error) {
    throw CloseFailed.from(path)(error)
  }
}

const readKey = (path: string): KeyObject => {
  const pem = bytesOf(path)
  let key
  try {
    key = createPrivateKey(pem)
  } catch {
    // The reason of the library may quote the file.
    throw new CloseFailed({ kind: "configuration", message: `${path} is no private key (PEM)` })
  }
  if (key.asymmetricKeyType === "ed25519") return key
  throw new CloseFailed({
    kind: "configuration",
    message: `${path} is no Ed25519 key: openssl genpkey -algorithm ed25519`
  })
}

/** The key of the warehouse; it is made, readable by its owner only, where there is none. Throws {@link CloseFailed}. */
export const loadKey = (path: string): SigningKey => {
  let isNew = false
  try {
    if (!ReadFile.exists(path)) {
      const { privateKey } = generateKeyPairSync("ed25519")
      Folder.make(dirname(path))
      isNew = AtomicFile.create(path, privateKey.export({ type: "pkcs8", format: "pem" }), {
        mode: Mode.secretFile
      })
    }
  } catch (error) {
    throw CloseFailed.from(`the signing key ${path} cannot be created`)(error)
  }
  return { key: Redacted.make(readKey(path), { label: "signing key" }), isNew }
}

export const sign = (content: Content, { key }: SigningKey): Document => {
  const publicKey = createPublicKey(Redacted.value(key))
  const signature: SignatureMember = {
    algorithm: "Ed25519",
    publicKey: publicKey.export({ type: "spki", format: "pem" }) as string,
    fingerprint: fingerprintOf(publicKey),
    value: signBytes(null, Buffer.from(canonical(content)), Redacted.value(key)).toString("base64")
  }
  return { ...content, signature }
}

/** The public key of a file with a public or private key, to compare with. Throws {@link CloseFailed}. */
export const publicKeyOf = (path: string): string => {
  const pem = bytesOf(path)
  try {
    return fingerprintOf(createPublicKey(pem))
  } catch {
    throw new CloseFailed({ kind: "configuration", message: `${path} is no public or private key (PEM)` })
  }
}

/** `valid`: by the expected key. `unknown`: valid, with no key to compare with. */
export type Validity = "valid" | "unknown" | "other key" | "invalid"

/** Checks the signature; `expected` is the fingerprint of the key that has to have signed. */
export const check = ({ signed, signature }: Parsed, expected: string | null): Validity => {
  try {
    const publicKey = createPublicKey(signature.publicKey)
    const isRight =
      publicKey.asymmetricKeyType === "ed25519" &&
      fingerprintOf(publicKey) === signature.fingerprint &&
      verifyBytes(null, Buffer.from(signed), publicKey, Buffer.from(signature.value, "base64"))
    if (!isRight) return "invalid"
  } catch {
    return "invalid"
  }
  return expected === null ? "unknown" : expected === signature.fingerprint ? "valid" : "other key"
}
