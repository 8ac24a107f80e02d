/**
 * Every command of `tributary webhooks`, one after the other in one installation whose subscriptions deliver to a real HTTPS
 * receiver, and a search for signing secrets in everything that is printed or stored.
 */
import type { AddressInfo } from "node:net"
import { appendFileSync } from "node:fs"
import { createHmac } from "node:crypto"
import { createServer } from "node:https"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { assert, describe } from "@effect/vitest"
import { certificate } from "../../support/certificate.ts"
import { decrypt } from "../../../src/subscriptions/SecretCipher.ts"
import { liveTest } from "../../support/live.ts"
import { makeWorld } from "../../support/world.ts"

interface Received {
  readonly signature: string
  readonly body: Buffer
}

/** The response body of the receiver. A terminal would clear its screen. */
const odd = `seen \u001b[2J\u202e\n${"x".repeat(600)}`

const receiver = Effect.acquireRelease(
  Effect.promise(async () => {
    const { cert, key } = certificate(["localhost"])
    const received: Array<Received> = []
    const server = createServer({ cert, key }, (request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        received.push({ signature: String(request.headers["svc-signature"]), body: Buffer.concat(chunks) })
        response.end(odd)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return { server, cert, received, url: `https://localhost:${(server.address() as AddressInfo).port}` }
  }),
  ({ server }) =>
    Effect.promise(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
)

/** Whether one of the signatures was made with this secret. */
const signed = (secret: string, { signature, body }: Received): boolean => {
  const t = /^t=(\d+)/.exec(signature)?.[1]
  return signature.includes(createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex"))
}

interface CompanyAnswer {
  readonly subscription: { readonly id: string; readonly url: string }
  readonly attempts: ReadonlyArray<{ readonly eventType: string; readonly delivered: boolean }>
  readonly failure: { readonly message: string; readonly remedy: string }
}

/** The first company in a JSON result. */
const answerOf = ({ stdout }: { readonly stdout: string }): CompanyAnswer =>
  (JSON.parse(stdout) as { readonly companies: ReadonlyArray<CompanyAnswer> }).companies[0]!

/** A secret that the operator chose, in the environment as OWN_SECRET. */
const ownSecret = "canary-0b5f-a-secret-of-my-own-choice"

const hooked = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "empty"], company: 1 })
  const hook = yield* receiver
  yield* world.control("PUT", "/limits", { allowPrivateReceivers: true })
  yield* world.control("POST", "/trust", { caPem: hook.cert })
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
    url: hook.url,
    received: hook.received,
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
      assert.include(dump, `${hook.url}/hooks/main`)
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

describe("tributary webhooks", () => {
  liveTest("rotates, pauses, resumes, lists, creates, deletes and replays, and prints no secret", function* () {
    const { world, configure, run, received, secrets, url, assertSilent } = yield* hooked
    configure("")
    assert.include((yield* run(2, ["ensure"])).stderr, "webhooks.public_url")
    configure(`webhooks:\n  public_url: ${url}\n`)
    const poor = yield* Effect.promise(() => world.reference.token(1, ["items:read"]))
    const refused = yield* run(3, ["list", "--json"], { MAIN_TOKEN: poor })
    assert.include(answerOf(refused).failure.remedy, "setup:read")

    const ensured = yield* run(0, ["ensure", "--json"])
    const { subscription } = answerOf(ensured)
    assert.include(ensured.stderr, "nothings.created")
    const tested = yield* run(0, ["test"])
    assert.include(tested.stdout, String.raw`seen \x1b[2J\u{202e}\nxxx`)
    assert.notMatch(tested.stdout, /x{500}/)
    received.length = 0
    const [first] = yield* secrets
    assert.include((yield* run(1, ["rotate", "--secret-env", "NOT_SET"])).stderr, "NOT_SET is not set")
    // A secret in place of its variable's name. The output is searched for it below.
    yield* run(1, ["rotate", "--secret-env", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
    yield* run(0, ["rotate", "--secret-env", "OWN_SECRET"])
    yield* run(0, ["test", subscription.id, "--json"])
    assert.deepStrictEqual([signed(first!, received[0]!), signed(ownSecret, received[0]!)], [true, true])
    assert.deepStrictEqual(yield* secrets, [first, ownSecret])

    const created = yield* run(0, [
      "create",
      "--url",
      "https://elsewhere.example.com/in",
      "--event",
      "items.updated",
      "--json"
    ])
    const other = answerOf(created).subscription.id
    assert.include((yield* run(0, ["ensure"])).stdout, "nothing to do")

    const { stdout: paused } = yield* run(0, ["pause"])
    assert.match(paused, new RegExp(`tributary webhooks resume ${subscription.id}\\n`))
    const listed = yield* run(0, ["list"])
    assert.match(listed.stdout, new RegExp(`${subscription.id} +paused +yes +stored`))
    assert.match(listed.stdout, new RegExp(`${other} +active +no +unknown +0 +never`))
    assert.include(listed.stdout, "webhooks resume")
    yield* run(0, ["resume"])

    const log = yield* run(0, ["deliveries", "--json"])
    assert.deepStrictEqual(
      answerOf(log).attempts.map(({ eventType, delivered }) => `${eventType} ${delivered}`),
      ["webhooks.test true", "webhooks.test true"]
    )
    assert.include((yield* run(0, ["deliveries", "--abandoned"])).stdout, "no such delivery")
    assert.include((yield* run(1, ["rotate", "4711"])).stderr, "4711")
    yield* run(1, ["deliveries", "--delivered", "--failed"])

    // Dead letters are replayed. An event that is named is replayed in any state.
    yield* world.query(
      `insert into tributary.inbox (company, event_id, event_type, sent_at, body, state, last_error)
             values ('main', 'evt_1', 'items.created', now(), '', 'dead_letter', 'x'),
                    ('main', 'evt_2', 'items.created', now(), '', 'done', null)`
    )
    assert.include((yield* run(0, ["replay"])).stdout, "1 event is pending again")
    assert.include((yield* run(0, ["replay", "--event", "evt_2"])).stdout, "1 event is pending again")
    assert.include((yield* run(0, ["replay", "--event", "evt_2"])).stdout, "0 events")

    // A secret that another receiver also knows is not accepted here.
    assert.include((yield* run(1, ["rotate", other])).stderr, "--secret-env")
    yield* run(0, ["rotate", other, "--secret-env", "OWN_SECRET"])
    assert.lengthOf(yield* secrets, 2)
    yield* run(0, ["delete", other])

    // Variables in .env work like the environment. With several companies, --company is required.
    appendFileSync(join(world.folder, ".env"), "\nDOTTED_SECRET=another-secret-of-my-own\n")
    world.configure(
      "companies: [{ name: main, token_env: MAIN_TOKEN }, { name: other, token_env: MAIN_TOKEN }]\n" +
        `webhooks: { public_url: ${url} }\n`
    )
    const unnamed = yield* run(1, ["rotate", "--secret-env", "DOTTED_SECRET"])
    assert.include(unnamed.stderr, "--company: main, other")
    yield* run(0, ["rotate", "--secret-env", "DOTTED_SECRET", "--company", "main"])
    assert.include(yield* secrets, "another-secret-of-my-own")
    const again = yield* run(0, ["pause", "--company", "main"])
    assert.include(again.stdout, `webhooks resume ${subscription.id} --company main`)
    yield* assertSilent
  })
})
