/**
 * A person who follows `docs/tutorials/first-day.md` in an empty folder, with the installed package: the commands of the
 * page in their order, `init` at a pseudo-terminal.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "vitest"
import { blocksOf, linesOf } from "../readme/Blocks.ts"
import { type commandOf, ended, firstLine } from "./Package.ts"

const terminal = join(dirname(fileURLToPath(import.meta.url)), "terminal.py")
const enter = "\r"

/** The prompts of `init`, each with the answer. */
const answersOf = (url: string, token: string) => [
  ["Address of the service", `${url}${enter}`],
  ["Name of the company", `north${enter}`],
  ["Token of north", `${token}${enter}`],
  ["Another company", enter],
  ["Where is the warehouse", enter],
  ["Leave out personal data", enter]
]

/** Runs the page. Returns the session: each command with its output. */
export const firstDay = async ({ program, options }: ReturnType<typeof commandOf>, started: Array<ChildProcess>) => {
  mkdirSync(options.cwd)
  const session: Array<string> = []
  const env = { ...options.env, PATH: `${dirname(program)}:${options.env.PATH}` }
  const start = (file: string, args: ReadonlyArray<string>) =>
    spawn(file, args, { cwd: options.cwd, env, stdio: ["pipe", "pipe", "pipe"] })
  const serving = async (line: string) => {
    const child = start("sh", ["-c", `exec ${line}`])
    started.push(child)
    return JSON.parse(await firstLine(child)) as Readonly<Record<string, string>>
  }
  let source: Readonly<Record<string, string>> = {}
  let token = ""
  const run = async (line: string): Promise<void> => {
    if (line.startsWith("tributary reference-server")) {
      // Ports of the page may be in use on the machine of the test.
      source = await serving(line.replace("8123", "0").replace("8124", "0"))
      return
    }
    if (line === "tributary serve") {
      const { dashboard } = await serving("tributary serve --listen 127.0.0.1:0 --dashboard 127.0.0.1:0 --json")
      assert.include(await (await fetch(dashboard!)).text(), "north")
      return
    }
    const meant = line.replace("http://127.0.0.1:8124", source["controlUrl"]!)
    const child =
      line === "tributary init"
        ? start("python3", [terminal, JSON.stringify(answersOf(source["baseUrl"]!, token)), program, "init"])
        : start("sh", ["-c", meant])
    child.stdin.end("select count(*) from erp.customers;\n")
    const { code, stdout, stderr } = await ended(child)
    assert.strictEqual(code, 0, `${line}\n${stdout}\n${stderr}`)
    if (line.includes("/tokens")) ({ token } = JSON.parse(stdout) as { readonly token: string })
    session.push(`$ ${line}\n${stdout}${stderr}`)
  }
  for (const { kind, text } of blocksOf("docs/tutorials/first-day.md")) {
    if (kind === "shell") for (const line of linesOf(text)) await run(line)
  }
  await run("tributary postgres stop")
  const shown = session.join("\n")
  assert.notInclude(shown.replace(/^\{"token".*/m, ""), token)
  return shown
}
