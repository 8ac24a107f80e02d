/** The parts of a close that need no warehouse: periods, the signed file, its pages, findings. */
import { verify } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { inspect } from "node:util"
import { join } from "node:path"
import { Option } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import * as Chain from "../../src/close/Chain.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { findingsOf, partsOf } from "../../src/close/Close.ts"
import { targetOf } from "../../src/cli/close.ts"
import * as Document from "../../src/close/Document.ts"
import * as Files from "../../src/close/Files.ts"
import * as Pdf from "../../src/close/Pdf.ts"
import * as Period from "../../src/close/Period.ts"
import * as Signature from "../../src/close/Signature.ts"
import { pagesOf } from "../support/pdf.ts"
import { test } from "../support/suite.ts"

const folder = mkdtempSync(join(tmpdir(), "tributary-close-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const figures = (count: number, amount: string) => ({
  count,
  sums: { total: amount, amount },
  cancelled: { count: 1, sums: { amount: "0.0001" } },
  digest: "ab".repeat(32)
})

const resourceOf = (resource: string) => ({
  resource,
  businessDate: "day",
  freshAt: "2026-11-02T00:00:00.000Z",
  quarantined: 0,
  tombstones: 2,
  table: figures(12_345, "1234567890123456.7890"),
  untilEnd: figures(12_000, "99.5000"),
  period: figures(1_234, "-1234567.1200")
})

const verified = {
  resource: "things",
  status: "equal" as const,
  source: 12_345,
  warehouse: 12_345,
  missing: 0,
  surplus: 0,
  different: 0,
  notYetSynced: 0,
  unreadable: 0,
  reason: null
}

const content: Document.Content = {
  schema: "tributary.close/1",
  program: { name: "tributary", version: "1.2.3" },
  installation: "database=1",
  company: { name: "north", id: "7" },
  period: {
    month: "2026-10",
    firstDay: "2026-10-01",
    lastDay: "2026-10-31",
    timeZone: "UTC",
    endsAt: "2026-11-01T00:00:00.000Z"
  },
  draft: false,
  revision: 1,
  replaces: null,
  state: "clean",
  findings: [],
  closedAt: "2026-11-02T01:00:00.000Z",
  position: "1200-1f3a9c",
  mode: "position",
  verification: {
    beganAt: "2026-11-02T00:30:00.000Z",
    endedAt: "2026-11-02T00:59:00.000Z",
    sample: null,
    resources: [verified]
  },
  deliveryGaps: [],
  invariants: [{ name: "adds_up", rule: "Lines add up.", severity: "critical", violations: 0, error: null, rows: [] }],
  resources: [resourceOf("things")],
  models: [{ model: "sums", count: 3, sums: { total: "1.00" }, digest: "cd".repeat(32) }]
}

it("a period ends at the first instant of the next month of its time zone", () => {
  const ends = (month: string, zone: string) => Period.parse(month, zone)?.endsAt.toISOString()
  assert.strictEqual(ends("2026-10", "UTC"), "2026-11-01T00:00:00.000Z")
  assert.strictEqual(ends("2026-12", "UTC"), "2027-01-01T00:00:00.000Z")
  assert.strictEqual(ends("2026-10", "Europe/Berlin"), "2026-10-31T23:00:00.000Z")
  assert.strictEqual(ends("2026-03", "Europe/Berlin"), "2026-03-31T22:00:00.000Z")
  assert.strictEqual(ends("2026-10", "America/New_York"), "2026-11-01T04:00:00.000Z")
  assert.strictEqual(Period.parse("2028-02", "UTC")?.lastDay, "2028-02-29")
  for (const text of ["2026-13", "2026-00", "2026-1", "26-10", "october", ""]) assert.isNull(Period.parse(text, "UTC"))
  assert.isNull(Period.parse("2026-10", "Europe/Nowhere"))
})

