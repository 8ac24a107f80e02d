/** `/endpoints`, the page of the change feed: where changes are sent, how far each endpoint is, and the delivery log. */
import * as Effect from "effect/Effect"
import * as EndpointStore from "../../delivery/EndpointStore.ts"
import * as Trends from "../../status/Trends.ts"
import { ago, badge, count, duration, filterLinks, none, section, table, type Tone } from "../../web/Components.ts"
import { stateHead } from "../../web/StateHead.ts"
import { trend } from "../../web/Trend.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { html, type Html, page, PageError, type Route } from "../Page.ts"
import { ofQuery } from "../Params.ts"

const logShown = 100

type Endpoint = EndpointStore.EndpointStatus
type LogEntry = Effect.Success<ReturnType<typeof EndpointStore.readLog>>[number]

const tones: Readonly<Record<EndpointStore.EndpointState, Tone>> = { active: "good", paused: "quiet", dead: "bad" }

const stateOf = (endpoint: Endpoint, now: Date): Html => {
  const { state, failingSince, reason, name } = endpoint
  return state === "active"
    ? failingSince === null
      ? EndpointStore.isUnproven(endpoint)
        ? badge("warn", "active, no delivery yet")
        : badge("good", "active")
      : html`${badge("warn", "failing")} <span class="detail">since ${ago(failingSince, now)}</span>`
    : html`${badge(tones[state], state)}
        <span class="detail"
          >${reason === null ? "" : `${visible(reason)}. `}To resume it:
          <code>tributary changes endpoints resume ${visible(name)}</code></span
        >`
}

const lagOf = ({ lag, lagMs }: Endpoint): Html | string =>
  lagMs === null ? none("none") : `${count(lag ?? 0n)}, ${duration(lagMs)}`

const deadOf = ({ dead, name }: Endpoint): Html | string =>
  dead === null || dead === 0n
    ? "0"
    : html`${badge("bad", count(dead))}
        <span class="detail"
          >To send them again: <code>tributary changes endpoints replay ${visible(name)}</code></span
        >`

const head = (endpoints: ReadonlyArray<Endpoint>, changes: Trends.Trend): Html => {
  const dead = endpoints.filter((one) => one.state === "dead" || (one.dead ?? 0n) > 0n)
  const failing = endpoints.filter((one) => one.state === "active" && one.failingSince !== null)
  const unproven = endpoints.filter(EndpointStore.isUnproven)
  const [worst] = dead.length > 0 ? dead : failing
  return stateHead({
    title: "Change feed",
    about:
      "Every version that lands, in commit order, and the change endpoints that get it as signed webhooks. A change that was not accepted waits and is sent again.",
    tone:
      dead.length > 0
        ? "bad"
        : failing.length > 0
          ? "warn"
          : endpoints.length === 0 || unproven.length > 0
            ? "quiet"
            : "good",
    word:
      dead.length > 0
        ? "changes not delivered"
        : failing.length > 0
          ? "failing"
          : endpoints.length === 0
            ? "no change endpoint"
            : unproven.length > 0
              ? "not proved yet"
              : "delivering",
    sentence: html`${plural(endpoints.length, "change endpoint")}: ${count(dead.length)} dead or with dead letters,
    ${count(failing.length)}
    failing${unproven.length === 0 ? "" : `, ${count(unproven.length)} without a delivery yet`}.
    ${
      worst === undefined
        ? ""
        : html`The worst: <a href="${address("/endpoints", { endpoint: worst.name })}">${visible(worst.name)}</a>.`
    }`,
    actions: null,
    trend: trend(changes, {
      id: "trend",
      title: "Changes landed",
      kinds: [["change", "changes", "busy"]]
    })
  })
}

const endpointTable = (endpoints: ReadonlyArray<Endpoint>, now: Date): Html =>
  table(
    "Change endpoints",
    "Endpoint, State, #Behind, #Waiting, #Dead letters, -#Delivered, -Last success, -Address",
    endpoints.map((one) => [
      html`<a href="${address("/endpoints", { endpoint: one.name })}">${visible(one.name)}</a>`,
      stateOf(one, now),
      lagOf(one),
      count(one.waiting ?? 0n),
      deadOf(one),
      count(one.delivered),
      ago(one.succeededAt, now),
      visible(one.url)
    ])
  )

const results: Readonly<Record<LogEntry["result"], Tone>> = {
  delivered: "good",
  failed: "warn",
  dead: "bad",
  obsolete: "quiet"
}

const logTable = (entries: ReadonlyArray<LogEntry>, now: Date): Html =>
  table(
    "Attempts, newest first",
    "Message, -Endpoint, Result, -#Changes, -#Took, When, Error",
    entries.map(({ messageId, endpoint, result, status, changes, durationMs, at, error }) => [
      html`<code>${visible(messageId)}</code>`,
      visible(endpoint),
      html`${badge(results[result], result)}${status === null ? "" : ` ${status}`}`,
      count(changes),
      duration(durationMs),
      ago(at, now),
      error === null ? "" : visible(error)
    ])
  )

export const routes: ReadonlyArray<Route> = [
  {
    method: "GET",
    path: "/endpoints",
    handle: Effect.fn("page.endpoints")(function* (request) {
      const { now } = request
      const only = ofQuery(request, "endpoint")
      const endpoints = yield* EndpointStore.list
      if (only !== null && !endpoints.some(({ name }) => name === only)) {
        return yield* new PageError({ status: 404, message: `There is no endpoint ${only}.` })
      }
      const entries = yield* EndpointStore.readLog(only, logShown)
      const changes = yield* Trends.read(Trends.changesStatement, now)
      return page({
        title: "Change feed",
        section: "endpoints",
        body: html`${head(endpoints, changes)}
        ${
          endpoints.length === 0
            ? html`<p>
                There is none. To add one:
                <code>tributary changes endpoints add NAME --url ADDRESS</code>
              </p>`
            : html`${endpointTable(endpoints, now)}
              ${section(
                "log",
                "Delivery log",
                html`${
                  endpoints.length < 2
                    ? ""
                    : filterLinks("Endpoint", [
                        { to: "/endpoints", text: "All endpoints", isCurrent: only === null },
                        ...endpoints.map(({ name }) => ({
                          to: address("/endpoints", { endpoint: name }),
                          text: visible(name),
                          isCurrent: only === name
                        }))
                      ])
                }
                ${entries.length === 0 ? html`<p>Nothing was sent yet.</p>` : logTable(entries, now)}`
              )}`
        }`
      })
    })
  }
]
