/** `tributary reference-server`: its flags, its ready line, and its end by a signal. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:https"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, assert, describe, it } from "vitest"
import { startCommand } from "../support/reference.ts"

const folder = mkdtempSync(join(tmpdir(), "reference-server-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const token = "a-token-for-the-control-plane"

interface Ready {
  readonly baseUrl: string
  readonly controlUrl: string
  readonly certificate?: string
}

/** Runs `work` with the command, then ends it by SIGTERM; returns its exit. */
const during = async (
  flags: ReadonlyArray<string>,
  work: (ready: Ready) => Promise<unknown>,
  env: Readonly<Record<string, string>> = {}
) => {
  const { child, done } = startCommand(["reference-server", ...flags], { cwd: folder, env })
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout! }).once("line", resolve)
    void done.then(({ stderr }) => reject(new Error(stderr)))
  })
  try {
    await work(JSON.parse(line) as Ready)
  } finally {
    child.kill("SIGTERM")
  }
  return done
}

const failure = async (flags: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const { code, stdout, stderr } = await startCommand(["reference-server", ...flags], { cwd: folder, env }).done
  assert.strictEqual(stdout, "")
  assert.isAbove(code ?? 0, 0)
  return stderr
}

const post = (url: string, body: unknown) => fetch(url, { method: "POST", body: JSON.stringify(body) })

describe("tributary reference-server", () => {
  it("saves the state at SIGTERM, ends with 0, and continues with it", async () => {
    const first = await during(
      ["--data", "empty", "--scenario", "ties", "--save-on-exit", "state.ndjson"],
      async (ready) => {
        assert.strictEqual((await fetch(`${ready.controlUrl}/readyz`)).status, 200)
        assert.strictEqual((await fetch(new URL("/readyz", ready.baseUrl))).status, 200)
        await post(`${ready.controlUrl}/clock`, { manual: true })
        await post(`${ready.controlUrl}/records`, { company: 1, resource: "salesmen", records: [{ name: "Ada" }] })
      }
    )
    assert.deepStrictEqual([first.code, first.signal, first.stderr], [0, null, ""])
    const saved = readFileSync(join(folder, "state.ndjson"), "utf8")
    assert.include(saved, '"name":"Ada"')
    assert.include(saved, "TIE-00600")
    const second = await during(
      ["--load", "state.ndjson", "--save-on-exit", "state.ndjson"],
      async ({ controlUrl }) => {
        const state = await (await fetch(`${controlUrl}/state?company=1&resource=salesmen`)).text()
        assert.include(state, '"name":"Ada"')
      }
    )
    assert.deepStrictEqual([second.code, second.stderr], [0, ""])
    assert.strictEqual(readFileSync(join(folder, "state.ndjson"), "utf8"), saved)
  })

  it("serves other machines over HTTPS, with its own certificate, and the control plane with the token", async () => {
    const flags = ["--host", "0.0.0.0", "--control-host", "0.0.0.0", "--tls", "self-signed", "--data", "empty"]
    const { code } = await during(
      flags,
      async ({ controlUrl, certificate }) => {
        const statusWith = (headers: Readonly<Record<string, string>>) =>
          new Promise<number>((resolve, reject) => {
            request(`${controlUrl}/clock`, { ca: certificate, headers, agent: false }, (response) => {
              response.resume()
              resolve(response.statusCode!)
            })
              .on("error", reject)
              .end()
          })
        assert.strictEqual(await statusWith({}), 401)
        assert.strictEqual(await statusWith({ authorization: `Bearer ${token}` }), 200)
      },
      { REFERENCE_SERVER_CONTROL_TOKEN: token }
    )
    assert.strictEqual(code, 0)
  })

  it("refuses an unsafe or impossible start with the reason", async () => {
    const [open, plain, key, both, wrong] = await Promise.all([
      failure(["--control-host", "0.0.0.0", "--allow-http"]),
      failure(["--host", "0.0.0.0"]),
      failure(["--tls-key", "key.pem"]),
      failure(["--tls", "self-signed", "--tls-cert", "cert.pem"]),
      (writeFileSync(join(folder, "wrong.ndjson"), "{}\n"), failure(["--load", "wrong.ndjson"]))
    ])
    assert.include(open, "set REFERENCE_SERVER_CONTROL_TOKEN")
    assert.include(plain, "over plain HTTP")
    assert.include(key, "a key without a certificate")
    assert.include(both, "leave out --tls-cert")
    assert.include(wrong, "wrong.ndjson: line 1: this is no snapshot")
    assert.notInclude(await failure(["--host", "0.0.0.0"], { REFERENCE_SERVER_CONTROL_TOKEN: token }), token)
  })
})
