/** The name of a token in stores and comparisons: it identifies the token and does not reveal it. */
import { createHash } from "node:crypto"
import * as Redacted from "effect/Redacted"

/** With `install` all tokens of an address share one name, and so one budget. */
export const fingerprintOf = (baseUrl: string, token: Redacted.Redacted, scope: "token" | "install"): string =>
  createHash("sha256")
    .update(baseUrl.trim().replace(/\/+$/, ""))
    .update("\n")
    .update(scope === "token" ? Redacted.value(token) : "")
    .digest("hex")

/** The name of the token of a company, as its installation counts. */
export const companyFingerprint = ({
  installation,
  token,
  url
}: {
  readonly url: string
  readonly token: Redacted.Redacted
  readonly installation: { readonly budgetScope: "token" | "install" }
}): string => fingerprintOf(url, token, installation.budgetScope)
