/** The runners of the language-independent cases, as a reader starts them, and the server that they need. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect, Exit, Scope } from "effect"
import { start } from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import { certificate } from "../support/certificate.ts"
import { startRecording } from "../support/recording.ts"

const folder = fileURLToPath(new URL("../../connectors/service-v2/reference-server/examples/", import.meta.url))

export const casesFile = `${folder}cases.json`

interface Step {
  readonly api?: string
  readonly control?: string
}

interface Case {
  readonly name: string
  readonly needs?: ReadonlyArray<string>
  readonly steps: ReadonlyArray<Step>
}

export interface CaseFile {
  readonly setup: ReadonlyArray<Step>
  readonly cases: ReadonlyArray<Case>
}

export const readCases = (): CaseFile => JSON.parse(readFileSync(casesFile, "utf8")) as CaseFile

/** Each language with its program, the file of its runner and the Debian package of the program. */
export const languages = {
  typescript: [process.execPath, "run.ts", "nodejs"],
  python: ["python3", "run.py", "python3"],
  ruby: ["ruby", "run.rb", "ruby"]
} as const

export type Language = keyof typeof languages

export interface CasesRun {
  readonly code: number | null
  /** One line for each case, and the count. */
  readonly results: ReadonlyArray<string>
  /** The output with the reasons. */
  readonly output: string
}

export interface ExampleServer {
  /** With `isBare`, without the address and the certificate of the receiver. */
  readonly run: (language: Language, file?: string, isBare?: boolean) => Promise<CasesRun>
  readonly close: () => Promise<void>
}

/** A new reference server, and a receiver that acknowledges every delivery. */
export const exampleServer = async (): Promise<ExampleServer> => {
  const own = certificate(["localhost"], ["127.0.0.1"])
  const { port, close } = await startRecording((_request, _body, response) => response.writeHead(204).end(), own)
  const scope = Scope.makeUnsafe()
  const options = { port: 0, controlPort: 0, data: "empty" } as const
  const { baseUrl, controlUrl } = await Effect.runPromise(Scope.provide(start(options), scope))

  const run = (language: Language, file = casesFile, isBare = false) =>
    new Promise<CasesRun>((resolve, reject) => {
      const [program, runner, debianPackage] = languages[language]
      const values = isBare ? [] : [`receiver=https://127.0.0.1:${port}/hook`, `caPem=${own.cert}`]
      const child = spawn(program, [`${folder}${runner}`, file, baseUrl, controlUrl, ...values])
      let output = ""
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
      child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
      child.on("error", () =>
        reject(new Error(`the cases need ${program}: install it with apt-get install -y ${debianPackage}`))
      )
      child.on("close", (code) => {
        const results = output.split("\n").filter((line) => /^(?:ok|not ok|skipped|\d+ passed)/.test(line))
        resolve({ code, results, output })
      })
    })

  return {
    run,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await close()
    }
  }
}
