/**
 * The campaign of webhooks: the reference server sends the events of all changes over HTTPS to a `serve` that is killed
 * again and again.
 *
 * Promise: no sync and no check runs. Every event that was acknowledged is in the inbox once and is processed. Then
 * `verify` and plain SQL find no difference.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Chance } from "../fuzz/Chance.ts"
import { certificate } from "../support/certificate.ts"
import { freePort } from "../support/freePort.ts"
import { type CommandRun, firstLine } from "../support/reference.ts"
import { never } from "../support/tap.ts"
import { companiesYaml, numbersTo, type Part, shown } from "./Campaign.ts"

type Values = Readonly<Record<string, unknown>>

const resources = ["salesmen", "areas", "vendors", "customers"]
const writesPerRound = 10
const pollMs = 50
const processedMaxMs = 180_000
/** Attempts of one event in a row; the sender gives up after more. */
const cyclesMax = 20

/** The changes at the source, made through the API, so that events fire. */
const openWriter = (baseUrl: string, token: string, chance: Chance) => {
  const ids = new Map<string, Array<number>>(resources.map((path) => [path, []]))
  let word = 0
  const call = async (method: string, path: string, body?: Values): Promise<Values> => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return JSON.parse(text) as Values
  }
  const name = () => `${(word += 1)} ${chance.pick(["plain", "tab\there", 'a "quoted" one', "żółw 🐢", "back\\slash"])}`
  const write = async () => {
    const path = chance.pick(resources)
    const existing = ids.get(path)!
    const what =
      existing.length < 5
        ? "make"
        : chance.weighted([
            [10, "change"],
            [4, "make"],
            [1, "cancel"]
          ] as const)
    if (what === "make") {
      const keys = { vendors: { vendorcode: `V${word}` }, customers: { customercode: `C${word}` } }
      const made = await call("POST", `/${path}`, { ...keys[path as keyof typeof keys], name: name() })
      existing.push(Number(made["id"]))
    } else if (what === "cancel" && path !== "customers")
      await call("DELETE", `/${path}/${existing.splice(chance.below(existing.length), 1)[0]}`)
    else await call("PATCH", `/${path}/${chance.pick(existing)}`, { name: name() })
  }
  return async () => {
    for (let times = writesPerRound; times > 0; times -= 1) await write()
  }
}

/** An attempt in the delivery log of the control plane. */
interface Delivery {
  readonly eventid: string
  readonly delivered: boolean
  readonly abandoned: boolean
}

export const webhooks: Part = {
  options: { deliveries: 2_000, kills: 20, "postgres-kills": 2, companies: 3 },
  companies: ({ companies }) => numbersTo(companies!),
  run: async ({ stand, chance, ...campaign }, { deliveries, kills, "postgres-kills": postgresKills, companies }) => {
    const { count, problem, settle } = campaign
    const { reference, tokens } = stand
    const ids = numbersTo(companies!)
    const databaseUrl = await stand.database()
    const direct = { databaseUrl, baseUrl: reference.baseUrl }
    const port = await freePort()
    const { cert, key } = certificate(["localhost"])
    await reference.control("PUT", "/limits", { requestsPerMinute: null, allowPrivateReceivers: true })
    await reference.control("POST", "/trust", { caPem: cert })
    const config = stand.configure(
      "webhooks.yaml",
      `${companiesYaml(ids, resources)}
webhooks:
  events: all
  listen: 127.0.0.1:${port}
  public_url: https://localhost:${port}
  certificate: ${stand.configure("cert.pem", cert)}
  key: ${stand.configure("key.pem", key)}
  check_minutes: "off"
schedule: { default: off }
dashboard: { listen: off }
`
    )
    const args = ["serve", "--config", config, "--json"]
    const tap = await stand.openTap(databaseUrl)

    /** Starts `serve`. It is killed at the given message to its database. */
    const startServe = async (killAt: number): Promise<CommandRun> => {
      tap.watch((moment) => {
        if (moment.kind !== "message" || moment.number !== killAt) return
        count("serve killed with -9")
        command.child.kill("SIGKILL")
        return never
      })
      const command = stand.start(args, tap)
      await firstLine(command).catch(() => undefined)
      return command
    }
    const hasEnded = ({ child }: CommandRun) => child.exitCode !== null || child.signalCode !== null
    const end = async (command: CommandRun) => {
      if (!hasEnded(command)) command.child.kill("SIGTERM")
      const ended = await command.done
      if (ended.code !== 0 && ended.signal !== "SIGKILL") problem(`serve ended with ${shown(ended)}`)
    }

    await settle(["sync", "--config", config], direct)
    const first = await startServe(-1)
    await settle(["webhooks", "ensure", "--config", config], direct)
    await end(first)
    const writers = ids.map((id) => openWriter(reference.baseUrl, tokens.get(id)!, campaign.stream()))
    const acknowledged = new Set<string>()
    let attempts = 0
    /** Runs one cycle of the sender. Returns the number of deliveries that failed. */
    const cycle = async () => {
      const answer = (await reference.control("POST", "/cycle")) as { readonly attempts: ReadonlyArray<Delivery> }
      attempts += answer.attempts.length
      for (const { eventid, delivered, abandoned } of answer.attempts) {
        if (delivered) acknowledged.add(eventid)
        if (abandoned) problem(`the sender gave up the event ${eventid}`)
      }
      return answer.attempts.filter(({ delivered }) => !delivered).length
    }

    let killed = 0
    const isWorkLeft = () => attempts < deliveries! || killed < kills!
    while (isWorkLeft()) {
      const command = await startServe(killed < kills! ? chance.between(100, 2_000) : -1)
      while (!hasEnded(command) && isWorkLeft()) await Promise.all([cycle(), ...writers.map((write) => write())])
      await end(command)
      killed += 1
    }
    const last = await startServe(-1)
    for (let left = postgresKills!; left > 0; left -= 1) {
      await Promise.all(writers.map((write) => write()))
      const sending = cycle()
      await stand.killPostgres(chance.is(0.5))
      count("Postgres killed beside serve")
      await sending
    }
    for (let left = cyclesMax; (await cycle()) > 0; left -= 1) {
      if (left === 0) problem("events are not accepted")
      await sleep(1_000)
    }
    const pending = () =>
      campaign.ask(databaseUrl, "select event_type, last_error from tributary.inbox where state = 'pending'")
    for (let waitedMs = 0; (await pending()).length > 0; waitedMs += pollMs) {
      if (waitedMs > processedMaxMs) {
        problem(`events are still pending: ${JSON.stringify((await pending()).slice(0, 5))}`)
        break
      }
      await sleep(pollMs)
    }
    await end(last)

    count("attempts of the sender", attempts)
    count("events acknowledged", acknowledged.size)
    const inbox = await campaign.ask<{ event_id: string; times: number; states: ReadonlyArray<string> }>(
      databaseUrl,
      "select event_id, count(*)::int as times, array_agg(state::text) as states from tributary.inbox group by event_id"
    )
    const rows = new Map(inbox.map((row) => [row.event_id, row]))
    for (const id of acknowledged) {
      const row = rows.get(id)
      if (row === undefined) problem(`${id} was acknowledged and is lost`)
      else if (row.times !== 1 || row.states[0] !== "done")
        problem(`${id} was acknowledged and is ${row.states.join()}`)
    }
    await settle(["verify", "--config", config], direct)
    await campaign.compareAll(databaseUrl, "after the last event", ids, resources)
    await campaign.audit(databaseUrl, resources)
  }
}
