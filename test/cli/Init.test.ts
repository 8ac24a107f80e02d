/**
 * `tributary init`: its correction of addresses, its `.env` file, and its prompts at a terminal with a real source.
 * `Init.long.test.ts` tests `tributary init` in scripts.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { parse as parseDotEnv } from "dotenv"
import { Cause, Duration, Effect, Exit, Layer, Option, Queue, Redacted, Terminal } from "effect"
import * as fc from "fast-check"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { ServiceClient, Transport } from "../../connectors/service-v2/client/index.ts"
import * as Budget from "../../src/budget/Budget.ts"
import * as Address from "../../src/cli/init/Address.ts"
import * as Files from "../../src/cli/init/Files.ts"
import { initialise } from "../../src/cli/init/Initialise.ts"
import type { InitOptions } from "../../src/cli/init/InitContext.ts"
import { Source } from "../../src/cli/Source.ts"
import * as ControlPlane from "../../connectors/service-v2/demo/ControlPlane.ts"
import * as ReferenceServer from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import * as Configuration from "../../src/configuration/Configuration.ts"
import { ConfigurationError } from "../../src/configuration/ConfigurationError.ts"
import { test } from "../support/suite.ts"
import { flowing } from "../support/until.ts"

it("the source address in tributary init is completed when the correction is obvious, and rejected when it is unsafe for the token", () => {
  const right: ReadonlyArray<readonly [string, string]> = [
    ["https://erp.example.com/!/api/v2", "https://erp.example.com/!/api/v2"],
    [" https://erp.example.com/!/api/v2/ ", "https://erp.example.com/!/api/v2"],
    ["erp.example.com", "https://erp.example.com/!/api/v2"],
    ["https://erp.example.com/%21/api/v2/orders?x=1", "https://erp.example.com/!/api/v2"],
    ["https://erp.example.com:8443/!/api", "https://erp.example.com:8443/!/api/v2"],
    ["https://proxy.example.com/erp/!/api/v2", "https://proxy.example.com/erp/!/api/v2"],
    ["127.0.0.1:8080", "http://127.0.0.1:8080/!/api/v2"],
    ["http://localhost:8080/", "http://localhost:8080/!/api/v2"],
    ["http://[::1]:8080/", "http://[::1]:8080/!/api/v2"]
  ]
  for (const [input, expected] of right) {
    const read = Address.read(input)
    assert.isObject(read, input)
    assert.strictEqual(typeof read === "string" ? read : read.url, expected, input)
  }
  for (const [input, message] of [
    ["", "expected the address"],
    ["http://erp.example.com/!/api/v2", "use https"],
    ["https://anna:secret@erp.example.com", "carries credentials"],
    ["ftp://erp.example.com", "no https address"],
    ["https://erp.example.com/login", "this ends in /login"],
    ["https://erp.example.com/!/api/v20", "expected the address"],
    ["https://", "no address"],
    ["https://erp.exa\r\nmple.com", "no spaces, line breaks"]
  ] as const) {
    const read = Address.read(input)
    assert.isString(read, input)
    if (typeof read === "string") assert.include(read, message, input)
  }
})

describe("the .env file in tributary init", () => {
  it("keeps all existing lines and reads back every new value unchanged", () => {
    const value = fc
      .string({ minLength: 1, maxLength: 30, unit: "grapheme-ascii" })
      .filter((text) => text.trim() === text)
    const lines = ["A=1", "# a remark", "", "export B='two words'", 'C="x # y"', "NORTH_TOKEN=old", "D=a=b", "E: yes"]
    const before = fc.array(fc.constantFrom(...lines), { maxLength: 8 })
    let mergeCount = 0
    fc.assert(
      fc.property(before, value, value, (lines, token, other) => {
        const text = lines.join("\n")
        const values = { NORTH_TOKEN: token, OTHER: other }
        const merged = Files.mergedEnvironment(text, new Map(Object.entries(values)))
        if ("unwritable" in merged) return
        mergeCount += 1
        assert.deepStrictEqual(parseDotEnv(merged.text), { ...parseDotEnv(text), ...values })
        for (const line of lines) if (!line.startsWith("NORTH_TOKEN")) assert.include(merged.text.split("\n"), line)
      }),
      { numRuns: 500, seed: 7 }
    )
    assert.isAbove(mergeCount, 450, "almost every value can be written")
  })

  it("stays unchanged when it has all values; a different value is replaced in place", () => {
    const merged = (text: string, token: string) => Files.mergedEnvironment(text, new Map([["NORTH_TOKEN", token]]))
    const text = "A=1\nNORTH_TOKEN='abc'\n# end"
    assert.deepStrictEqual(merged(text, "abc"), { text })
    assert.deepStrictEqual(merged(text, "new"), { text: "A=1\nNORTH_TOKEN=new\n# end\n" })
    // The file is edited by lines, so a value over several lines is rejected and nothing is written.
    assert.deepStrictEqual(merged('KEY="-----BEGIN\nNORTH_TOKEN=x\n-----END"\n', "abc"), { unwritable: "NORTH_TOKEN" })
  })

  it("is recognised as ignored or not ignored by .gitignore", () => {
    for (const ignoring of [".env", "/.env", "**/.env", ".env*", "*.env", "# x\n.env\n", "!.env\n.env"]) {
      assert.isTrue(Files.ignoresEnvironment(ignoring), ignoring)
    }
    for (const not of ["", "env", ".env.local", "#.env", ".env\n!.env", "node_modules"]) {
      assert.isFalse(Files.ignoresEnvironment(not), not)
    }
  })
})

