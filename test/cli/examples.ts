/**
 * The examples in the help of every command, each with its preparation and its expected result, and cases beyond them.
 * Placeholders such as RESOURCE or a number are replaced. `Examples.test.ts` compares the table with the help,
 * `Examples.long.test.ts` runs it.
 */
import { mkdirSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type { Stage } from "../support/stage.ts"

export interface Prepared {
  /** The preparation of the folder. */
  readonly first?: (stage: Stage) => Effect.Effect<unknown>
  /** The line that is run instead, for an example with placeholders. */
  readonly as?: string | ((stage: Stage) => Effect.Effect<string>)
  /** The expected exit code, 0 by default. */
  readonly code?: number
  /** The expected text of standard output, or of the file that it was redirected to. */
  readonly says: RegExp
  /** The expected text of standard error. */
  readonly warns?: RegExp
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

/** The month before this one, by the shell. */
const lastMonth = '$(date -u -d "$(date -u +%Y-%m-15) -1 month" +%Y-%m)'

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
export const examples: Readonly<Record<string, Prepared>> = {
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

/** A line that ends with a code and a message on standard error, and prints nothing else. */
const fails = (as: string, code: number, warns: RegExp): Prepared => ({ as, code, says: /^$/, warns })

const configured = (name: string, yaml: string, line: string) =>
  `printf '${yaml}\\n' > ${name}; ${line} --config ${name}`

/** Commands beyond those of the help, by what they show, before the first sync. */
export const casesBefore: Readonly<Record<string, Prepared>> = {
  "an unknown flag": fails("tributary sync --nope", 1, /USAGE/),
  "an unknown command": fails("tributary nope", 1, /USAGE/),
  "a missing argument": fails("tributary query", 1, /USAGE/),
  "a warehouse without a sync": { as: "tributary status", says: /Nothing has been synced yet/ },
  "an explanation without a sync": fails("tributary explain invoices 1", 1, /nothing has been synced yet/),
  "no settings": fails(
    "SERVICE_API_URL= SERVICE_API_TOKEN= tributary sync",
    2,
    /set SERVICE_API_URL and SERVICE_API_TOKEN/
  ),
  "an unknown resource": fails("tributary sync nonsense", 2, /there is no resource "nonsense"/),
  "an unknown resource of a backfill": fails("tributary backfill nonsense", 2, /there is no resource "nonsense"/),
  "plain http": fails("SERVICE_API_URL='http://erp.example.com/!/api/v2' tributary sync", 2, /http/),
  "an unknown setting": fails(
    configured("odd.yaml", "pagging: {}", "tributary sync"),
    2,
    /odd\.yaml:1:\d+: pagging: there is no such setting; allowed: /
  ),
  "an unreachable warehouse": fails(
    "DATABASE_URL=postgres://a:s3cretword@127.0.0.1:1/x tributary status",
    5,
    /cannot reach Postgres at 127\.0\.0\.1:1/
  ),
  "an unknown format of the log": fails("TRIBUTARY_LOG_FORMAT=xml tributary status", 2, /must be .*text, json/),
  "an unknown level of the log": fails("TRIBUTARY_LOG_LEVEL=loud tributary status", 2, /must be .*trace, debug, info/),
  "a collector without an address": fails(
    "OTEL_EXPORTER_OTLP_ENDPOINT=secret-9d7 tributary status",
    2,
    /^(?![^]*9d7)[^]*must be an address/
  ),
  "a range that is no time": fails("tributary backfill --since 'last week'", 1, /2026-01-31T08:00:00Z/),
  "a range that ends before it begins": fails(
    "tributary backfill --since 2026-02-01 --until 2026-01-01",
    1,
    /--since must be before --until/
  ),
  "a range without a backfill": fails("tributary plan --since 2026-01-01", 1, /add --backfill/)
}

const readOnly = (statement: string, warns: RegExp) => fails(`tributary query "${statement}"`, 1, warns)

/** Commands beyond those of the help, after the first sync of every resource. */
export const casesAfter: Readonly<Record<string, Prepared>> = {
  "a second sync": { as: "tributary sync", says: /^\d+ resources in .*: nothing new \(/ },
  "values as JSON": {
    as: `tributary query --json "select 1.10::numeric as exact, 7::bigint as whole, true as flag, null as nothing, 'a\\"b' as text"`,
    says: /^\{"exact":"1\.10","whole":7,"flag":true,"nothing":null,"text":"a\\"b"\}$/m
  },
  "several statements": readOnly("commit; delete from erp.areas; select 1", /one read-only statement/),
  "a statement that is no query": readOnly("copy (select 1) to program 'true'", /one read-only statement/),
  "a function of superusers": readOnly("select pg_read_file('/etc/passwd')", /permission denied .*\(42501\)/),
  "no moment": fails(
    `tributary query --as-of "some day" "select 1"`,
    1,
    /tributary\.as_of is "some day" \(Set it to a moment/
  ),
  "a moment of the source before all records": {
    as: `tributary query --as-of 2000-01-01 --mode source --json "select count(*) as n from customers"`,
    says: /^\{"n":0\}$/m
  },
  "a token of another company": {
    as: configured(
      "other.yaml",
      "companies: [{ name: a, token_env: SERVICE_API_TOKEN, company_id: 7, resources: [salesmen] }]",
      "tributary sync --json"
    ),
    says: /"outcomes"/,
    warns: /WARN the token belongs to company 1, but company 7 is configured/
  },
  "a sample of nothing": fails("tributary verify --sample 0", 1, /sample/),
  "an unknown record": fails("tributary explain invoices 999999999", 1, /has no version of invoices 999999999/),
  "a difference": {
    first: ({ world }) =>
      world.query("update erp.invoices set invoicetotal = invoicetotal + 0.0001 where id = 7 and _company_id = 1"),
    as: "tributary verify invoices --json",
    code: 4,
    says: /^(?=.*"equal":false)(?=.*"status":"unequal")(?=.*"different":1)(?=.*"field":"invoicetotal")/
  },
  "its repair": {
    as: "tributary verify invoices --repair",
    says: /repair: 1 read again, 1 repaired, 0 left/
  },
  "its explanation": {
    as: "tributary explain invoices 7",
    says: /exists, \d+ versions[^]*invoicetotal +"[\d.]+1" → "/
  },
  "a field that no record has": fails(
    "tributary schema apply --field items.x_nope",
    2,
    /"items\.x_nope" is no unknown field of any record/
  ),
  "no name for a publication": fails(
    `tributary schema publication --name 'x"; drop table y'`,
    2,
    /is no name for a publication/
  ),
  "grants to a reader": { as: "tributary schema grants --reader analyst", says: /to "analyst";/ },
  "a missing scope": {
    first: ({ world }) =>
      world.control("POST", "/faults", {
        rules: [{ path: "/invoices", kind: "status", status: 403, code: "insufficient_scope" }]
      }),
    as: "tributary verify invoices",
    code: 3,
    says: /what to do: give the token the scope/
  },
  "the scope again": {
    first: ({ world }) => world.control("DELETE", "/faults"),
    as: "tributary verify invoices",
    says: /Equal: [\d,]+ records of 1 resource, every value, both ways/
  }
}

const file = (name: string, text: string) => (stage: Stage) => Effect.sync(() => stage.file(name, text))
const unreachable = "DATABASE_URL=postgres://none:nothing@127.0.0.1:1/none"
const good = `externalid,customercode,name,creditlimit,invoiceterm
T-1,TEST01,One,1.50,
T-2,TEST02,Two,2,Net 3O
T-3,TEST03,Three,3,
`

/** Pushes beyond the examples of the help. A push is known by its records, so that they are in this order. */
export const pushCases: Readonly<Record<string, Prepared>> = {
  "problems of a file": {
    first: file(
      "wrong.csv",
      "externalid,customercode,name,creditlimit\nT-1,TEST01,One,1.00001\nT-2,TEST02,Two,x\nT-1,TEST03,Three,3\n"
    ),
    // A dry run needs no warehouse.
    ...fails(
      `${unreachable} tributary push customers --from wrong.csv --dry-run`,
      2,
      /^line 2, creditlimit: .*1\.00001 has 5\nline 3, creditlimit: .*not "x"\ntributary: there are 2 problems in the input\n$/
    )
  },
  "problems as JSON": {
    as: `${unreachable} tributary push customers --from wrong.csv --dry-run --json`,
    code: 2,
    says: /^(?=.*"line":3)(?=.*must be a plain decimal)/
  },
  "two operations": fails(`tributary push customers --from wrong.csv --update --cancel`, 1, /--update|--cancel/),
  "a file that is missing": fails(
    "tributary push customers --from none.csv",
    2,
    /none\.csv cannot be read: there is no such file/
  ),
  "a token that may only read": {
    first: file("good.csv", good),
    as: (stage) =>
      Effect.map(
        Effect.promise(() => stage.world.reference.token(1, ["customers:read"])),
        (token) => `SERVICE_API_TOKEN=${token} tributary push customers --from good.csv`
      ),
    code: 3,
    says: /^$/,
    warns: /customers: the token lacks the scope customers:write/
  },
  "a record that is refused": {
    as: "tributary push customers --from good.csv",
    code: 4,
    says: /^push \d+ to customers of main is done: 2 created, 1 refused \(1 batch; [^)]+\)\n$/,
    warns:
      /line 3, externalid T-2: unknown_value, invoiceterm: [^]*tributary push export-refused \d+ --to refused\.ndjson/
  },
  "the pushed records in the warehouse": {
    as: `tributary query --json "select externalid, creditlimit, _origin from erp.customers where externalid ~ '^T-' order by 1"`,
    says: /^\{"externalid":"T-1","creditlimit":"1\.5000","_origin":"push"\}\n\{"externalid":"T-3","creditlimit":"3\.0000","_origin":"push"\}\n$/
  },
  "the same file again": {
    as: "tributary push customers --from good.csv --json",
    code: 4,
    says: /^(?=.*"given":3)(?=.*"known":3)(?=.*"sent":0)(?=.*"knownOpen":\{[^}]*"refused":1)/
  },
  "other values of a pushed record": {
    first: file("other.csv", good.replace("One", "Uno")),
    ...fails(
      "tributary push customers --from other.csv",
      2,
      /was pushed before \(push \d+\) with other values; change it with --update/
    )
  },
  "an update of an unknown record": {
    first: file("change.ndjson", '{"externalid":"T-1","creditlimit":"9.25"}\n{"externalid":"T-9","name":"None"}\n'),
    as: "tributary push customers --from change.ndjson --update --json",
    code: 4,
    says: /^(?=.*"line":2)(?=.*"code":"not_found")/
  },
  "a cancellation": {
    first: file("gone.ndjson", '{"externalid":"T-3"}\n'),
    as: "tributary push customers --from gone.ndjson --cancel",
    says: /is done: 1 cancelled \(1 call; /
  },
  "a file that exists": fails("tributary push export-refused --to good.csv", 1, /good\.csv exists already/),
  "a company that is not named": fails(
    configured(
      "two.yaml",
      "companies: [{ name: a, token_env: SERVICE_API_TOKEN }, { name: b, token_env: SERVICE_API_TOKEN }]",
      "tributary push customers --from good.csv --dry-run"
    ),
    1,
    /name one company with --company: a, b/
  )
}
