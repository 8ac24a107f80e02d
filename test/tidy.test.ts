/**
 * Rules for the whole tree that the linter cannot express: named SQL, no ambient time or randomness, no name of the API's
 * resources in `src`, no mention of a file that does not exist.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join, posix, sep } from "node:path"
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
  /(?<![\w$<])(?:[\w.@*<>-]+\/)*(?:\{[\w, ./]+\}|[\w.*<>-]+)\.(?:ts|js|sql)\b(?![\w/-])|(?<!\.)\b(?:src|test|connectors|config|docs|migrations)\/(?:[\w.*-]+\/)*[\w.*-]*\w/g
/** Files of the user, which are not in the tree. */
const usersFiles = new Set(["config/tributary.yaml", "config/close-key.pem", "srv/tributary/src/cli/launch.js"])

const withoutBraces = (mention: string): ReadonlyArray<string> => {
  const list = /^(.*)\{([^}]*)\}(.*)$/.exec(mention)
  return list === null ? [mention] : list[2]!.split(",").map((name) => `${list[1]}${name.trim()}${list[3]}`)
}

const known = new Map<string, boolean>()
const exists = (mention: string): boolean => {
  const before = known.get(mention)
  if (before !== undefined) return before
  const path = mention
    .replace(/^(?:\.{1,2}\/)+/, "")
    .replace(/\./g, "\\.")
    .replace(/<\w+>|\bNAME\b/g, "[^/]+")
    .replace(/\*+/g, ".*")
  const pattern = new RegExp(`(?:^|/)${path}(?:$|/)`)
  const isKnown = usersFiles.has(mention) || tracked.some((file) => pattern.test(file))
  known.set(mention, isKnown)
  return isKnown
}

const isBelow = (path: string, room: string) => path === room || path.startsWith(`${room}/`)

const documents = tracked.filter((path) => path.endsWith(".md"))

/** The text of a document without its code. */
const proseOf = (path: string) => textOf(path).replace(/^\s*```[^]*?^\s*```/gm, "")

/** The links of a document to files of the repository and to headings. */
const linksOf = (path: string) =>
  [
    ...proseOf(path)
      .replace(/`[^`\n]*`/g, "")
      .matchAll(/\]\((?![a-z]+:)([^)\s]+)/g)
  ].map(([, target]) => {
    const [, relative = "", anchor = ""] = /^([^#]*)#?(.*)$/.exec(target!)!
    return { target: target!, anchor, file: relative === "" ? path : posix.join(posix.dirname(path), relative) }
  })

/** Whether a document has a heading with this anchor, by the rules of GitHub: the second of equal headings ends in -1. */
const hasAnchor = (path: string, anchor: string) => {
  const anchors = [...proseOf(path).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading]) =>
    heading!
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
      .replaceAll(" ", "-")
  )
  return anchors.some((one, index) => {
    const earlier = anchors.slice(0, index).filter((other) => other === one).length
    return anchor === (earlier === 0 ? one : `${one}-${earlier}`)
  })
}

/** How many queries of a file are no named statements of `src/postgres/Statement.ts`. A count may only fall. */
const unnamedSql: Readonly<Record<string, number>> = {
  "src/cli/DemoWebhook.ts": 1,
  "src/cli/status/Resources.ts": 1,
  "src/inbox/CompareWithRow.ts": 1,
  "src/land/BatchLoader.ts": 10,
  "src/land/CompleteScan.ts": 1,
  "src/land/ConfirmIdentity.ts": 1,
  "src/land/FieldFindings.ts": 2,
  "src/land/ResourceLock.ts": 3,
  "src/land/RunRow.ts": 1,
  "src/land/SoftDelete.ts": 10,
  "src/outbox/AssumedNew.ts": 2,
  "src/outbox/PushSession.ts": 1,
  "src/postgres/Migrations.ts": 3,
  "src/postgres/Query.ts": 11,
  "src/postgres/Sql.ts": 2,
  "src/postgres/Statement.ts": 1,
  "src/retention/Forget.ts": 3,
  "src/retention/HistoryRetention.ts": 1,
  "src/sync/SyncHistory.ts": 1,
  "src/sync/SourceGuard.ts": 2,
  "src/tasks/CountRows.ts": 1,
  "src/verify/Explain.ts": 1,
  "src/verify/WarehouseRows.ts": 6,
  "src/warehouse/PrivacyRestored.ts": 1,
  "src/warehouse/PrivacyRewrite.ts": 7,
  "src/warehouse/RelationPlan.ts": 1,
  "src/warehouse/TableDamage.ts": 1,
  "src/warehouse/TablePlan.ts": 2,
  "src/warehouse/Views.ts": 1
}

describe("the source tree", () => {
  it("has one error of the database", () => {
    const others = sources.filter(
      (path) => path.startsWith("src/") && path !== "src/postgres/Transaction.ts" && textOf(path).includes("SqlError")
    )
    assert.deepStrictEqual(others, [])
  })

  it("imports pg only in the folder of that driver", () => {
    const others = sources.filter(
      (path) =>
        path.startsWith("src/") &&
        !path.startsWith("src/postgres/driver/") &&
        /from "pg(?:-copy-streams)?"/.test(textOf(path))
    )
    assert.deepStrictEqual(others, [])
  })

  // Kysely prints a notice on standard output, where the answers of --json are.
  it("orders by one column at a time", () => {
    const lists = sources.filter((path) => path.startsWith("src/") && textOf(path).includes(".orderBy(["))
    assert.deepStrictEqual(lists, [])
  })

  it("names its SQL", () => {
    const use = /\bsql\.unsafe\b|\bSql\.rows\b|\bsql(?:<[^`]*?>)?`|\b(?:inboxQuery|run)(?:<[^;]*?>)?\(\s*["`][a-z]/g
    const grown = sources.flatMap((path) => {
      const count = path.startsWith("src/") ? (textOf(path).match(use)?.length ?? 0) : 0
      return count > (unnamedSql[path] ?? 0) ? [`${path}: ${count}`] : []
    })
    assert.deepStrictEqual(grown, [])
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
    const unmistakable = paths.filter((path) => path.length >= 10).join("|")
    const any = paths.join("|")
    const names = new RegExp(
      `\\b(?:${unmistakable})\\b|["'\`/.](?:${any})["'\`]|\\berp(?:_history)?\\.(?:${any})\\b`,
      "g"
    )
    const wrong = sources
      .filter((path) => path.startsWith("src/") && path !== "src/main.ts")
      .flatMap((file) => [...textOf(file).matchAll(names)].map(([name]) => `${file} names ${name}`))
    assert.deepStrictEqual(wrong, [])
  })

  it("mentions only existing files in documents and comments", () => {
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
    assert.deepStrictEqual(wrong, [])
  })

  it("has no dead link in a document, and reaches every page of docs from docs/README.md", () => {
    const dead = documents.flatMap((path) =>
      linksOf(path)
        .filter(
          ({ file, anchor }) =>
            !tracked.some((one) => isBelow(one, file)) || (anchor !== "" && !hasAnchor(file, anchor))
        )
        .map(({ target }) => `${path} links to ${target}`)
    )
    assert.deepStrictEqual(dead, [])
    const reached = new Set(["docs/README.md"])
    for (const page of reached)
      for (const { file } of linksOf(page)) if (isBelow(file, "docs") && file.endsWith(".md")) reached.add(file)
    assert.deepStrictEqual(
      documents.filter((path) => isBelow(path, "docs") && !reached.has(path)),
      []
    )
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
})