const nothing: InitOptions = {
  url: null,
  companies: [],
  tokenVariables: [],
  withPersonalData: false,
  replace: false,
  config: null,
  isInteractive: true
}

const notNeeded = Effect.die("not needed")

/** The source of the commands, without the parts that the prompts do not need. */
const source = Layer.succeed(Source, {
  catalogue: serviceV2,
  connect: Effect.fnUntraced(function* (company, configuration) {
    const http = yield* Layer.build(Transport.layerUndici())
    const budget = yield* Budget.makeOwn(null, { pauseWaitMax: Duration.seconds(1) })
    return yield* ServiceClient.make({
      baseUrl: company.url,
      token: company.token,
      catalogue: serviceV2,
      retry: { attemptsMax: configuration.attemptsMax }
    }).pipe(
      Effect.provideService(Budget.Budget, budget),
      Effect.provide(http),
      Effect.mapError((error) => new ConfigurationError({ problems: [error.message] }))
    )
  }),
  radar: () => notNeeded,
  reference: () => notNeeded,
  deliveries: notNeeded,
  demo: notNeeded,
  sandbox: notNeeded,
  models: notNeeded,
  invariants: notNeeded
})

const key = (name: string, more: { readonly input?: string; readonly ctrl?: boolean } = {}): Terminal.UserInput => ({
  input: Option.fromUndefinedOr(more.input),
  key: { name, ctrl: more.ctrl ?? false, meta: false, shift: false }
})
const typed = (text: string) => Array.from(text, (input) => key(input, { input }))
const enter = key("return")
const ctrlC = key("c", { ctrl: true })

/** A scripted terminal: one set of key presses for each prompt. It records all output. */
const terminalOf = (answers: ReadonlyArray<ReadonlyArray<Terminal.UserInput>>) => {
  let shown = ""
  let next = 0
  const layer = Layer.succeed(
    Terminal.Terminal,
    Terminal.make({
      columns: Effect.succeed(100),
      rows: Effect.succeed(40),
      size: notNeeded,
      readLine: notNeeded,
      readInput: Effect.gen(function* () {
        const queue = yield* Queue.make<Terminal.UserInput, Cause.Done>()
        const keys = answers[next]
        next += 1
        for (const one of keys ?? [ctrlC]) Queue.offerUnsafe(queue, one)
        // As in the real terminal, Ctrl-C ends the input.
        if (keys === undefined || keys.includes(ctrlC)) Queue.endUnsafe(queue)
        return queue
      }),
      display: (text) =>
        Effect.sync(() => {
          shown += text
        })
    })
  )
  return { layer, shown: () => shown, promptCount: () => next }
}

/** Provides the services of the prompts, with this terminal instead of the process's own. */
const at =
  ({ layer }: { readonly layer: Layer.Layer<Terminal.Terminal> }) =>
  <A, E>(effect: Effect.Effect<A, E, Source | NodeServices.NodeServices>) =>
    effect.pipe(Effect.provide(layer), Effect.provide(Layer.merge(source, NodeServices.layer)))

const inFolder = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "tributary-init-"))
    const before = process.cwd()
    process.chdir(folder)
    return { folder, before }
  }),
  ({ folder, before }) =>
    Effect.sync(() => {
      process.chdir(before)
      rmSync(folder, { recursive: true, force: true })
    })
)

