/**
 * An installation with `tributary webhooks` whose subscriptions deliver to a real HTTPS receiver, and a search for
 * signing secrets in everything that is printed or stored.
 */
import { createHmac } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { decrypt } from "../../../src/subscriptions/SecretCipher.ts"
import { certificate } from "../../support/certificate.ts"
import { recording } from "../../support/recording.ts"
import { makeWorld } from "../../support/world.ts"

interface Received {
  readonly signature: string
  readonly body: Buffer
}

/** The response body of the receiver. A terminal would clear its screen. */
const odd = `seen \u001b[2J\u202e\n${"x".repeat(600)}`

/** Whether one of the signatures was made with this secret. */
export const signed = (secret: string, { signature, body }: Received): boolean => {
  const t = /^t=(\d+)/.exec(signature)?.[1]
  return signature.includes(createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex"))
}

interface CompanyAnswer {
  readonly subscription: { readonly id: string; readonly url: string }
  readonly attempts: ReadonlyArray<{ readonly eventType: string; readonly delivered: boolean }>
  readonly failure: { readonly message: string; readonly remedy: string }
}

/** The first company in a JSON result. */
export const answerOf = ({ stdout }: { readonly stdout: string }): CompanyAnswer =>
  (JSON.parse(stdout) as { readonly companies: ReadonlyArray<CompanyAnswer> }).companies[0]!

/** A secret that the operator chose, in the environment as OWN_SECRET. */
export const ownSecret = "canary-0b5f-a-secret-of-my-own-choice"

export const hooked = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "empty"], company: 1 })
  const { cert, key } = certificate(["localhost"])
  const received: Array<Received> = []
  const { url } = yield* recording(
    (request, body, response) => {
      received.push({ signature: String(request.headers["svc-signature"]), body })
      response.end(odd)
    },
    { cert, key }
  )
  yield* world.control("PUT", "/limits", { allowPrivateReceivers: true })
  yield* world.control("POST", "/trust", { caPem: cert })
  const token = yield* Effect.promise(() => world.reference.token(1))
  let output = ""
  /** All stored secrets, decrypted with the token. */
  const secrets = Effect.map(
    world.query<{ sealed: string }>(
      "select encode(sealed, 'base64') as sealed from tributary.webhook_secrets order by id"
    ),
    (rows) =>
      rows.map(({ sealed }) => Redacted.value(decrypt("main", Redacted.make(token), Buffer.from(sealed, "base64"))!))
  )
  return {
    world,
    url,
    received,
    secrets,
    /** `more` is YAML that follows the company. The company requests one event that exists and one that does not. */
    configure: (more: string) =>
      world.configure(
        `companies:\n  - name: main\n    token_env: MAIN_TOKEN\n    webhook_events: [items.created, nothings.created]\n${more}`
      ),
    /** Runs `tributary webhooks …` to its end, and asserts its exit code. */
    run: Effect.fnUntraced(function* (
      code: number,
      args: ReadonlyArray<string>,
      env: Readonly<Record<string, string>> = {}
    ) {
      const done = yield* world.run(["webhooks", ...args], { MAIN_TOKEN: token, OWN_SECRET: ownSecret, ...env })
      output += done.stdout + done.stderr
      assert.strictEqual(done.code, code, `webhooks ${args.join(" ")}: ${done.stdout}${done.stderr}`)
      return done
    }),
    /** Asserts that no secret was printed or is in any table of the control plane. */
    assertSilent: Effect.gen(function* () {
      const tables = yield* world.query<{ name: string }>(
        `select quote_ident(table_name) as name from information_schema.tables
          where table_schema = 'tributary' and table_type = 'BASE TABLE'`
      )
      let dump = ""
      for (const { name } of tables) {
        const rows = yield* world.query<{ text: string }>(`select t::text as text from tributary.${name} t`)
        dump += rows.map(({ text }) => text).join("\n")
      }
      // The search finds text that exists.
      assert.include(dump, `${url}/hooks/main`)
      const storedSecrets = yield* secrets
      assert.isAbove(storedSecrets.length, 0)
      for (const secret of [...storedSecrets, ownSecret]) {
        for (const form of ["utf8", "hex", "base64"] as const) {
          const canary = Buffer.from(secret).toString(form).slice(0, 20)
          assert.notInclude(dump, canary)
          assert.notInclude(output, canary)
        }
      }
      assert.notInclude(output, "whsec_")
      assert.notInclude(output + dump, token)
    })
  }
})
