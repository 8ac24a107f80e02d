/** A dry run of a push: the same checks as a push, without a warehouse. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { type InputOptions, openInput } from "../../src/outbox/input/Input.ts"
import { type InputRecord, InputError } from "../../src/outbox/input/InputRecord.ts"
import { dryRun } from "../../src/outbox/DryRun.ts"
import { EnqueueRejected } from "../../src/outbox/ValidateInput.ts"
import type { Operation, Problem } from "../../src/outbox/Push.ts"
import { bytesOf, ndJsonStream, resourceOf } from "./support.ts"
import { temporaryFolder } from "../support/servers.ts"
import { test } from "../support/suite.ts"
import { assertEach } from "../support/assertions.ts"

const people = (count: number) =>
  Array.from({ length: count }, (_, index) => `{"externalid":"E${index}","name":"é"}\n`).join("")

const looking = (
  text: string,
  {
    path = "salesmen",
    operation = "create",
    max = 250,
    useBatch = true
  }: { path?: string; operation?: Operation; max?: number; useBatch?: boolean } = {}
) => {
  const problems: Array<Problem> = []
  return dryRun({
    company: "main",
    resource: resourceOf(path),
    operation,
    records: ndJsonStream(text),
    batchRecordsMax: max,
    useBatch,
    onProblem: (problem) => Effect.sync(() => void problems.push(problem))
  }).pipe(Effect.map((looked) => ({ ...looked, problemList: problems })))
}

describe("a dry run", () => {
  test("returns what would be sent", function* () {
    const { calls, given, problems, bytes, first, problemList } = yield* looking(people(5), { max: 2 })
    assert.deepStrictEqual(
      { calls, given, problems, problemList },
      { calls: { batch: 2, single: 1 }, given: 5, problems: 0, problemList: [] }
    )
    assert.deepStrictEqual(
      first,
      ["E0", "E1", "E2"].map((externalid) => ({
        externalid,
        recordId: null,
        text: `{"name":"é","externalid":"${externalid}"}`
      }))
    )
    assert.strictEqual(bytes, 5 * Buffer.byteLength(first[0]!.text))
  })

  test("counts the requests that would be made", function* () {
    const callsOf = (count: number, options: Parameters<typeof looking>[1]) =>
      Effect.map(looking(people(count), options), ({ calls }) => [calls.batch, calls.single])
    assert.deepStrictEqual(yield* callsOf(250, {}), [1, 0])
    assert.deepStrictEqual(yield* callsOf(251, {}), [1, 1])
    assert.deepStrictEqual(yield* callsOf(252, {}), [2, 0])
    assert.deepStrictEqual(yield* callsOf(1, {}), [0, 1])
    assert.deepStrictEqual(yield* callsOf(5, { max: 1 }), [0, 5])
    assert.deepStrictEqual(yield* callsOf(5, { useBatch: false }), [0, 5])
    assert.deepStrictEqual(yield* callsOf(5, { operation: "update" }), [0, 5])
  })

  test("reports every problem and the lines with the same externalid", function* () {
    const { given, problems, problemList } = yield* looking(
      '{"externalid":"A","name":"1"}\n{"externalid":"B"}\n\n?\n{"externalid":"A","name":"2"}\n'
    )
    assert.deepStrictEqual([given, problems], [2, 3])
    assertEach(problemList, ({ line, field, message }) => `${line} ${field}: ${message}`, [
      "2 name: is required",
      "4 null: is no JSON: expected a value at character 1",
      '5 externalid: "A" is given twice: in line 1 and in line 5'
    ])
  })

  test("rejects empty input and unsupported operations", function* () {
    assert.strictEqual((yield* Effect.flip(looking("\n"))).message, "the input has no records")
    const error = yield* Effect.flip(looking('{"id":1}', { path: "emailtemplates", operation: "cancel" }))
    assert.instanceOf(error, EnqueueRejected)
    assert.match(error.message, /cannot be cancelled through this API/)
  })
})

describe("the --from option", () => {
  const stdin = () => bytesOf("{}\n")
  const read = (text: string, options: Partial<InputOptions> = {}) =>
    Effect.flatMap(openInput(text, { stdin, ...options }), (input) =>
      input._tag === "File" ? Stream.runCollect(input.records) : Effect.succeed([])
    )

  test("reads a file in the format of its name or of --format", function* () {
    const folder = yield* temporaryFolder
    const file = (name: string, content: string) => {
      writeFileSync(join(folder, name), content)
      return join(folder, name)
    }
    const tags = (text: string, options?: Partial<InputOptions>) =>
      Effect.map(read(text, options), (inputs) => inputs.map(({ _tag }) => _tag))
    assert.deepStrictEqual(yield* tags(file("a.ndjson", "{}\n{}")), ["Json", "Json"])
    assert.deepStrictEqual(yield* tags(file("a.JSONL", "{}")), ["Json"])
    const cells: InputRecord = { _tag: "Cells", line: 2, cells: ["1", "2"] }
    assert.deepStrictEqual((yield* read(file("a.csv", "a,b\n1,2")))[1], cells)
    assert.deepStrictEqual((yield* read(file("a.tsv", "a\tb\n1\t2")))[1], cells)
    assert.deepStrictEqual((yield* read(file("b.csv", "a;b\n1;2"), { delimiter: ";" }))[1], cells)
    assert.deepStrictEqual(yield* tags(file("data", "{}"), { format: "ndjson" }), ["Json"])
    assert.deepStrictEqual(yield* tags("-"), ["Json"])
    assert.deepStrictEqual(yield* tags("-", { format: "csv" }), ["Header"])
    for (const name of ["data", "a.json", "a.constructor"]) {
      assert.match((yield* Effect.flip(read(file(name, "{}")))).message, /the format of .* is not known/)
    }
    const absent = yield* Effect.flip(read(join(folder, "absent.csv")))
    assert.instanceOf(absent, InputError)
    assert.match(absent.message, /absent\.csv cannot be read: there is no such file/)
    assert.match((yield* Effect.flip(read(folder, { format: "csv" }))).message, /is a folder, and a file is needed/)
  })

  test("is a query when it begins with select or with", function* () {
    for (const text of ["select 1", " SELECT\n1", "with a as (select 1) select * from a"]) {
      assert.strictEqual((yield* openInput(text, { stdin }))._tag, "Query")
    }
    assert.strictEqual((yield* openInput("selected.csv", { stdin }))._tag, "File")
  })
})
