/** The signing secrets that passed through the connector, so that no text that leaves it shows one. */
import * as Redacted from "effect/Redacted"

/** Shorter texts stand in half of all words. */
const secretLengthMin = 8

export class SecretFilter {
  private readonly secrets: Array<Redacted.Redacted> = []

  remember(secret: Redacted.Redacted): void {
    if (!this.secrets.some((one) => Redacted.value(one) === Redacted.value(secret))) this.secrets.push(secret)
  }

  hide(text: string): string {
    return this.secrets
      .map((secret) => Redacted.value(secret))
      .filter((secret) => secret.length >= secretLengthMin)
      .reduce((shown, secret) => shown.replaceAll(secret, "[secret]"), text)
      .replaceAll(/whsec_[\w-]{8,}/g, "[secret]")
  }
}
