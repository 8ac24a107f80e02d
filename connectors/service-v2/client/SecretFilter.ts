/** The signing secrets that the connector has seen, to remove them from all text it returns. */
import * as Redacted from "effect/Redacted"

/** A shorter text would match inside ordinary words. */
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
