/** The output of `tributary completions` for bash, evaluated by bash. zsh and fish are not installed everywhere. */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { startCommand } from "../support/reference.ts"
import { liveTest } from "../support/live.ts"
import { temporaryFolder } from "../support/servers.ts"

/** A script that completes the last of these words as bash does, and prints the candidates. */
const script = (file: string, lines: ReadonlyArray<ReadonlyArray<string>>) => `
source ${file}
offer() {
  COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="$*"; COMP_POINT=\${#COMP_LINE}; COMPREPLY=()
  "$(complete -p tributary | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" tributary "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
  echo "\${COMPREPLY[*]}"
}
${lines.map((words) => `offer ${words.join(" ")}`).join("\n")}
`

liveTest("tributary completions completes commands, flags, resources and companies in bash", function* () {
  const folder = yield* temporaryFolder
  writeFileSync(
    join(folder, "own.yaml"),
    "companies:\n  - { name: northern, token: x, url: 'https://erp.example.com/!/api/v2' }\nresources:\n  widgets/parts: {}\n"
  )
  const command = startCommand(["completions", "bash", "--config", "own.yaml"], { cwd: folder, env: {} })
  const printed = yield* Effect.promise(() => command.done)
  assert.strictEqual(printed.code, 0, printed.stderr)
  assert.include(printed.stdout, "tributary completions bash")
  const file = join(folder, "completion.bash")
  writeFileSync(file, printed.stdout)
  const checked = spawnSync("bash", ["-n", file], { encoding: "utf8" })
  assert.strictEqual(checked.status, 0, checked.stderr)
  const offered = spawnSync(
    "bash",
    [
      "-c",
      script(file, [
        ["tributary", "sy"],
        ["tributary", "init", "--rep"],
        ["tributary", "sync", "invoicel"],
        ["tributary", "sync", "wid"],
        ["tributary", "sync", "--company", "nor"],
        ["tributary", "webhooks", "ens"]
      ])
    ],
    { encoding: "utf8" }
  )
  assert.deepStrictEqual(
    offered.stdout.trimEnd().split("\n"),
    ["sync", "--replace", "invoicelines", "widgets/parts", "northern", "ensure"],
    offered.stderr
  )
})
