/** What to do about an error of Postgres, by its code: in commands, in the failure of a run, and for a migration. */
import { assert, describe, it } from "vitest"
import { commandFailed } from "../../../src/cli/Command.ts"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import * as Remedy from "../../../src/postgres/Remedy.ts"
import { failureOf } from "../../../src/sync/Outcome.ts"

const errorOf = (code: string) => DatabaseError.from("merge orders")(Object.assign(new Error("it failed"), { code }))

/** Codes of each class, with a part of the remedy and the exit code of a command. */
const cases: ReadonlyArray<readonly [code: string, part: RegExp, exit: number]> = [
  ["08006", /network/, 5],
  ["23505", /constraint that the message names/, 2],
  ["25006", /standby.*primary/, 2],
  ["40001", /^run this again$/, 5],
  ["42501", /right that the message names/, 2],
  ["42P01", /restored in part/, 2],
  ["53200", /out of memory/, 5],
  ["53999", /lacks a resource/, 5],
  ["55P03", /locked a table/, 5],
  ["57014", /canceled/, 5],
  ["57P02", /crashed/, 5],
  ["58030", /disk of the database server fails/, 5],
  ["P0001", /trigger/, 2],
  ["XX001", /table of the database is damaged/, 5]
]

describe("the remedy of an error of Postgres", () => {
  it.each(cases)("says for %s what its code says", (code, part, exit) => {
    const error = errorOf(code)
    assert.match(Remedy.remedyOf(error) ?? "", part)
    const command = commandFailed(error)
    assert.strictEqual(command.code, exit)
    assert.match(command.message, /^it failed\n {2}what to do: /)
    assert.match(failureOf(error).remedy, new RegExp(part.source.replace("$", ";")))
  })

  it("names no trigger, constraint or right where a disk is full, and guesses nothing for an unknown code", () => {
    assert.notMatch(failureOf(errorOf("53100")).remedy, /trigger|constraint|right/)
    for (const code of ["42601", "22012", "ZZ123"]) {
      assert.isNull(Remedy.remedyOf(errorOf(code)))
      assert.strictEqual(commandFailed(errorOf(code)).message, "it failed")
      assert.match(failureOf(errorOf(code)).remedy, /log of the database server/)
    }
  })
})
