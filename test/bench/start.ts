/**
 * The start of a command: its time as a ratio to that of a Node program that does nothing.
 *
 * Promise: the program is built before. Commands and the empty program take turns, and medians are compared. Of `status`,
 * the processor time of Postgres is subtracted.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { root, startCommand } from "../support/reference.ts"
import { secondsSince } from "./measuring.ts"
import { type Figure, figure, median } from "./Figures.ts"
import { difference } from "./Processes.ts"
import type { Stand } from "./Stand.ts"

const pairs = 15

/**
 * The commands with the maximum ratio of each. On an idle machine, where the empty program takes 0.035 s, these are 0.07,
 * 0.25 and 0.6 s.
 */
const commands = [
  { args: ["--version"], ratioMax: 2 },
  { args: ["--help"], ratioMax: 7 },
  { args: ["status"], ratioMax: 17 }
]

export const start = async (stand: Stand, resource: string): Promise<ReadonlyArray<Figure>> => {
  const { status } = spawnSync(process.execPath, ["config/build.js"], { cwd: root, stdio: "inherit" })
  if (status !== 0) throw new Error("the build failed")
  const source = await stand.source(["--data", "demo"], { pageSize: null })
  const warehouse = await stand.warehouse()
  await stand.sync(source, warehouse, { requestsPerMinute: null, pageSize: null }, [resource])
  const env = {
    DATABASE_URL: warehouse.url,
    SERVICE_API_URL: source.reference.baseUrl,
    SERVICE_API_TOKEN: source.token
  }

  const programs = [
    () => once(spawn(process.execPath, ["-e", "0"]), "close"),
    ...commands.map(({ args }) => async () => {
      const { code, stderr } = await startCommand(args, { cwd: root, env }).done
      if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`)
    })
  ]
  const times = programs.map((): Array<number> => [])
  // The first round fills the cache of compiled code.
  let postgresBefore = null
  for (let round = 0; round <= pairs; round += 1) {
    for (const [index, run] of programs.entries()) {
      const began = performance.now()
      await run()
      if (round > 0) times[index]!.push(secondsSince(began))
    }
    if (round === 0) postgresBefore = stand.postgresCpu()
  }
  const ofPostgres = (difference(stand.postgresCpu(), postgresBefore) ?? 0) / pairs
  await warehouse.close()
  await source.reference.stop()
  const [empty = [], ...others] = times
  return commands.map(({ args, ratioMax }, index) => {
    const own = others[index]!
    const beyond = args[0] === "status" ? ofPostgres : 0
    return figure(`start: ${args.join(" ")}`, "s", median(own) - beyond, {
      baseline: median(empty),
      atMost: ratioMax,
      note:
        `${pairs} pairs with node -e 0; fastest ${(Math.min(...own) - beyond).toFixed(3)} and ${Math.min(...empty).toFixed(3)} s` +
        (beyond === 0 ? "" : `; without ${(1000 * beyond).toFixed(0)} ms of Postgres`)
    })
  })
}
