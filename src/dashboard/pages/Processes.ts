/** `/processes`: the processes of `serve`, what each does, and the runs in progress. */
import * as Effect from "effect/Effect"
import * as Processes from "../../status/Processes.ts"
import { ago, badge, count, duration, facts, none, section, table } from "../../web/Components.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { stateHead } from "../../web/StateHead.ts"
import { companyAddress, processAddress, resourceAddress, runAddress } from "../Addresses.ts"
import { html, type Html, page, PageError, type PageRequest, type Route } from "../Page.ts"
import { ofPath } from "../Params.ts"
import { endOf, nameOf, processChart, processTones, unreplacedOf } from "../ProcessChart.ts"

const path = "/processes"
const namesMax = 5
const companiesMax = 200
const runsMax = 50

/** The companies that a live process owns, by the name of the process. */
type Owned = ReadonlyMap<string, ReadonlyArray<Processes.OwnedCompany>>

const ownedBy = ({ processes }: Processes.ProcessesStatus): Owned =>
  new Map(processes.map(({ processId, companies }) => [processId, companies]))

/** The process that owns a company. */
const ownerIn =
  (owned: Owned) =>
  (company: string | null): string | undefined =>
    [...owned].find(([, companies]) => companies.some((one) => one.company === company))?.[0]

const names = (companies: ReadonlyArray<string>): Html =>
  html`${companies
    .slice(0, namesMax)
    .map(
      (name, index) => html`${index === 0 ? "" : ", "}<a href="${companyAddress(name)}">${visible(name)}</a>`
    )}${companies.length > namesMax ? ` and ${count(companies.length - namesMax)} more` : ""}`

const startCommand = html`<code>tributary serve</code>`

interface Totals {
  readonly processes: ReadonlyArray<Processes.ListedProcess>
  readonly withoutOwner: ReadonlyArray<string>
  readonly starts: ReadonlyArray<{ readonly hoursAgo: number; readonly starts: number }>
}

const head = ({ processes, withoutOwner, starts }: Totals, now: Date): Html => {
  const running = processes.filter(({ state }) => state === "running")
  const lost = unreplacedOf(processes, now)
  const isDown = running.length === 0
  const restarts = starts.reduce((sum, one) => sum + one.starts, 0)
  return stateHead({
    title: "Processes",
    about:
      "Processes of tributary serve that share this warehouse. Each sends a heartbeat every 20 s. The companies of a lost process have a new owner within 10 s, and it leaves nothing half done.",
    tone: isDown ? "bad" : withoutOwner.length > 0 || lost.length > 0 ? "warn" : "good",
    word: isDown
      ? "none is running"
      : withoutOwner.length > 0
        ? "companies without an owner"
        : lost.length > 0
          ? "a process is lost"
          : "running",
    sentence: html`${plural(running.length, "process", "processes")} running, ${plural(restarts, "start")} in the last
    day.
    ${
      isDown
        ? html`Nothing is synced by schedule, and deliveries are refused. Next: start one with ${startCommand}.`
        : withoutOwner.length > 0
          ? html`No process owns ${names(withoutOwner)}; a new process owns companies a few seconds after its start. If
            this lasts, see its log.`
          : lost.length > 0
            ? html`Lost: ${nameOf(lost[0]!)}${lost.length > 1 ? ` and ${count(lost.length - 1)} more` : ""}; the
              companies have other owners. Next: read its log, and start it again with ${startCommand} unless it was
              removed on purpose.`
            : ""
    }`,
    actions: null,
    trend: processChart(processes, now)
  })
}

/** What the process does beside receiving deliveries. */
const rolesOf = (one: Processes.ListedProcess, owned: number): Html => {
  const roles = [
    ...(one.isSingleton ? [badge("busy", "work for all")] : []),
    ...(owned > 0 ? [html`owns ${plural(owned, "company", "companies")}`] : []),
    ...(one.endpoints.length > 0 ? [html`sends changes to ${one.endpoints.map(visible).join(", ")}`] : [])
  ]
  return roles.length === 0
    ? none(one.state === "running" ? "receives deliveries" : "none")
    : html`${roles.map((role, index) => html`${index === 0 ? "" : index === 1 && one.isSingleton ? " " : ", "}${role}`)}`
}

const meaning: Readonly<Record<Processes.ListedProcess["state"], string>> = {
  running: "",
  lost: "killed, or cannot reach the warehouse",
  stopped: "ended in order"
}

const stateOf = (one: Processes.ListedProcess): Html =>
  html`${badge(processTones[one.state], one.state)}${
    one.state === "running" ? "" : html`<span class="detail">${meaning[one.state]}</span>`
  }`

const processTable = (processes: ReadonlyArray<Processes.ListedProcess>, owned: Owned, now: Date): Html =>
  html`<div id="processes-table">
    ${table(
      `Processes of the last ${Processes.listedDays} days, the running ones first${processes.length === Processes.listedMax ? `, at most ${Processes.listedMax}` : ""}`,
      "Process, State, Started, -#Ran for, -Heartbeat, Roles, -Id",
      processes.map((one) => [
        html`<a href="${processAddress(one.processId)}">${nameOf(one)}</a>`,
        stateOf(one),
        ago(one.startedAt, now),
        duration(endOf(one, now).getTime() - one.startedAt.getTime()),
        ago(one.heartbeatAt, now),
        rolesOf(one, owned.get(one.processId)?.length ?? 0),
        html`<code>${visible(one.processId)}</code>`
      ])
    )}
  </div>`

