/**
 * A reader of the documents: runs every block of a page in a folder of its own against the reference server. `notHere`
 * lists what cannot run here, with the reason.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { runInNewContext } from "node:vm"
import { assert } from "@effect/vitest"
import { Clock, Effect } from "effect"
import pg from "pg"
import { Webhook } from "standardwebhooks"
import * as Configuration from "../../src/configuration/Configuration.ts"
import { root } from "../support/reference.ts"
import { type RunningCommand, makeStage, type Stage } from "../support/stage.ts"
import { type Block, blocksOf, interpreters, linesOf, unprintedLines, sessionOf } from "./Blocks.ts"

/** Lines that are not run, each with the reason. */
const notHere: ReadonlyArray<readonly [RegExp, string]> = [
  [/^npm ci$/, "installs the checkout that this runs in; .ci/run does it in a clean clone before anything else"],
  [/^npm run (?:fuzz|conformance|simulate|campaign|bench)\b/, "takes long: .ci/run or a person runs it"],
  [/^npm (?:ci && npm pack|install)\b|^mkdir .*npm init/, "test/package/Modules.long.test.ts packs and installs it"],
  [/^docker\b/, "needs a Docker engine; test/deploy reads the files"],
  [/^(?:sudo )?systemctl\b|^kubectl\b/, "changes the machine; test/deploy reads the files"],
  [/^(?:npx )?tributary (?:postgres|psql)\b/, "test/cli/EmbeddedServer.process.test.ts runs it"],
  [/^npx tributary init\b(?!.*--yes)/, "prompts a person; test/package/FirstDay.ts answers"]
]

/** Lines that are replaced by an equivalent command. */
const instead: ReadonlyArray<readonly [RegExp, string]> = [[/^npm ci && npm start$/, "npx tributary demo"]]

/** Commands that run until they are stopped, each with the text that it prints when it is ready. */
const serving: ReadonlyArray<readonly [RegExp, RegExp]> = [
  [/tributary serve\b(?!.*--help)/, /Receiving events at|"ready":true/],
  [/tributary reference-server\b(?!.*--help)/, /"ready":true/],
  [/tributary changes\b.*--follow\b/, /Following the change feed/],
  [/tributary demo --serve\b/, /dashboard is at http:\/\/127\.0\.0\.1:\d+/]
]

/** Exit codes other than 0 that are expected in such a folder. */
const codes: ReadonlyArray<readonly [RegExp, ReadonlyArray<number>]> = [
  // The shown output of a session states whether it succeeded.
  [/tributary push \w+ --from/, [0, 2, 4]],
  // The server of the page differs on purpose.
  [/tributary radar/, [0, 4]],
  // No process serves yet, so the public address does not respond.
  [/tributary doctor/, [0, 5]]
]

/** Statements that may find nothing in such new and correct records. */
const mayFindNothing: ReadonlyArray<RegExp> = [
  /tributary\.quarantine/,
  /returned_total <> 0/,
  /days_waiting > 3/,
  /bill_coding_incomplete[^]*not is_posted/,
  /erp_models\.(?:job_costs|bank_deposit_check|product_taxes_by_month|return_taxes_by_month)/,
  /'over-deposited', 'over-applied'/,
  /sum\(tasks_past_due\)/,
  // The demo data begins after the day of this example.
  /erp_models\.receivables_aging\s+where company_id = 1\s+order by total desc/
]

/** Steps that a document leaves to the reader, each before the block that contains the text. */
const between: ReadonlyArray<readonly [string, (stage: Stage) => void]> = [
  ["push 1 to customers of main: 3 records", (stage) => stage.file("customers.csv", customers("250.50"))]
]

const customers = (limit: string) => `externalid,customercode,name,creditlimit,invoiceterm
crm-7001,NORTHE01,North End Cafe,1500.00,Net 30
crm-7002,OLDMIL01,Old Mill Bakery,${limit},Net 30
crm-7003,HARBOR01,Harbor Fish,800,Net 3O
`

/** The signing secret of an endpoint. */
const changesSecret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`

const settings = (stage: Stage) => `webhooks:
  listen: ${new URL(stage.receiverUrl).host.replace("localhost", "127.0.0.1")}
  public_url: ${stage.receiverUrl}
  certificate: cert.pem
  key: key.pem