test("the prompts of tributary init repeat after a wrong token, write loadable settings, show no secret and leave no file when aborted", function* () {
  const prompting = Effect.gen(function* () {
    const reference = yield* ReferenceServer.start({ port: 0, controlPort: 0, data: "empty" })
    const { folder } = yield* inFolder
    const body = JSON.stringify({ company: 1, scopes: ["customers:read", "orders:read"] })
    const answer = yield* ControlPlane.call(reference, "POST", "/tokens", body)
    const { token } = JSON.parse(answer) as { readonly token: string }
    const host = new URL(reference.baseUrl).host
    const url = [...typed(host), enter]

    const broken = terminalOf([url, [enter], [...typed("half-a-tok"), ctrlC]])
    const stopped = yield* Effect.exit(initialise(nothing, {}).pipe(at(broken)))
    assert.isTrue(Exit.isFailure(stopped) && Cause.hasInterruptsOnly(stopped.cause))
    assert.deepStrictEqual(readdirSync(folder), [])

    writeFileSync(".env", "KEPT=1\n", { mode: 0o644 })
    writeFileSync(".gitignore", "node_modules\n")
    const good = terminalOf([
      url,
      // A token in the place of the name is refused. No default is in the way of what is typed.
      [...typed("pasted0123456789abcdef"), enter, key("u", { ctrl: true }), ...typed("north-x"), enter],
      [...typed("wrong-token-0123456789"), enter],
      [...typed(token), enter],
      [enter], // no other company
      [enter], // the embedded Postgres
      [...typed("n"), enter] // personal data is read too
    ])
    const done = yield* initialise(nothing, {}).pipe(at(good))
    assert.strictEqual(good.promptCount(), 7, "every prompt was shown, the one for the token twice")
    assert.include(good.shown(), "this looks like a token")
    for (const secret of [token, "wrong-token"]) {
      assert.notInclude(good.shown(), secret)
      assert.notInclude(
        JSON.stringify(done, (_, one: unknown) => (typeof one === "bigint" ? `${one}` : one)),
        secret
      )
    }
    assert.deepInclude(done, { config: "config/tributary.yaml", backup: null })
    assert.deepStrictEqual(done?.variables, ["NORTH_X_TOKEN"])
    assert.isTrue(done?.notes.some((text) => text.includes(".gitignore does not name .env")))
    assert.isTrue(done?.notes.some((text) => text.includes("now only its owner can")))

    assert.strictEqual(statSync(".env").mode & 0o777, 0o600)
    assert.deepStrictEqual(parseDotEnv(readFileSync(".env")), { KEPT: "1", NORTH_X_TOKEN: token })
    const yaml = readFileSync("config/tributary.yaml", "utf8")
    assert.notInclude(yaml, token)
    assert.match(yaml, /^# yaml-language-server: \$schema=\.\/tributary\.schema\.json\n/)
    assert.isTrue(existsSync("config/tributary.schema.json"))

    const settings = yield* Configuration.load({}, {})
    const [company] = settings.companies
    assert.deepStrictEqual(
      { ...company, token: Redacted.value(company!.token) },
      {
        name: "north-x",
        installation: settings.installation,
        url: reference.baseUrl,
        token,
        companyId: null,
        warehouseNumber: null,
        resources: null,
        excluded: [],
        webhookSecrets: [],
        webhookEvents: null,
        paused: null
      }
    )
    assert.deepStrictEqual(settings.freshnessOf("anything"), Duration.minutes(15))
    assert.isNull(settings.webhooks.publicUrl)

    // Personal data that the token may read: a person confirms, a script has a flag.
    const excludedOf = Effect.fnUntraced(function* (options: Partial<InitOptions>, answer = "") {
      const prompts = terminalOf([url, typed("north-x"), [], [], [], typed(answer)].map((keys) => [...keys, enter]))
      const report = yield* initialise({ ...nothing, replace: true, ...options }, {}).pipe(at(prompts))
      const { companies } = yield* Configuration.load({}, {})
      const { excluded } = companies[0]!
      assert.deepStrictEqual(
        report!.excluded,
        excluded.map(({ pattern }) => pattern)
      )
      return { excluded: report!.excluded, count: report!.companies[0]!.resources }
    })
    const script = { isInteractive: false, url: reference.baseUrl, companies: ["north-x"] }
    const personal = ["b2busers", "contactnames"]
    const [declined, confirmed] = [yield* excludedOf({}, "n"), yield* excludedOf({})]
    assert.deepStrictEqual([declined.excluded, confirmed.excluded.toSorted()], [[], personal])
    assert.strictEqual(declined.count - confirmed.count, 2)
    assert.deepStrictEqual(yield* excludedOf(script), confirmed)
    assert.deepStrictEqual(yield* excludedOf({ ...script, withPersonalData: true }), declined)
  })
  yield* flowing(prompting)
})