const runTable = (
  runs: ReadonlyArray<Processes.RunningRun>,
  processes: ReadonlyArray<Processes.ListedProcess>,
  ownerOf: (company: string | null) => string | undefined,
  now: Date
) =>
  runs.length === 0
    ? html`<p>No run is in progress.</p>`
    : table(
        `Runs in progress, newest first${runs.length > runsMax ? `, ${runsMax} of ${runs.length === Processes.runningMax ? "at least " : ""}${count(runs.length)}` : ""}`,
        "#Run, Resource, Company, -Lane, Owner, #Runs for, -#Pages, #Records",
        runs.slice(0, runsMax).map((run) => {
          const owner = processes.find(({ processId }) => processId === ownerOf(run.company))
          return [
            html`<a href="${runAddress(run.id)}">${run.id}</a>`,
            run.company === null
              ? visible(run.resource)
              : html`<a href="${resourceAddress(run.company, run.resource)}">${visible(run.resource)}</a>`,
            visible(run.company ?? String(run.companyId)),
            run.lane,
            owner === undefined
              ? none("none")
              : html`<a href="${processAddress(owner.processId)}">${nameOf(owner)}</a>`,
            duration(now.getTime() - run.startedAt.getTime()),
            count(run.pages),
            count(run.records)
          ]
        })
      )

const overview = Effect.fn("page.processes")(function* (request: PageRequest) {
  const { companies, now } = request
  const processes = yield* Processes.list
  const status = yield* Processes.read(companies.map(({ name }) => name))
  const starts = yield* Processes.starts(now)
  const runs = yield* Processes.running
  return page({
    title: "Processes",
    section: "processes",
    body: html`${head({ processes, withoutOwner: status.withoutOwner, starts }, now)}
    ${processes.length === 0 ? html`<p>No process was recorded. Start one with ${startCommand}.</p>` : processTable(processes, ownedBy(status), now)}
    ${section(
      "runs",
      "Runs in progress",
      html`<p class="hint">Runs of the owner, and of commands such as <code>tributary sync</code>.</p>
        ${runTable(runs, processes, ownerIn(ownedBy(status)), now)}`
    )}`
  })
})

const detail = Effect.fn("page.process")(function* (request: PageRequest) {
  const { companies, now } = request
  const one = yield* Processes.one(ofPath(request, "id"))
  if (one === null) {
    return yield* new PageError({ status: 404, message: "There is no process with this id, or it was removed." })
  }
  const status = yield* Processes.read(companies.map(({ name }) => name))
  const owned = ownedBy(status).get(one.processId) ?? []
  const ownerOf = ownerIn(ownedBy(status))
  const runs = (yield* Processes.running).filter(({ company }) => ownerOf(company) === one.processId)
  return page({
    title: `Process ${one.processId}`,
    section: "processes",
    level: { text: nameOf(one), above: path },
    isLive: one.state === "running",
    body: html`<h1>Process ${nameOf(one)}</h1>
      ${facts([
        ["State", stateOf(one)],
        ["Started", ago(one.startedAt, now)],
        ["Last heartbeat", ago(one.heartbeatAt, now)],
        ...(one.stoppedAt === null ? [] : [["Stopped", ago(one.stoppedAt, now)] as const]),
        ["Receives deliveries of", plural(one.receives, "company", "companies")],
        ["Owns", `${plural(owned.length, "company", "companies")} in ${one.buckets} of 256 buckets`],
        [
          "Work for all",
          one.isSingleton ? "alerts, activity, counts, invariants and retention" : none("another process does it")
        ],
        ["Sends changes to", one.endpoints.length === 0 ? none("no endpoint") : one.endpoints.map(visible).join(", ")],
        ["Id", html`<code>${visible(one.processId)}</code>`]
      ])}
      ${
        one.state === "lost"
          ? html`<div class="problem warn">
              <p>
                It sent no heartbeat for ${duration(now.getTime() - one.heartbeatAt.getTime())} and did not stop in
                order. Its companies have other owners; a run that it had begun is marked as abandoned and repeated.
              </p>
              <p><strong>What to do:</strong> read its log, and start it again with ${startCommand}.</p>
            </div>`
          : ""
      }
      ${section("runs", "Runs in progress", runTable(runs, [one], ownerOf, now))}
      ${
        owned.length === 0
          ? ""
          : section(
              "owned",
              "Companies that it owns",
              table(
                owned.length > companiesMax
                  ? `The first ${companiesMax} of ${count(owned.length)}`
                  : plural(owned.length, "company", "companies"),
                "Company, Owner since",
                owned
                  .slice(0, companiesMax)
                  .map(({ company, since }) => [
                    html`<a href="${companyAddress(company)}">${visible(company)}</a>`,
                    ago(since, now)
                  ])
              )
            )
      }
      <p><a href="${address("/runs", { status: "running" })}">All runs in progress</a></p>`
  })
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path, handle: overview },
  { method: "GET", path: `${path}/:id`, handle: detail }
]
