/**
 * Rules for the whole tree: the direction of imports, no ambient time or randomness, no name of the API's resources in
 * `src`, no mention of a file that does not exist.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, relative, resolve, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { serviceV2 } from "../connectors/service-v2/catalogue/index.ts"

const root = fileURLToPath(new URL("..", import.meta.url))

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder)).flatMap((name) => {
    const path = join(folder, name)
    return statSync(join(root, path)).isDirectory() ? filesBelow(path) : [path]
  })

const sources = [...filesBelow("src"), ...filesBelow("connectors"), ...filesBelow("test")]
  .filter((path) => /\.(ts|js)$/.test(path))
  .map((path) => path.split(sep).join("/"))
const textOf = (path: string) => readFileSync(join(root, path), "utf8")

/** The text without comments, because comments may contain names that code must not. */
const codeOf = (path: string) =>
  textOf(path)
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|[^:"'`])\/\/.*$/gm, "$1")

const commentsOf = (path: string) =>
  [...textOf(path).matchAll(/\/\*[\s\S]*?\*\/|(?:^|[^:"'`])\/\/.*$/gm)].map(([comment]) => comment).join("\n")

const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8"
}).split("\n")

/**
 * A mention of a file, by the end of its path, or of a path below a folder of the root. Braces list names, a star
 * stands for any.
 */
const fileMention =
  /(?<![\w$<])(?:[\w.@*<>-]+\/)*(?:\{[\w, ./]+\}|[\w.*<>-]+)\.(?:ts|js|sql)\b(?![\w/-])|\b(?:src|test|connectors|config|migrations)\/(?:[\w.*-]+\/)*[\w.*-]*\w/g
/** Files of the user, which are not in the tree. */
const usersFiles = new Set(["config/tributary.yaml", "config/close-key.pem", "srv/tributary/src/cli/launch.js"])

const withoutBraces = (mention: string): ReadonlyArray<string> => {
  const list = /^(.*)\{([^}]*)\}(.*)$/.exec(mention)
  return list === null ? [mention] : list[2]!.split(",").map((name) => `${list[1]}${name.trim()}${list[3]}`)
}

const exists = (mention: string): boolean => {
  const path = mention
    .replace(/^(?:\.{1,2}\/)+/, "")
    .replace(/\./g, "\\.")
    .replace(/<\w+>|\bNAME\b/g, "[^/]+")
    .replace(/\*+/g, ".*")
  const pattern = new RegExp(`(?:^|/)${path}(?:$|/)`)
  return usersFiles.has(mention) || tracked.some((file) => pattern.test(file))
}

/**
 * The folders from which a folder may import, besides itself. Imports go one way. In `src`, only `main.ts` knows a
 * connector. Client and reference server share the catalogue and no behaviour.
 */
const rooms: Readonly<Record<string, ReadonlyArray<string>>> = {
  "src/catalogue": [],
  "src/files": [],
  "src/json": [],
  "src/http": ["src/files", "src/time"],
  "src/log": ["src/time"],
  "src/time": [],
  "src/web": [],
  "src/postgres": ["src/files", "src/time"],
  "src/connector": ["src/budget", "src/catalogue", "src/time"],
  "src/budget": ["src/postgres", "src/time"],
  "src/changes": ["src/postgres"],
  "src/delivery": ["src/changes", "src/postgres", "src/processes", "src/subscriptions", "src/time"],
  "src/warehouse": ["src/catalogue", "src/postgres"],
  "src/land": ["src/budget", "src/catalogue", "src/connector", "src/json", "src/postgres", "src/warehouse", "src/time"],
  "src/extract": ["src/catalogue", "src/connector", "src/land"],
  "src/sync": [
    "src/budget",
    "src/catalogue",
    "src/changes",
    "src/connector",
    "src/extract",
    "src/land",
    "src/postgres",
    "src/warehouse",
    "src/time"
  ],
  "src/verify": ["src/catalogue", "src/connector", "src/json", "src/postgres", "src/warehouse"],
  "src/subscriptions": ["src/catalogue", "src/connector", "src/postgres", "src/sync", "src/time"],
  "src/inbox": [
    "src/budget",
    "src/connector",
    "src/land",
    "src/log",
    "src/postgres",
    "src/sync",
    "src/warehouse",
    "src/time"
  ],
  "src/ingest": ["src/connector", "src/http", "src/inbox", "src/log", "src/subscriptions"],
  "src/reconcile": ["src/budget", "src/connector", "src/inbox", "src/postgres", "src/subscriptions", "src/sync"],
  "src/tasks": ["src/budget", "src/connector", "src/log", "src/postgres", "src/sync", "src/warehouse", "src/time"],
  "src/retention": ["src/postgres", "src/warehouse"],
  "src/export": ["src/changes", "src/files", "src/postgres", "src/warehouse"],
  "src/close": ["src/catalogue", "src/changes", "src/files", "src/invariants", "src/postgres", "src/warehouse"],
  "src/outbox": [
    "src/catalogue",
    "src/connector",
    "src/extract",
    "src/files",
    "src/json",
    "src/land",
    "src/postgres",
    "src/sync",
    "src/warehouse",
    "src/time"
  ],
  "src/processes": ["src/postgres", "src/time"],
  "src/serve": [
    "src/connector",
    "src/http",
    "src/inbox",
    "src/ingest",
    "src/log",
    "src/postgres",
    "src/processes",
    "src/reconcile",
    "src/status",
    "src/subscriptions",
    "src/sync",
    "src/warehouse",
    "src/time"
  ],
  "src/status": [
    "src/changes",
    "src/connector",
    "src/inbox",
    "src/ingest",
    "src/invariants",
    "src/outbox",
    "src/postgres",
    "src/processes",
    "src/reconcile",
    "src/subscriptions",
    "src/sync",
    "src/tasks",
    "src/warehouse"
  ],
  "src/dashboard": [
    "src/budget",
    "src/connector",
    "src/delivery",
    "src/http",
    "src/inbox",
    "src/json",
    "src/outbox",
    "src/postgres",
    "src/status",
    "src/subscriptions",
    "src/sync",
    "src/tasks",
    "src/time",
    "src/verify",
    "src/warehouse",
    "src/web"
  ],
  "src/invariants": ["src/changes", "src/postgres", "src/warehouse"],
  "src/mcp": ["src/changes", "src/outbox", "src/postgres", "src/status", "src/verify", "src/warehouse", "src/web"],
  "src/alerts": ["src/budget", "src/outbox", "src/postgres", "src/status", "src/time"],
  "src/configuration": [
    "src/alerts",
    "src/delivery",
    "src/files",
    "src/invariants",
    "src/postgres",
    "src/sync",
    "src/tasks",
    "src/warehouse"
  ],
  "src/companies": [
    "src/catalogue",
    "src/changes",
    "src/configuration",
    "src/land",
    "src/postgres",
    "src/subscriptions",
    "src/warehouse"
  ],
  "src/cli/launch.js": ["src/main.ts"],
  "src/cli": [
    "src/alerts",
    "src/close",
    "src/invariants",
    "src/export",
    "src/retention",
    "src/budget",
    "src/catalogue",
    "src/changes",
    "src/companies",
    "src/configuration",
    "src/connector",
    "src/dashboard",
    "src/delivery",
    "src/files",
    "src/http",
    "src/inbox",
    "src/log",
    "src/mcp",
    "src/outbox",
    "src/postgres",
    "src/processes",
    "src/serve",
    "src/status",
    "src/subscriptions",
    "src/sync",
    "src/tasks",
    "src/verify",
    "src/warehouse",
    "src/web",
    "src/time"
  ],
  "src/main.ts": ["src", "connectors"],
  "connectors/service-v2/catalogue": ["src/catalogue"],
  "connectors/service-v2/client": [
    "connectors/service-v2/catalogue",
    "src/catalogue",
    "src/connector",
    "src/budget",
    "src/time"
  ],
  "connectors/service-v2/sdk/records": ["connectors/service-v2/sdk/Values.ts"],
  "connectors/service-v2/sdk": [
    "connectors/service-v2/catalogue",
    "connectors/service-v2/client",
    "src/catalogue",
    "src/connector",
    "src/budget",
    "src/time"
  ],
  "connectors/service-v2/radar": [
    "connectors/service-v2/catalogue",
    "connectors/service-v2/client",
    "connectors/service-v2/demo/ControlPlane.ts",
    "src/budget/Budget.ts",
    "src/catalogue",
    "src/connector"
  ],
  // The types of the records are the catalogue's, too.
  "connectors/service-v2/reference-server": [
    "connectors/service-v2/catalogue",
    "connectors/service-v2/sdk/records",
    "src/catalogue",
    "src/web"
  ],
  "connectors/service-v2/package": [
    "connectors/service-v2/catalogue",
    "connectors/service-v2/reference-server/openapi",
    "connectors/service-v2/sdk/Values.ts",
    "connectors/service-v2/sdk/records",
    "src/catalogue",
    "src/warehouse"
  ],
  "connectors/service-v2/demo": ["connectors/service-v2/catalogue", "src/catalogue", "src/connector"],
  "connectors/service-v2/models": ["src/warehouse"],
  "connectors/service-v2/invariants": ["src/invariants"],
  "test/conformance": []
}

const isBelow = (path: string, room: string) => path === room || path.startsWith(`${room}/`)

const importsOf = (path: string): ReadonlyArray<string> =>
  [...codeOf(path).matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map((match) =>
    relative(root, resolve(root, dirname(path), match[1]!))
      .split(sep)
      .join("/")
  )

describe("the source tree", () => {
  it("imports in one direction only", () => {
    const wrong = sources.flatMap((path) => {
      const room = Object.keys(rooms).find((one) => isBelow(path, one))
      if (room === undefined) return path.startsWith("test/") ? [] : [`${path} is in no room`]
      const allowed = [room, ...rooms[room]!]
      return importsOf(path)
        .filter((target) => !allowed.some((one) => isBelow(target, one)))
        .map((target) => `${path} imports ${target}`)
    })
    assert.deepStrictEqual(wrong, [])
  })

  it("uses no ambient clock or randomness in production code", () => {
    const ambient =
      /\bDate\.now\s*\(|\bnew Date\s*\(\s*\)|\bMath\.random\b|\bperformance\.now\b|\bset(?:Timeout|Interval)\s*\(|\brandomUUID\b|\bhrtime\b|\brandomBytes\b|\bgetRandomValues\b/
    // The embedded server's password is a secret, which a simulation must not choose. The signing secrets and the key
    // of the pages' forms take their randomness from a service of that name, as the tokens of companies and the secrets of endpoints do. A script of the pages runs in a browser.
    // A placeholder of a time has a random part that no other text has. The launcher waits before the program is loaded.
    const allowed = new Set([
      "connectors/service-v2/reference-server/ReferenceServer.ts",
      "src/cli/launch.js",
      "src/postgres/embedded/DataDirectory.ts",
      "src/subscriptions/SigningSecrets.ts",
      "src/subscriptions/Reseal.ts",
      "src/companies/CompanyStore.ts",
      "src/delivery/EndpointSecrets.ts",
      "src/dashboard/AccessTokens.ts",
      "src/dashboard/SessionCookies.ts",
      "src/dashboard/Sessions.ts",
      "src/web/Times.ts",
      "src/web/assets/live.js"
    ])
    const wrong = sources
      .filter((path) => !path.startsWith("test/") && !allowed.has(path))
      .filter((path) => ambient.test(codeOf(path)))
    assert.deepStrictEqual(wrong, [])
  })

  it("names no resource of the API in src", () => {
    const paths = [...serviceV2.resources.keys()]
    // Some resources have the names of everyday things. These must not occur as a name in quotes or after a dataset.
    const unmistakable = paths.filter((path) => path.length >= 10)
    const wrong = sources
      .filter((path) => path.startsWith("src/") && path !== "src/main.ts")
      .flatMap((file) => {
        const text = textOf(file)
        return [
          ...unmistakable.filter((path) => new RegExp(`\\b${path}\\b`).test(text)),
          ...paths.filter((path) => new RegExp(`["'\`/.]${path}["'\`]|\\berp(?:_history)?\\.${path}\\b`).test(text))
        ].map((path) => `${file} names ${path}`)
      })
    assert.deepStrictEqual(wrong, [])
  })

  it("mentions only existing files in documents and comments", () => {
    const documents = tracked.filter((path) => path.endsWith(".md"))
    const migrations = tracked.filter((path) => path.startsWith("migrations/"))
    const mentions = [
      // A block of TypeScript in a document is a file of the user.
      ...documents.map((path) => [path, textOf(path).replace(/^```ts\n[^]*?^```$/gm, "")]),
      ...migrations.map((path) => [path, textOf(path)]),
      ...sources.map((path) => [path, commentsOf(path)])
    ]
    const wrong = mentions.flatMap(([path, text]) =>
      [...text!.matchAll(fileMention)]
        .flatMap(([mention]) => withoutBraces(mention))
        .filter((mention) => !exists(mention))
        .map((mention) => `${path} mentions ${mention}`)
    )
    const deadLinks = documents.flatMap((path) =>
      [...textOf(path).matchAll(/\]\((?!https?:)([^)#]+)/g)]
        .map(([, target]) => join(dirname(path), target!).split(sep).join("/"))
        .filter((target) => !tracked.some((file) => isBelow(file, target)))
        .map((target) => `${path} links to ${target}`)
    )
    assert.deepStrictEqual([...wrong, ...deadLinks], [])
  })

  it("names no error code or special field of the API in src", () => {
    // The engine has its own codes with these names. They are in its reports, and no response is compared with them.
    const own = new Set(["not_found", "not_implemented", "server_error", "duplicate"])
    const codes = serviceV2.errorCodes.map(({ code }) => code).filter((code) => !own.has(code))
    const wrong = sources
      .filter((path) => path.startsWith("src/"))
      .flatMap((file) => {
        const text = codeOf(file)
        return ["lastchangedate", ...codes]
          .filter((name) => text.includes(`"${name}"`))
          .map((name) => `${file}: ${name}`)
      })
    assert.deepStrictEqual(wrong, [])
  })

  it("has assertions in every test file, and no skipped tests", () => {
    const tests = sources.filter((path) => path.endsWith(".test.ts"))
    const wrong = tests.filter((path) => {
      const code = codeOf(path)
      return !/\b(?:assert|expect)\b/.test(code) || /\b(?:it|describe|test)\.(?:skip|todo|only)\b/.test(code)
    })
    assert.deepStrictEqual(wrong, [])
  })
})
