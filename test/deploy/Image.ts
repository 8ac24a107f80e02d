/**
 * The command `npm run measure -- --only image`: builds the image from the Dockerfile, and runs the commands of
 * docs/how-to/docker.md in it as a user types them, against a Postgres of its own. It ends with 1 at the first
 * difference, and leaves no image, container or process.
 */
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { parse } from "yaml"
import { startServer } from "../postgres/server.ts"
import { blocksOf, linesOf } from "../readme/Blocks.ts"
import { callsOf, root } from "../support/reference.ts"
import { closing } from "../support/servers.ts"
import { makeEngine, type Result, sizesOf } from "./Engine.ts"

const page = "docs/how-to/docker.md"
const blocks = blocksOf(page)
const lines = blocks.flatMap(({ kind, text }) => (kind === "shell" ? linesOf(text) : []))

/** The line of the page with these words. */
const lineOf = (words: RegExp): string => {
  const found = lines.filter((line) => words.test(line))
  if (found.length !== 1) throw new Error(`${page}: ${found.length} lines match ${words}`)
  return found[0]!
}

/** The text of a block in this language, without the indent of its list. */
const textOf = (language: string): string =>
  blocks.find((block) => block.language === language)!.text.replace(/^ {3}/gm, "")

const expect = (what: string, isTrue: boolean, shown: unknown) => {
  if (!isTrue) throw new Error(`${what}: ${typeof shown === "string" ? shown : JSON.stringify(shown, null, 2)}`)
}

let checks = 0
const passed = (what: string) => {
  checks += 1
  process.stdout.write(`ok  ${what}\n`)
}

/** Asks twice a second for at most a minute. */
const until = async <A>(what: string, question: () => A | Promise<A>, isExpected: (answer: A) => boolean) => {
  let answer: A | undefined
  for (let attempt = 0; attempt < 120; attempt++) {
    answer = await question()
    if (isExpected(answer)) return answer
    await sleep(500)
  }
  throw new Error(`${what}: not within a minute; last: ${JSON.stringify(answer)}`)
}

const began = performance.now()
const engine = makeEngine()
const postgres = await startServer("18", []).catch((error: unknown) => {
  engine.close()
  throw error
})
const close = closing(async () => {
  engine.close()
  await postgres.stop()
})

const work = join(engine.folder, "work")
const run = (line: string, env?: Readonly<Record<string, string>>): Result => engine.shell(line, work, env)
const both = ({ stdout, stderr }: Result) => `${stdout}\n${stderr}`
const logsOf = (container: string) => both(run(`docker logs ${container}`))
const exitCodeOf = (container: string) =>
  run(`docker inspect --format '{{.State.ExitCode}}' ${container}`).stdout.trim()

/** Runs a line that must end with this code, and returns its output. */
const ends = (code: number, line: string, env?: Readonly<Record<string, string>>): string => {
  const result = run(line, env)
  expect(`${line} ends with ${code}`, result.code === code, result)
  return both(result)
}

const built = () => {
  const from = performance.now()
  const { code, stdout, stderr } = engine.shell(lineOf(/^docker build/), root)
  expect("the image builds", code === 0, `${stdout}\n${stderr}`)
  passed("the Dockerfile builds unchanged")
  return performance.now() - from
}

const serveLine = lineOf(/tributary serve/)
/** The restrictions under which the page runs `serve`. */
const restrictions = /--read-only .*?no-new-privileges/.exec(serveLine)![0]
const syncLine = lineOf(/tributary sync$/).replace("--rm", `--rm ${restrictions}`)

const restricted = () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly version: string }
  const shown = ends(0, `docker run --rm ${restrictions} tributary --version`)
  expect("the version", shown.trim() === `tributary v${version}`, shown)
  const status = ends(0, `docker run --rm ${restrictions} --entrypoint cat tributary /proc/self/status`)
  for (const line of [/^Uid:\t1000\t1000/m, /^CapEff:\t0+$/m, /^CapBnd:\t0+$/m, /^NoNewPrivs:\t1$/m])
    expect("the process has no rights", line.test(status), status)
  ends(1, `docker run --rm ${restrictions} --entrypoint touch tributary /app/x`)
  passed("runs as user 1000 without capabilities, new privileges or a writable root file system")
}