describe("the signed file", () => {
  const keyPath = join(folder, "config", "close-key.pem")
  const key = Signature.loadKey(keyPath)
  const document = Signature.sign(content, key)
  const expected = Signature.publicKeyOf(keyPath)
  const check = (text: string, fingerprint: string | null = expected) =>
    Signature.check(Document.parse("file", text), fingerprint)

  it("is valid with the key of the installation, which its owner alone can read, and which is made once", () => {
    assert.isTrue(key.isNew)
    assert.strictEqual(statSync(keyPath).mode & 0o777, 0o600)
    assert.isFalse(Signature.loadKey(keyPath).isNew)
    assert.strictEqual(check(Document.print(document)), "valid")
    assert.strictEqual(check(Document.print(document), null), "unknown")
    assert.strictEqual(check(Document.print(document), "00"), "other key")
    assert.deepStrictEqual(Document.parse("file", Document.print(document)).content(), content)
  })

  it("keeps the private key out of the file and of texts about the key", () => {
    const secret = readFileSync(keyPath, "utf8").split("\n")[1]!
    assert.notInclude(Document.print(document), secret)
    assert.notInclude(`${JSON.stringify(key)}${inspect(key)}`, secret)
  })

  it("does not depend on the layout or the order of its members", () => {
    const reversed = Object.fromEntries(Object.entries(JSON.parse(Document.print(document)) as object).reverse())
    assert.strictEqual(check(JSON.stringify(reversed)), "valid")
    assert.strictEqual(Document.canonical({ b: [{ d: 1, c: "ä\n" }], a: null }), '{"a":null,"b":[{"c":"ä\\n","d":1}]}')
  })

  it("is invalid after any change", () => {
    const text = Document.print(document)
    const changes: ReadonlyArray<readonly [string, string]> = [
      ['"count": 1234,', '"count": 1235,'],
      ['"-1234567.1200"', '"-1234567.1201"'],
      ['"state": "clean"', '"state": "differences"'],
      ['"draft": false,', ""],
      ['"findings": [],', '"findings": [],\n  "note": "added",'],
      [document.signature.fingerprint, "00".repeat(32)]
    ]
    for (const [from, to] of changes) {
      assert.include(text, from)
      assert.strictEqual(check(text.replace(from, to)), "invalid", from)
    }
    // Signed again by another key, after a change.
    const other = Signature.loadKey(join(folder, "other.pem"))
    const forged = Signature.sign({ ...content, closedAt: "2026-11-01T00:00:00.000Z" }, other)
    assert.strictEqual(check(Document.print(forged)), "other key")
    assert.strictEqual(
      check(Document.print({ ...forged, signature: { ...document.signature, value: forged.signature.value } })),
      "invalid"
    )
    for (const text of ["", "{}", '{"signature":{}}', "no JSON"]) {
      assert.throws(() => Document.parse("file", text), /is no signed close/)
    }
  })

  it("is verified by the public key alone, as openssl does", () => {
    const { signature, ...rest } = JSON.parse(Document.print(document)) as { signature: Document.SignatureMember }
    const verifies = (text: string) =>
      verify(null, Buffer.from(text), signature.publicKey, Buffer.from(signature.value, "base64"))
    assert.isTrue(verifies(Document.canonical(rest)))
    assert.isFalse(verifies(Document.canonical(rest).replace("1234", "1235")))
  })
})

test("a draft is the first file of its folder", function* () {
  const flags = { to: join(folder, "new", "closes"), draft: true, again: false, config: Option.none() }
  const { path } = yield* targetOf(flags, { month: "2026-10" }, "north")
  Files.writeClose(path, "draft", Buffer.from("pdf"), true)
  assert.strictEqual(Files.readText(path), "draft")
})

it("the files of closes are not replaced, and counted as revisions", () => {
  const closes = join(folder, "closes")
  assert.strictEqual(Files.latestRevision(closes, "2026-10", "north"), 0)
  Files.makeFolder(closes)
  const path = Files.closePath(closes, "2026-10", "north", 1)
  Files.writeClose(path, "one", Buffer.from("pdf"), false)
  assert.throws(() => Files.writeClose(path, "two", Buffer.from("other"), false), /written by another close/)
  assert.strictEqual(Files.readText(path), "one")
  Files.writeClose(Files.closePath(closes, "2026-10", "north", 2), "two", Buffer.from("pdf"), false)
  const draft = Files.draftPath(closes, "2026-10", "north")
  Files.writeClose(draft, "draft", Buffer.from("pdf"), true)
  Files.writeClose(draft, "later draft", Buffer.from("pdf"), true)
  assert.strictEqual(Files.latestRevision(closes, "2026-10", "north"), 2)
  assert.strictEqual(Files.latestRevision(closes, "2026-10", "nort"), 0)
  assert.deepStrictEqual(readdirSync(closes).sort(), [
    "2026-10-north.2.json",
    "2026-10-north.2.pdf",
    "2026-10-north.draft.json",
    "2026-10-north.draft.pdf",
    "2026-10-north.json",
    "2026-10-north.pdf"
  ])
})

it("the chain of closes finds a file that was changed after a later one was signed", () => {
  const closes = join(folder, "chain")
  Files.makeFolder(closes)
  const key = Signature.loadKey(join(folder, "chain.pem"))
  const pathOf = (revision: number) => Files.closePath(closes, "2026-10", "north", revision)
  const write = (revision: number) => {
    const replaces = revision === 1 ? null : Files.sha256Of(pathOf(revision - 1))
    const signed = Signature.sign({ ...content, revision, replaces }, key)
    Files.writeClose(pathOf(revision), Document.print(signed), Buffer.from("pdf"), false)
    return signed
  }
  write(1)
  const second = write(2)
  const third = write(3)
  const states = (close: Document.Document, path: string) =>
    Chain.check(path, close).map(({ file, state }) => `${file.slice(closes.length + 1)} ${state}`)
  assert.deepStrictEqual(states(third, pathOf(3)), ["2026-10-north.2.json intact", "2026-10-north.json intact"])
  const text = readFileSync(pathOf(1), "utf8")
  writeFileSync(pathOf(1), text.replace("closedAt", "closedat"))
  assert.deepStrictEqual(states(third, pathOf(3)), ["2026-10-north.2.json intact", "2026-10-north.json changed"])
  assert.deepStrictEqual(states(second, pathOf(2)), ["2026-10-north.json changed"])
  rmSync(pathOf(2))
  assert.deepStrictEqual(states(third, pathOf(3)), ["2026-10-north.2.json missing"])
  assert.deepStrictEqual(states(Signature.sign(content, key), pathOf(1)), [])
})

