/**
 * The rows of `tributary.installation_settings`: installations that are configured in the warehouse, with the names and
 * values that `installations` has in the file.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Installation, installationOf } from "../configuration/Installations.ts"
import { Stored, type Written } from "../configuration/InstallationSettings.ts"
import { mistakesIn } from "../configuration/Inputs.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import { control } from "../postgres/Tables.ts"

export interface InstallationRow {
  readonly name: string
  readonly settings: Written
}

export const read: Sql.Query<ReadonlyArray<InstallationRow>> = Effect.map(
  Query.run(
    control
      .selectFrom("tributary.installation_settings")
      .select(["installation as name", "settings"])
      .orderBy("installation")
  ),
  (rows) => rows.map(({ name, settings }) => ({ name, settings: settings as Written }))
)

/** The settings of this name; undefined where there are none. */
export const find = (name: string) => Effect.map(read, (rows) => rows.find((row) => row.name === name))

const decode = Schema.decodeUnknownResult(Stored, { errors: "all", onExcessProperty: "error" })

/** The installation of a row, over the top level of the file; else its mistakes. */
export const installationOfRow = (
  { name, settings }: InstallationRow,
  topLevel: Written
): Result.Result<Installation, string> => {
  const decoded = decode(settings)
  return decoded._tag === "Success"
    ? Result.succeed(installationOf(topLevel, name, decoded.success))
    : Result.fail(
        mistakesIn(decoded.failure.issue, ["installations", 0])
          .map(({ path, message }) => `${path.slice(2).map(String).join(".")}: ${message}`)
          .join("; ")
      )
}

/** Adds an installation. False where one of this name exists. */
export const add = ({ name, settings }: InstallationRow) =>
  Effect.map(
    Query.run(
      control
        .insertInto("tributary.installation_settings")
        .values({ installation: name, settings: JSON.stringify(settings) })
        .onConflict((conflict) => conflict.doNothing())
        .returning("installation")
    ),
    (added) => added.length > 0
  )

/** Replaces the settings. */
export const set = ({ name, settings }: InstallationRow) =>
  Query.run(
    control
      .updateTable("tributary.installation_settings")
      .set({ settings: JSON.stringify(settings), updated_at: Query.now })
      .where("installation", "=", name)
  )

/** The companies of the warehouse that belong to an installation, by name. */
export const companiesOf = (name: string) =>
  Effect.map(
    Query.run(
      control
        .selectFrom("tributary.company_settings")
        .select("company")
        .where("installation", "=", name)
        .orderBy("company")
    ),
    (rows) => rows.map(({ company }) => company)
  )

/** Removes an installation that no company of the warehouse belongs to. */
export const remove = (name: string) =>
  Effect.map(
    Query.run(
      control
        .deleteFrom("tributary.installation_settings")
        .where("installation", "=", name)
        .where((is) =>
          is.not(
            is.exists(is.selectFrom("tributary.company_settings").select("company").where("installation", "=", name))
          )
        )
        .returning("installation")
    ),
    (removed) => removed.length > 0
  )