/** Starts the reference server, and returns the values of `.env`. */
const sourceValues = async () => {
  const controlToken = "a-token-of-the-control-plane"
  ends(0, lineOf(/reference-server/), { REFERENCE_SERVER_CONTROL_TOKEN: controlToken })
  const ready = await until(
    "the reference server",
    () => logsOf("reference-server"),
    (text) => text.includes('"ready":true')
  )
  const { baseUrl, controlUrl } = JSON.parse(/^\{.*"ready":true.*$/m.exec(ready)![0]) as Record<string, string>
  const { token } = callsOf(controlUrl!, controlToken)
  passed("the reference server starts and prints its ready line")
  return {
    // Docker keeps these quotes, which a person may write.
    SERVICE_API_URL: `"${baseUrl}"`,
    NORTH_TOKEN: await token(1),
    SOUTH_TOKEN: `'${await token(2)}'`,
    TRIBUTARY_DASHBOARD_PASSWORD: "long enough",
    DATABASE_URL: postgres.url
  }
}

const writeEnvironment = (name: string, values: Readonly<Record<string, string>>) =>
  writeFileSync(
    join(work, name),
    Object.entries(values)
      .map(([variable, value]) => `${variable}=${value}\n`)
      .join("")
  )

const refusals = (values: Readonly<Record<string, string>>) => {
  const { DATABASE_URL: _, ...others } = values
  writeEnvironment(".env.bare", others)
  for (const command of ["sync", "serve", "status", "doctor"]) {
    const line = syncLine.replace(".env", ".env.bare").replace(/sync$/, command)
    const shown = ends(2, line)
    expect(`${command} says what to do`, shown.includes("set DATABASE_URL"), shown)
    expect(`${command} says nothing wrong`, !/npm ci|listening at|ok +disk/.test(shown), shown)
  }
  const sourceless = ends(2, "docker run --rm tributary sync")
  expect("no demo is recommended", !sourceless.includes("tributary demo"), sourceless)
  passed("without DATABASE_URL or a source: code 2, and a remedy that is possible")

  const file = join(work, "config/tributary.yaml")
  chmodSync(file, 0o600)
  const unreadable = ends(2, syncLine)
  expect("owner and mode", /belongs to user 0 .* mode 0600/.test(unreadable), unreadable)
  chmodSync(file, 0o644)
  passed("an unreadable configuration: code 2, with owner and mode")
}

const secondProcess = "tributary-2"

/** Starts the second process as Compose does, on ports that are free here. */
const startSecond = () => {
  const { services } = parse(readFileSync(join(root, "docker-compose.yml"), "utf8"), { merge: true }) as {
    readonly services: Readonly<
      Record<string, { readonly tmpfs: ReadonlyArray<string>; readonly command: ReadonlyArray<string> }>
    >
  }
  const { command, tmpfs } = services[secondProcess]!
  // Podman has another word for the owner of a tmpfs.
  const mounts = tmpfs.map((mount) => `--tmpfs ${mount.replace("uid=1000,gid=1000", "U")}`).join(" ")
  const words = command.map((word) => word.replace(/:\d+$/, ":0")).join(" ")
  ends(
    0,
    `docker run -d --name ${secondProcess} ${restrictions.replace("--tmpfs /tmp", "")} ${mounts} --env-file .env ` +
      `-v ./config:/tributary/config:ro tributary ${words}`
  )
}

interface Owners {
  readonly processes: ReadonlyArray<{ readonly companies: ReadonlyArray<unknown> }>
}

const served = async () => {
  ends(0, serveLine)
  await until(
    "serve",
    () => logsOf("tributary"),
    (text) => text.includes("Receiving events at")
  )
  ends(0, "docker healthcheck run tributary")
  passed("serve starts, and its HEALTHCHECK reports healthy")

  startSecond()
  const owners = `${lineOf(/tributary processes$/)} --json`
  await until(
    "two processes, and one owner of each company",
    () => JSON.parse(run(owners).stdout || '{"processes":[]}') as Owners,
    ({ processes }) => processes.length === 2 && processes.flatMap(({ companies }) => companies).length === 2
  )
  const folder = ends(0, `docker exec ${secondProcess} stat -c %u:%g /tributary/.tributary`)
  expect("the state folder of the second process", folder.trim() === "1000:1000", folder)
  passed("a second process has a state folder of its own, and shares the companies")

  ends(0, `docker stop ${secondProcess}`)
  const from = performance.now()
  ends(0, lineOf(/^docker stop/))
  const seconds = (performance.now() - from) / 1000
  expect("both end with 0", exitCodeOf("tributary") === "0" && exitCodeOf(secondProcess) === "0", logsOf("tributary"))
  expect("serve stops within 10 s", seconds < 10, seconds)
  passed("docker stop ends both processes with code 0")
  return seconds
}

try {
  mkdirSync(join(work, "config"), { recursive: true })
  const buildSeconds = built() / 1000
  restricted()
  writeFileSync(join(work, "config/tributary.yaml"), textOf("yaml"))
  chownSync(join(work, "config/tributary.yaml"), 0, 0)
  const values = await sourceValues()
  const shown = textOf("ini").match(/^\w+/gm)
  expect("the page shows these variables", String(shown) === String(Object.keys(values)), shown)
  writeEnvironment(".env", values)
  refusals(values)
  ends(0, lineOf(/tributary doctor$/))
  ends(0, syncLine)
  ends(0, syncLine.replace(/sync$/, "verify"))
  passed("doctor, sync and verify")
  const stopSeconds = await served()
  const [size, base] = sizesOf(engine, "tributary").map((bytes) => Math.round(bytes / 1e6))
  process.stdout.write(
    `${checks} checks passed in ${((performance.now() - began) / 1000).toFixed(0)} s: image ${size} MB, ` +
      `${size! - base!} MB of them above its base, built in ${buildSeconds.toFixed(0)} s; serve stops in ${stopSeconds.toFixed(1)} s\n`
  )
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
} finally {
  await close()
}