it("the pages repeat the head of a table, and show the state, the sums and the key", async () => {
  const key = Signature.loadKey(join(folder, "pages.pem"))
  const resources = Array.from({ length: 120 }, (_, index) => resourceOf(`things${index}`))
  const document = Signature.sign({ ...content, resources, state: "differences", findings: ["2 things differ"] }, key)
  const pages = pagesOf(await Pdf.render(document))
  assert.isAbove(pages.length, 2)
  const all = pages.join("\n")
  for (const text of [
    "Close of 2026-10",
    "Company north (7)",
    "With differences",
    "- 2 things differ",
    document.signature.fingerprint
  ])
    assert.include(all, text)
  assert.include(all, "amount -1,234,567.12")
  for (const [index, page] of pages.entries()) {
    assert.include(page, `page ${index + 1} of ${pages.length}`)
    if (/things\d/.test(page)) assert.match(page, /resource\ndate\nrecords\ncancelled\nsums\ndigest/)
  }
  assert.lengthOf(all.match(/things\d+\n/g)!, 120)
  // The order of the file's members is another one.
  const read = JSON.parse(Document.print(document)) as Document.Document
  assert.deepStrictEqual(await Pdf.render(document), await Pdf.render(read))
})

describe("the findings", () => {
  const endsAt = new Date("2026-11-01T00:00:00Z")
  const found = (change: Partial<Document.Content>) => findingsOf({ ...content, ...change }, { endsAt })

  it("are none for an equal and fresh company whose critical rules hold", () => {
    const warning = { ...content.invariants[0]!, severity: "warning", violations: 3 }
    assert.deepStrictEqual(found({ invariants: [warning] }), [])
  })

  it("have every resource of which some records only are kept", () => {
    const [areas, orders] = [serviceV2.resources.get("areas")!, serviceV2.resources.get("orders")!]
    const where = [{ field: "itemid", match: "exact", value: "3" }] as const
    assert.deepStrictEqual(partsOf([areas, { ...orders, since: "2025-01-01T00:00:00.000Z", where }]), [
      "orders has only records that are kept by the configuration: changed since 2025-01-01 and itemid = 3"
    ])
  })

  it("have a delivery gap only where the comparison did not find everything equal", () => {
    const gap = { resource: "things", cause: "subscription_inactive", detail: "", beganAt: null, endedAt: null }
    const deliveryGaps = [gap, gap, { ...gap, resource: "others" }]
    const { verification } = content
    assert.deepStrictEqual(found({ deliveryGaps }), [])
    const waiting = { ...verification, resources: [{ ...verified, status: "waiting" as const, missing: 1 }] }
    assert.deepStrictEqual(found({ deliveryGaps, verification: waiting }), [
      "things is not equal to the source (1 missing): tributary sync",
      "2 open delivery gaps of things may hide changes: tributary sync"
    ])
    const sampled = { ...verification, sample: { records: 9, seed: 1 } }
    assert.deepStrictEqual(found({ deliveryGaps: [gap], verification: sampled }), [
      "only 9 records of each resource were compared with the source: close without --sample",
      "1 open delivery gap of things may hide changes: tributary sync"
    ])
  })

  it("name what is wrong, and what to do", () => {
    const late = { ...resourceOf("things"), freshAt: "2026-10-31T23:59:59.999Z", quarantined: 2 }
    const never = { ...resourceOf("plains"), freshAt: null }
    const skipped = { ...verified, resource: "skipped", status: "skipped" as const }
    const findings = found({
      resources: [late, never, { ...never, resource: "skipped" }],
      verification: {
        ...content.verification,
        resources: [
          { ...verified, status: "unequal", missing: 1, different: 2 },
          { ...verified, resource: "plains", status: "waiting", surplus: 1 },
          { ...verified, resource: "others", status: "failed", reason: "no answer" },
          skipped
        ]
      },
      invariants: [
        { ...content.invariants[0]!, violations: 3 },
        { ...content.invariants[0]!, name: "own", error: "no such column" }
      ]
    })
    assert.deepStrictEqual(findings, [
      "things is not equal to the source (1 missing, 2 different): tributary verify",
      "plains is not equal to the source (1 surplus): tributary sync",
      "others could not be compared with the source: no answer",
      "2 resources were not read after the period's end (things, plains): tributary sync",
      "2 records of things in quarantine: tributary status",
      "the invariant own cannot be evaluated: no such column",
      "3 violations of adds_up: Lines add up."
    ])
  })
})