dashboard: { listen: 127.0.0.1:0 }
schedule: { default: off }
budget: { requests_per_minute: 100000 }
`

/** Prepares a warehouse with changes since its first sync. */
const prepare = Effect.fnUntraced(function* (stage: Stage) {
  stage.file("config/tributary.yaml", settings(stage))
  stage.file("customers.csv", customers("250.50").replace("Net 3O", "Net 30"))
  const first = yield* stage.shell("tributary sync")
  assert.strictEqual(first.code, 0, first.stderr)
  const paid = { id: 7, invoicepaid: "12.3400" }
  yield* stage.world.control("POST", "/records", { company: 1, resource: "invoices", records: [paid] })
  const second = yield* stage.shell("tributary sync invoices")
  assert.strictEqual(second.code, 0, second.stderr)
})

/** The text of a document with the ports and addresses of this folder. */
const filledIn = (stage: Stage, text: string) =>
  text
    // The reader is in the checkout, and the test in a folder of its own.
    .replaceAll(/(?<= )connectors\/service-v2\/\S+\/examples\//g, (path) => join(root, path))
    // A document may use free ports of its reader's machine. In the test, other programs may use them.
    .replaceAll("8123", String(stage.ports[0]))
    .replaceAll("8124", String(stage.ports[1]))
    .replaceAll("https://erp.example.com/!/api/v2", stage.world.reference.baseUrl)
    .replaceAll("<baseUrl>", stage.world.reference.baseUrl)
    .replaceAll("<controlUrl>", stage.world.reference.controlUrl)
    .replaceAll("<token>", stage.token)
    .replaceAll("'…'", `'${stage.token}'`)

const makeReader = (stage: Stage) => {
  const problems: Array<string> = []
  const tally = { run: 0, statements: 0, settings: 0, shown: 0 }
  const left: Array<string> = []
  /** The variables of the reader's shell. */
  let variables = ""
  let printed = ""
  const running: Array<RunningCommand> = []

  const line = Effect.fnUntraced(function* (at: string, shellLine: string) {
    const reason = notHere.find(([pattern]) => pattern.test(shellLine))
    if (reason !== undefined) {
      left.push(`${at} ${shellLine}: ${reason[1]}`)
      return
    }
    const meant = instead.find(([pattern]) => pattern.test(shellLine))?.[1] ?? shellLine
    tally.run += 1
    if (/^(?:export\s|[A-Z_]+=\S+(?:;|$))/.test(meant) || /^[A-Z_]+=\$\(/.test(meant)) {
      variables += `${meant}\n`
      return
    }
    const serves = serving.find(([pattern]) => pattern.test(meant))
    if (serves !== undefined) {
      yield* stage.begin(`${variables}${meant}`, serves[1]).pipe(
        Effect.map((one) => running.push(one)),
        Effect.catch((error) => Effect.sync(() => problems.push(`${at} ${shellLine}\n${error.message}`)))
      )
      return
    }
    const ran = yield* stage.shell(`${variables}${meant}`)
    printed += `${ran.stdout}${ran.stderr}`
    const right = codes.find(([pattern]) => pattern.test(meant))?.[1] ?? [0]
    if (ran.code === null || !right.includes(ran.code)) {
      problems.push(`${at} ${shellLine}\nended with ${ran.code}\n${ran.stdout.slice(-400)}${ran.stderr.slice(-800)}`)
    }
  })

  const compare = (at: string, shown: string) => {
    tally.shown += 1
    const missing = unprintedLines(shown, printed)
    if (missing.length > 0) problems.push(`${at} shows what is not printed:\n${missing.join("\n")}\nbut:\n${printed}`)
  }

  const session = Effect.fnUntraced(function* ({ at, text }: Block, output: string) {
    for (const { command, output: shown } of sessionOf(text)) {
      printed = ""
      // A shown file is the reader's own file.
      const [, file] = /^cat (\S+)$/.exec(command) ?? []
      if (file !== undefined) stage.file(file, `${shown}\n`)
      yield* line(at, command)
      if (shown !== "") compare(at, shown)
    }
    printed = output
  })

  const sql = Effect.fnUntraced(function* ({ at, text }: Block) {
    const statements = text.split(/;\s*(?:\n|$)/).filter((one) => one.replace(/--.*$/gm, "").trim() !== "")
    const answers = yield* Effect.promise(async () => {
      const client = new pg.Client({ connectionString: stage.world.databaseUrl })
      await client.connect()
      try {
        const rows: Array<number | string> = []
        for (const statement of statements) {
          rows.push(await client.query(statement).then((one) => one.rowCount ?? 0, String))
        }
        return rows
      } finally {
        await client.end()
      }
    })
    for (const [index, statement] of statements.entries()) {
      const answer = answers[index]!
      const isQuestion = /^\s*(?:--.*\n\s*)*(?:select|with)\b/i.test(statement)
      tally.statements += 1
      if (typeof answer === "string") problems.push(`${at} ${answer}\n${statement}`)
      else if (answer === 0 && isQuestion && !mayFindNothing.some((pattern) => pattern.test(statement))) {
        problems.push(`${at} finds nothing:\n${statement}`)
      }
    }
  })

  /** Loads a part of a configuration. The environment configures its company. */
  const yaml = Effect.fnUntraced(function* ({ at, text }: Block) {
    tally.settings += 1
    const folder = join(stage.world.folder, "settings")
    mkdirSync(folder, { recursive: true })
    const file = join(folder, "tributary.yaml")
    writeFileSync(file, text)
    const environment = {
      SERVICE_API_URL: stage.world.reference.baseUrl,
      SERVICE_API_TOKEN: stage.token,
      TRIBUTARY_DASHBOARD_PASSWORD: "long enough",
      CHANGES_SECRET: changesSecret,
      TEAM_SLACK_URL: "https://hooks.example.com/team"
    }
    yield* Configuration.load({ config: file }, environment).pipe(
      Effect.catch(({ problems: messages }) => Effect.sync(() => problems.push(`${at}\n${messages.join("\n")}`)))
    )
  })

  /** Runs the code of a receiver with a message that is signed by its secret, and with a forged one. */
  const receive = ({ at, text }: Block) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      tally.run += 1
      const body = '{"type":"orders.update","data":{"id":1}}'
      const sentAt = new Date(now)
      const receiver = (rawBody: string): unknown => {
        const headers = {
          "webhook-id": "chg_1",
          "webhook-timestamp": String(Math.floor(sentAt.getTime() / 1000)),
          "webhook-signature": new Webhook(changesSecret).sign("chg_1", sentAt, body)
        }
        const environment = { env: { CHANGES_SECRET: changesSecret } }
        const code = `(() => { ${text.replace(/^import .*$/m, "")}\nreturn type })()`
        return runInNewContext(code, { Webhook, process: environment, rawBody, headers })
      }
      const type = receiver(body)
      if (type !== "orders.update") problems.push(`${at} answers ${String(type)}`)
      try {
        receiver(body.replace("1", "2"))
        problems.push(`${at} accepts a forged message`)
      } catch {
        // As the block states.
      }
    })

  const read = Effect.fnUntraced(function* (rawBlock: Block) {
    const block = { ...rawBlock, text: filledIn(stage, rawBlock.text) }
    for (const [text, beforeBlock] of between) if (block.text.includes(text)) beforeBlock(stage)
    switch (block.kind) {
      case "shell":
        printed = ""
        for (const one of linesOf(block.text)) yield* line(block.at, one)
        return
      case "session":
        return yield* session(block, printed)
      case "output":
        return compare(block.at, block.text)
      case "sql":
        return yield* sql(block)
      case "yaml":
        return yield* yaml(block)
      case "receiver":
        return yield* receive(block)
      case "package":
        left.push(`${block.at}: test/package/Modules.long.test.ts runs it`)
        return
      case "foreign":
        left.push(`${block.at}: for another program`)
        return
      case "program":
        printed = ""
        stage.file(`program.${block.language}`, block.text)
        return yield* line(block.at, `${interpreters[block.language]} program.${block.language}`)
      case "picture":
        return
    }
  })

  return { read, problems, tally, left, end: Effect.suspend(() => Effect.forEach(running, ({ stop }) => stop)) }
}

/** Runs the blocks of a page. Fails with the list of those that do not work as shown. */
export const readPage = (page: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const blocks = blocksOf(page)
      const stage = yield* makeStage
      yield* prepare(stage)
      const reader = makeReader(stage)
      for (const block of blocks) yield* reader.read(block)
      yield* reader.end
      assert.strictEqual(reader.problems.join("\n\n"), "")
      const { run, statements, settings, shown } = reader.tally
      console.log(
        `${page}: ${run} lines, ${statements} statements, ${settings} settings, ${shown} outputs compared; not run:` +
          (reader.left.length === 0 ? " none" : `\n  ${reader.left.join("\n  ")}`)
      )
    })
  )
