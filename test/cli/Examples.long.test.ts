/**
 * Every example in the help of a command, run in a prepared folder. Placeholders such as RESOURCE or a number are
 * replaced. An example without preparation fails.
 */
import { mkdirSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Command from "effect/cli/Command"
import { rootFor } from "../../src/cli/Program.ts"
import { makeStage, type Stage } from "../support/stage.ts"

interface Prepared {
  /** The preparation of the folder. */
  readonly first?: (stage: Stage) => Effect.Effect<unknown>
  /** The line that is run instead, for an example with placeholders. */
  readonly as?: string | ((stage: Stage) => Effect.Effect<string>)
  /** The expected exit code, 0 by default. */
  readonly code?: number
  /** The expected text of standard output, or of the file that it was redirected to. */
  readonly says: RegExp
  /** The command runs until it is stopped, and prints this text when it is ready. */
  readonly serves?: true
  /** Answers to the prompts of the command, by a pattern of the prompt. */
  readonly answers?: ReadonlyArray<readonly [RegExp, string]>
}

/** A receiver that accepts every request, until the end of the tests. */
const acceptingReceiver = Effect.callback<string>((resume) => {
  const server = createServer((request, response) => request.resume().on("end", () => response.end("ok")))
  server.listen(0, "127.0.0.1", () =>
    resume(Effect.succeed(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`))
  )
  server.unref()
})

const subscriptionOf = (stage: Stage, address: string) =>
  Effect.map(stage.shell("tributary webhooks list --json"), ({ stdout, stderr }) => {
    const { companies } = JSON.parse(stdout) as {
      companies?: ReadonlyArray<{
        subscriptions: ReadonlyArray<{ subscription: { readonly id: string; readonly url: string } }>
      }>
    }
    const match = companies?.[0]?.subscriptions.find(({ subscription }) => subscription.url.startsWith(address))
    if (match === undefined) throw new Error(`no subscription to ${address}: ${stdout}${stderr}`)
    return match.subscription.id
  })

const lastMonth = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - 1, 1))
  .toISOString()
  .slice(0, 7)

const elsewhere = "https://elsewhere.example.com"

const records = "externalid,customercode,name\nE-1,EXAMPL01,One\nE-2,EXAMPL02,Two\n"

const push = "tributary push customers --from records.csv"

/**
 * A line for a push of which the source has rejected the record with this externalid. N in the line is replaced by the
 * number of the push.
 */
const refused = (externalid: string, line: string) => (stage: Stage) =>
  Effect.gen(function* () {
    const code = externalid.replace("-", "")
    stage.file("bad.csv", `externalid,customercode,name,invoiceterm\n${externalid},${code},Bad,no such term\n`)
    const { stdout } = yield* stage.shell("tributary push customers --from bad.csv --json || true")
    return line.replace("N", String((JSON.parse(stdout) as { readonly push: number }).push))
  })

/** A line with a configuration that has a route to a receiver of this machine. */
const routed = (line: string) => (stage: Stage) =>
  Effect.map(acceptingReceiver, (url) => {
    stage.file("routed.yaml", `alerts: { routes: [{ name: team, slack: { url_env: TEAM_SLACK_URL } }] }\n`)
    return `export TEAM_SLACK_URL=${url}; ${line}`
  })

const key = "TRIBUTARY_COMPANIES_KEY=0123456789abcdef0123456789abcdef"

/** A line about a company of the warehouse, with the key, and with a token of company 2 where it begins with `$TOKEN`. */
const stored = (line: string) => (stage: Stage) =>
  Effect.map(
    Effect.promise(() => stage.world.reference.token(2)),
    (token) => `export ${key}; ${line.replaceAll("$TOKEN", token)}`
  )

/** A line about an endpoint whose secret is sealed in the warehouse. */
const endpoint = (line: string) => `export ${key}; ${line}`

const otherDatabase = ({ world }: Stage) => `${new URL(world.databaseUrl).pathname.slice(1)}_other`

/** A line about a company of the warehouse, with the address of another one. */
const movedTo = (line: string) => (stage: Stage) => {
  const url = new URL(stage.world.databaseUrl)
  url.pathname = `/${otherDatabase(stage)}`
  return stored(`export OTHER_DATABASE_URL='${url.href}'; ${line}`)(stage)
}

/** The preparations by example, as the help shows it, in the order in which they run. */
const prepared: Readonly<Record<string, Prepared>> = {
  "tributary demo": { says: /are equal/ },
  "tributary demo --serve": { serves: true, says: /dashboard is at http:\/\/127\.0\.0\.1:\d+/ },
  "tributary status --demo --json": { says: /"resource":"customers"/ },
  "tributary init": {
    as: "mkdir -p asked && cd asked && tributary init",
    answers: [
      /Address of the service/,
      /Use the token/,
      /Name of the company/,
      /Another company/,
      /Where is the warehouse/,
      /Which resources/,
      /Maximum age of a resource/,
      /Public https address/,
      /Password for the dashboard/
    ].map((question) => [question, "\r"] as const),
    says: /tributary doctor[^]*tributary sync/
  },
  "tributary init --yes --url https://erp.example.com/!/api/v2 --company north --token-env NORTH_TOKEN": {
    as:
      "mkdir -p scripted && cd scripted && NORTH_TOKEN=$SERVICE_API_TOKEN " +
      "tributary init --yes --url $SERVICE_API_URL --company north --token-env NORTH_TOKEN",
    says: /tributary doctor[^]*tributary sync/
  },
  "tributary reference-server --data demo": { serves: true, says: /"baseUrl"/ },
  "tributary reference-server --port 8080 --control-port 8081 --data empty": {
    as: "tributary reference-server --port 0 --control-port 0 --data empty",
    serves: true,
    says: /"baseUrl"/
  },
  "tributary radar --url https://erp.example.com/!/api/v2 --token-env ERP_TOKEN": {
    as: "ERP_TOKEN=$SERVICE_API_TOKEN tributary radar --requests 60 --url $SERVICE_API_URL --token-env ERP_TOKEN",
    says: /no difference from the documentation/
  },
  "tributary radar --company north --rate 60": {
    as: "tributary radar --company main --rate 600 --requests 40",
    says: /40 requests/
  },
  "tributary radar --record erp.radar.json": {
    as: "tributary radar --record erp.radar.json --requests 60",
    says: /no difference[^]*the answers are in erp\.radar\.json/
  },
  "tributary radar --json": { as: "tributary radar --json --requests 60", says: /"code":0,.*"differences":\[\]/ },
  "tributary reference-server --like erp.radar.json": { serves: true, says: /"baseUrl"/ },
  "tributary reference-server --save-on-exit state.ndjson": { serves: true, says: /"baseUrl"/ },
  "tributary reference-server --host 0.0.0.0 --tls self-signed": { serves: true, says: /"certificate"/ },
  "tributary plan": { says: /customers/ },
  "tributary plan --backfill --since 2026-01-01": { says: /customers/ },
  "tributary sync": { says: /resources in .* new/ },
  "tributary plan --no-probe --json": { says: /"resource":"customers"/ },
  "tributary sync --full --json": { says: /"resource":"customers"/ },
  "tributary backfill": { says: /resources in/ },
  "tributary backfill --since 2026-01-01 --until 2026-01-31": { says: /resources in/ },
  "tributary status": { says: /customers/ },
  "tributary status --state late": { says: /./ },
  "tributary status --company north": { as: "tributary status --company main", says: /customers/ },
  "tributary verify": { says: /equal/ },
  "tributary verify --sample 200": { says: /equal/ },
  "tributary verify --resource RESOURCE --repair": {
    as: "tributary verify --resource customers --repair",
    says: /equal/
  },
  "tributary explain RESOURCE 17": { as: "tributary explain customers 17", says: /version 1/ },
  "tributary explain RESOURCE 17 --company 2 --json": {
    as: "tributary explain customers 17 --company 1 --json",
    says: /"explanations":\[\{/
  },
  'tributary query "select resource, status, records from tributary.runs order by id desc limit 5"': {
    says: /complete|done|succeeded|ok/
  },
  'tributary query --as-of "2026-10-31 23:59:59+00" "select count(*) from RESOURCE where _deleted_at is null"': {
    as: 'tributary query --as-of now "select count(*) from customers where _deleted_at is null"',
    says: /count\s+[1-9]/
  },
  'tributary query --as-of "position 12345" "select * from RESOURCE order by id limit 5"': {
    as: 'tributary query --as-of "position 1" "select count(*) from customers"',
    says: /count\s+\d/
  },
  "tributary schema plan": {
    first: (stage) =>
      Effect.gen(function* () {
        yield* stage.world.control("POST", "/records", {
          company: 1,
          resource: "items",
          records: [{ id: 990_001, colour: "red", weight: 3 }]
        })
        yield* stage.shell("tributary sync items")
      }),
    says: /colour/
  },
  "tributary schema apply --field widgets.colour --type text": {
    as: "tributary schema apply --field items.colour --type text",
    says: /items\.colour has the column colour \(text\) now/
  },
  "tributary schema apply": { says: /items\.weight has the column weight/ },
  "tributary schema repair --dry-run": { says: /No table is damaged/ },
  "tributary schema repair": { says: /No table is damaged/ },
  "tributary schema grants | psql": { says: /GRANT|done/ },
  "tributary schema grants --owner etl | sudo -u postgres psql": {
    as: "tributary schema grants --owner etl",
    says: /alter default privileges for role "?etl"?/i
  },
  // The tests' Postgres has no logical replication: the command says so, and ends with 4.
  "tributary schema publication | psql": { code: 4, says: /CREATE PUBLICATION|done/ },
  "tributary schema publication --name north --company north": {
    as: "tributary schema publication --name north --company main",
    code: 4,
    says: /create publication "north" for table .* where \(_company_id = 1\)/
  },
  // The standard input ends at once, as when an assistant ends.
  "tributary mcp": { says: /^$/ },
  "tributary mcp --demo": { says: /^$/ },
  "tributary changes": { says: /^\{"position":1,.*"op":"insert".*"before":null,"after":\{/ },
  "tributary changes widgets --from now --follow": {
    as: "tributary changes customers --from 1 --follow",
    serves: true,
    says: /"resource":"customers"/
  },
  "tributary export --since 1200-1f3a9c --to ./changed": {
    as: "tributary export --since 1 --to ./changed",
    says: /changed rows of \d+ tables/
  },
  "tributary export --to ./files": { says: /rows of \d+ tables as of .*\(parquet, / },
  "tributary export widgets --history --format ndjson --to ./files": {
    as: "tributary export customers --history --format ndjson --to ./files",
    says: /rows of 2 tables as of .*\(ndjson, /
  },
  "tributary close 2026-10": { as: `tributary close ${lastMonth}`, says: /company main \(1\): \d{4}-\d\d is clean/ },
  "tributary close 2026-10 --company north --draft": {
    as: `tributary close ${lastMonth} --company main --draft`,
    says: /draft of \d{4}-\d\d is clean/
  },
  "tributary close --compare 2026-10": {
    as: `tributary close --compare ${lastMonth}`,
    says: /no record changed it since/
  },
  "tributary close --verify closes/2026-10-north.json": {
    as: `tributary close --verify closes/${lastMonth}-main.json`,
    says: /is what was signed/
  },
  "tributary reference-server --from-warehouse": { serves: true, says: /"companies":\[\{"name":"main"/ },
  "tributary schema dbt --out models/sources": { says: /models\/sources\/.*tables? with columns/ },
  "tributary schema dbt --catalogue-only": { says: /version: 2[^]*customers/ },

  [`tributary push RESOURCE --from records.csv --dry-run`]: {
    first: (stage) => Effect.sync(() => stage.file("records.csv", records)),
    as: `${push} --dry-run`,
    says: /2 records would be created/
  },
  "tributary push RESOURCE --from records.csv --rehearse --dry-run": {
    as: `${push} --rehearse --dry-run`,
    says: /rehearsal of customers of main: 2 created/
  },
  "tributary push RESOURCE --from records.csv": { as: push, says: /2 created/ },
  "tributary push RESOURCE --from changes.ndjson --update": {
    first: (stage) => Effect.sync(() => stage.file("changes.ndjson", '{"externalid":"E-1","name":"Uno"}\n')),
    as: "tributary push customers --from changes.ndjson --update",
    says: /1 updated/
  },
  'tributary push RESOURCE --from "select ..." --json': {
    as: "tributary push customers --from \"select 'E-3' as externalid, 'EXAMPL03' as customercode, 'Three' as name\" --json",
    says: /"created":1/
  },
  "tributary push status": { says: /customers/ },
  "tributary push status 3 --json": { says: /"push":"?3|"id":"?3/ },
  "tributary push retry": { says: /./ },
  "tributary push release": { says: /Pushes were not paused/ },
  "tributary push export-refused 3 --to refused.ndjson": {
    as: refused("B-1", "tributary push export-refused N --to refused.ndjson && cat refused.ndjson"),
    says: /"externalid":"B-1"/
  },
  "tributary push export-refused 3 --to refused.csv": {
    as: refused("B-2", "tributary push export-refused N --to refused.csv && cat refused.csv"),
    says: /B-2/
  },
  "tributary push retry 3 --refused": {
    as: refused("B-3", "tributary push retry N --refused"),
    // The source rejects the record once more.
    code: 4,
    says: /1 refused/
  },

  "tributary serve link": {
    as: "tributary serve link --dashboard 127.0.0.1:9001",
    says: /^http:\/\/\S+\/open\?token=/m
  },
  "tributary serve tokens add assistant": { says: /Token assistant reads the dashboard/ },
  "tributary serve tokens list --json": { says: /"name":"assistant"/ },
  "tributary serve tokens revoke assistant": { says: /Token assistant is revoked/ },
  "tributary serve": { serves: true, says: /Receiving events at/ },
  "tributary serve --listen 127.0.0.1:9000 --json": {
    as: "tributary serve --listen 127.0.0.1:0 --json",
    serves: true,
    says: /"ready":true/
  },
  "tributary serve --dashboard 127.0.0.1:9001": {
    as: "tributary serve --dashboard 127.0.0.1:0",
    serves: true,
    says: /http:\/\/127\.0\.0\.1:\d+/
  },
  "tributary alerts test": {
    as: routed("tributary alerts test --config routed.yaml"),
    says: /team: accepted/
  },
  "tributary alerts test team --json": {
    as: routed("tributary alerts test team --json --config routed.yaml"),
    says: /"route":"team","isAccepted":true/
  },
  "tributary alerts list": { says: /no route is configured/ },
  "tributary alerts silence --kind late --company north --for 2h": { says: /silence 1: late of north until/ },
  'tributary alerts silence --until 2030-01-01 --reason "migration" --json': { says: /"reason":"migration"/ },
  "tributary alerts unsilence 3": { as: "tributary alerts unsilence 1", says: /ended silence 1: late of north/ },
  "tributary alerts unsilence --all --json": { says: /"ended":\[\{"id":2/ },
  "tributary alerts history": { says: /no message was written yet/ },
  "tributary alerts history --limit 500 --json": { says: /"messages":\[\]/ },
  "tributary webhooks ensure": {
    first: (stage) => Effect.orDie(stage.begin("tributary serve", /Receiving events at/)),
    says: /subscription \d+ .*delivers/s
  },
  "tributary webhooks ensure --company main --json": { says: /"deeds":\[\]/ },
  "tributary webhooks create --url https://elsewhere.example.com/in --event resource.created": {
    as: `tributary webhooks create --url ${elsewhere}/in --event orders.created`,
    says: /elsewhere\.example\.com/
  },
  "tributary webhooks list": { says: /elsewhere\.example\.com/ },
  "tributary webhooks test": { says: /204/ },
  "tributary doctor": { says: /0 failed|\d+ ok/ },
  "tributary doctor --company main --send-test": { says: /\d+ ok/ },
  "tributary doctor --json": { says: /"ok":true/ },
  "tributary webhooks rotate": { says: /subscription/ },
  "tributary webhooks rotate 7 --secret-env HOOK_SECRET": {
    as: (stage) =>
      Effect.map(
        subscriptionOf(stage, elsewhere),
        (id) => `HOOK_SECRET=a-secret-of-my-own tributary webhooks rotate ${id} --secret-env HOOK_SECRET`
      ),
    says: /subscription/
  },
  "tributary processes": { says: /heartbeat|no process of serve/ },
  "tributary processes --company main --json": { says: /"processes":/ },
  "tributary budget": { says: /requests a minute|no limit|no request/ },
  "tributary budget release": { says: /pause|released/ },
  "tributary budget release --company main": { says: /main: / },
  "tributary webhooks pause": { says: /is paused/ },
  "tributary webhooks pause 7 --company main --json": {
    as: (stage) =>
      Effect.map(subscriptionOf(stage, elsewhere), (id) => `tributary webhooks pause ${id} --company main --json`),
    says: /"paused":true/
  },
  "tributary webhooks resume": { says: /./ },
  "tributary webhooks resume 7 --company main --json": {
    as: (stage) =>
      Effect.map(subscriptionOf(stage, elsewhere), (id) => `tributary webhooks resume ${id} --company main --json`),
    says: /"paused":false/
  },
  "tributary webhooks deliveries": { says: /delivered/ },
  "tributary webhooks deliveries --abandoned --limit 100": { says: /no such delivery/ },
  "tributary webhooks replay": { says: /0 events are pending again/ },
  "tributary webhooks replay --ignored --resource NAME": {
    as: "tributary webhooks replay --ignored --resource customers",
    says: /0 events are pending again/
  },
  "tributary webhooks replay --event evt_1 --json": {
    as: (stage) =>
      Effect.map(
        stage.world.query<{ id: string }>("select event_id as id from tributary.inbox limit 1"),
        ([event]) => `tributary webhooks replay --event ${event!.id} --json`
      ),
    says: /"events":1/
  },
  "tributary webhooks delete 7": {
    as: (stage) => Effect.map(subscriptionOf(stage, elsewhere), (id) => `tributary webhooks delete ${id}`),
    says: /subscription/
  },

  "tributary changes endpoints add app --url https://app.example.com/changes": {
    as: endpoint("tributary changes endpoints add app --url http://127.0.0.1:9/changes --allow-private"),
    says: /Added endpoint app: .*after position[^]*whsec_/
  },
  "tributary changes endpoints add app2 --url https://app.example.com/changes --resource RESOURCE --operation update --field status --batch 100 --from beginning":
    {
      as: endpoint(
        "tributary changes endpoints add app2 --url https://app.example.com/changes --resource orders --operation update --field status --batch 100 --from beginning"
      ),
      says: /Added endpoint app2: .*after position 0/
    },
  "tributary changes endpoints list --json": { says: /"name":"app"/ },
  // Nothing listens there.
  "tributary changes endpoints test app": {
    as: endpoint("tributary changes endpoints test app"),
    code: 5,
    says: /Endpoint app did not accept a test message: .*ECONNREFUSED/
  },
  "tributary changes endpoints pause app": { says: /Paused endpoint app/ },
  "tributary changes endpoints resume app": { says: /Resumed endpoint app/ },
  "tributary changes endpoints resume app --from now": { says: /Resumed endpoint app/ },
  "tributary changes endpoints rotate app": {
    as: endpoint("tributary changes endpoints rotate app"),
    says: /24 hours[^]*whsec_/
  },
  "tributary changes endpoints replay app": { says: /0 dead letters of endpoint app/ },
  "tributary changes endpoints replay app --since 1200": { says: /0 dead letters/ },
  "tributary changes endpoints remove app": { says: /Removed endpoint app/ },

  "tributary company add north --token-env NORTH_TOKEN": {
    as: stored("NORTH_TOKEN=$TOKEN tributary company add north --token-env NORTH_TOKEN"),
    says: /Added company north: number 2/
  },
  "tributary company list --json": { as: stored("tributary company list --json"), says: /"company":"north"/ },
  "tributary company pause north": { as: stored("tributary company pause north"), says: /north/ },
  "tributary company resume north": { as: stored("tributary company resume north"), says: /north/ },
  "tributary company rotate-token north --token-env NORTH_TOKEN": {
    as: stored("NORTH_TOKEN=$TOKEN tributary company rotate-token north --token-env NORTH_TOKEN"),
    says: /north/
  },
  "tributary schema grants --company north | psql": {
    as: stored("tributary schema grants --company north | psql"),
    says: /./
  },
  "tributary company move north --to-env OTHER_DATABASE_URL --dry-run": {
    first: (stage) => stage.world.query(`create database ${otherDatabase(stage)}`),
    as: movedTo("tributary company move north --to-env OTHER_DATABASE_URL --dry-run"),
    says: /Would move company north[^]*and migrate the target: 0001/
  },
  "tributary company move north --to-env OTHER_DATABASE_URL": {
    as: movedTo(
      "tributary company move north --to-env OTHER_DATABASE_URL && FIRST_DATABASE_URL=$DATABASE_URL " +
        "DATABASE_URL=$OTHER_DATABASE_URL tributary company move north --to-env FIRST_DATABASE_URL"
    ),
    says: /Moved company north[^]*Moved company north/
  },
  "tributary company remove north": {
    as: stored("tributary company remove north"),
    says: /Removed company north: its rows stay/
  },
  "tributary company add north --token-stdin --resource RESOURCE < token.txt": {
    as: stored("echo $TOKEN > token.txt; tributary company add north --token-stdin --resource customers < token.txt"),
    says: /Added company north: number 2/
  },
  "tributary company remove north --erase --yes": {
    as: stored("tributary company remove north --erase --yes"),
    says: /Removed company north: .*deleted/
  },

  "tributary completions bash > ~/.local/share/bash-completion/completions/tributary": {
    first: (stage) =>
      Effect.sync(() => {
        for (const folder of [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"]) {
          mkdirSync(join(stage.world.folder, "home", folder), { recursive: true })
        }
      }),
    as:
      "tributary completions bash > ~/.local/share/bash-completion/completions/tributary; " +
      "cat ~/.local/share/bash-completion/completions/tributary",
    says: /complete .*tributary/
  },
  'tributary completions zsh > "${fpath[1]}/_tributary"': {
    // Arrays of bash begin at index 0.
    as: 'fpath=("" ~/.zfunc); tributary completions zsh > "${fpath[1]}/_tributary"; cat ~/.zfunc/_tributary',
    says: /#compdef tributary/
  },
  "tributary completions fish > ~/.config/fish/completions/tributary.fish": {
    as:
      "tributary completions fish > ~/.config/fish/completions/tributary.fish; " +
      "cat ~/.config/fish/completions/tributary.fish",
    says: /complete -c tributary/
  }
}

interface Shown {
  readonly of: string
  readonly examples: ReadonlyArray<string>
  readonly isGroup: boolean
}

/** Every command with the examples of its help. Subcommands follow their parent command. */
const commandsOf = (command: Command.Command.Any, path: string): ReadonlyArray<Shown> => {
  const subcommands = command.subcommands.flatMap(({ commands }) => commands)
  return [
    { of: path, examples: command.examples.map((one) => one.command), isGroup: subcommands.length > 0 },
    ...subcommands.flatMap((one) => commandsOf(one, `${path} ${one.name}`))
  ]
}

describe("the examples in --help", () => {
  it.effect("exist for every command, and each has an expected result in this file", () =>
    Effect.gen(function* () {
      const commands = commandsOf(yield* rootFor([]), "tributary")
      assert.deepStrictEqual(
        commands.filter(({ examples, isGroup }) => !isGroup && examples.length === 0).map((one) => one.of),
        []
      )
      const shown = commands.flatMap(({ examples }) => examples)
      assert.deepStrictEqual(
        shown.filter((example) => prepared[example] === undefined),
        []
      )
      assert.deepStrictEqual(
        Object.keys(prepared).filter((example) => !shown.includes(example)),
        []
      )
    })
  )

  it.live(
    "run with the expected exit code and output",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const stage = yield* makeStage
          stage.file(
            "config/tributary.yaml",
            `webhooks:
  listen: ${new URL(stage.receiverUrl).host.replace("localhost", "127.0.0.1")}
  public_url: ${stage.receiverUrl}
  certificate: cert.pem
  key: key.pem
dashboard: { listen: 127.0.0.1:0 }
schedule: { default: off }
budget: { requests_per_minute: 100000 }
`
          )
          const problems: Array<string> = []
          for (const [example, { first, as, code = 0, says, serves, answers }] of Object.entries(prepared)) {
            const began = performance.now()
            const attempt = Effect.gen(function* () {
              if (first !== undefined) yield* first(stage)
              const line = as === undefined ? example : typeof as === "string" ? as : yield* as(stage)
              if (answers !== undefined) return yield* stage.converse(line, answers)
              if (serves === undefined) return yield* stage.shell(line)
              const command = yield* stage.begin(line, says)
              return yield* command.stop
            })
            const {
              code: exitCode,
              stdout,
              stderr
            } = yield* attempt.pipe(
              Effect.catchCause((cause) => Effect.succeed({ code: null, stdout: "", stderr: Cause.pretty(cause) }))
            )
            console.log(`${String(Math.round(performance.now() - began)).padStart(6)} ms  ${example}`)
            // Ctrl-C stopped a server.
            const codes = serves === true ? [0, 130] : [code]
            if (exitCode === null || !codes.includes(exitCode) || !says.test(stdout)) {
              problems.push(`${example} ended with ${exitCode}\n${stdout.slice(-600)}\n${stderr.slice(-600)}`)
            }
          }
          assert.strictEqual(problems.join("\n\n"), "")
        })
      ),
    { timeout: 600_000 }
  )
})
