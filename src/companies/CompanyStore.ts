/**
 * The rows of `tributary.company_settings`: companies that are configured in the warehouse.
 *
 * Promise: a token is stored sealed, for its company and its address. The database alone reveals no token, and a row with
 * a changed address does not send its token there.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as SecretCipher from "../subscriptions/SecretCipher.ts"

export const revisionStatement = Statement.make({
  name: "read the revision of the companies",
  columns: { revision: "int8" },
  text: "select company_revision as revision from tributary.warehouse"
})

/** A number that rises with each change of a row. */
export const readRevision: Sql.Query<bigint> = Effect.map(
  Statement.run(revisionStatement),
  ([row]) => row?.revision ?? 0n
)

export const readStatement = Statement.make({
  name: "read the companies",
  columns: {
    company: "text",
    installation: "text?",
    url: "text",
    companyId: "int8?",
    warehouseNumber: "int8?",
    resources: "text[]?",
    excludeResources: "text[]?",
    events: "text[]?",
    /** As another program inserted it; null once it is sealed. */
    token: "text?",
    /** Base64. */
    sealed: "text?",
    pausedAt: "timestamptz?",
    pausedBy: "text?",
    createdAt: "timestamptz",
    updatedAt: "timestamptz",
    /** Its move to another warehouse. */
    moveId: "text?",
    moveState: Statement.as<"leaving" | "arriving" | null>("text?"),
    /** Differs after each change of the row. */
    version: "text"
  },
  text: `select company, installation, url, company_id as "companyId", warehouse_number as "warehouseNumber", resources, exclude_resources as "excludeResources",
                webhook_events as events, token,
                encode(sealed_token, 'base64') as sealed, paused_at as "pausedAt", paused_by as "pausedBy",
                created_at as "createdAt", updated_at as "updatedAt", move_id as "moveId", move_state as "moveState",
                xmin::text as version
           from tributary.company_settings order by company`
})

export type CompanyRow = Statement.RowOf<typeof readStatement>

export const read: Sql.Query<ReadonlyArray<CompanyRow>> = Statement.run(readStatement)

/** The company of that name; undefined where there is none. */
export const find = (name: string) => Effect.map(read, (rows) => rows.find(({ company }) => company === name))

/** The company and the address of a token. */
type TokenOwner = Pick<CompanyRow, "company" | "url">

const ownerOf = ({ company, url }: TokenOwner) => `${company}\n${url}`

const cipher = SecretCipher.make("tributary company token 1", (owner) => `token of ${owner.split("\n")[0]}`)

/** The token in base64, as a row stores it. */
export const seal = (key: Redacted.Redacted, owner: TokenOwner, token: Redacted.Redacted) =>
  Effect.gen(function* () {
    const random = yield* SecureRandom.SecureRandom
    const sealed = cipher.encrypt(ownerOf(owner), key, token, yield* random.randomBytes(SecretCipher.randomLength))
    return Buffer.from(sealed).toString("base64")
  }).pipe(Effect.provide(SecureRandom.layerWebCrypto))

/** The token of a row; null where the key does not open it. */
export const tokenOf = (key: Redacted.Redacted | null, row: CompanyRow): Redacted.Redacted | null => {
  if (row.token !== null) return Redacted.make(row.token, { label: `token of ${row.company}` })
  if (key === null || row.sealed === null) return null
  return cipher.decrypt(ownerOf(row), key, Buffer.from(row.sealed, "base64"))
}

export const sealStatement = Statement.make({
  name: "seal the tokens of companies",
  params: ["text"],
  text: `update tributary.company_settings s set sealed_token = decode(p.sealed, 'base64'), token = null
          from jsonb_to_recordset($1::text::jsonb) as p(company text, url text, token text, sealed text)
          where s.company = p.company and s.url = p.url and s.token = p.token`
})

/** Seals the tokens that other programs inserted. */
export const sealTokens = Effect.fnUntraced(function* (key: Redacted.Redacted, rows: ReadonlyArray<CompanyRow>) {
  const open = rows.flatMap(({ company, url, token }) => (token === null ? [] : [{ company, url, token }]))
  if (open.length === 0) return
  const sealed = yield* Effect.forEach(open, (one) =>
    Effect.map(seal(key, one, Redacted.make(one.token)), (sealed) => ({ ...one, sealed }))
  )
  yield* Statement.run(sealStatement, [JSON.stringify(sealed)])
})

export interface NewCompany extends TokenOwner {
  readonly installation: string | null
  readonly companyId: bigint | null
  readonly warehouseNumber: bigint | null
  readonly resources: ReadonlyArray<string> | null
  readonly excludeResources: ReadonlyArray<string> | null
  readonly events: ReadonlyArray<string> | null
}

/** A row of the settings, with its sealed token in base64. */
export const rowOf = (company: NewCompany, sealed: string) => ({
  company: company.company,
  installation: company.installation,
  url: company.url,
  company_id: company.companyId,
  warehouse_number: company.warehouseNumber,
  resources: company.resources,
  exclude_resources: company.excludeResources,
  webhook_events: company.events,
  sealed_token: Buffer.from(sealed, "base64")
})

/** Adds a company. False where one of this name exists. */
export const add = Effect.fnUntraced(function* (key: Redacted.Redacted, company: NewCompany, token: Redacted.Redacted) {
  const sealed = yield* seal(key, company, token)
  const added = yield* Query.run(
    control
      .insertInto("tributary.company_settings")
      .values(rowOf(company, sealed))
      .onConflict((conflict) => conflict.doNothing())
      .returning("company")
  )
  return added.length > 0
})

export const pauseStatement = Statement.make({
  name: "pause a company",
  params: ["text", "text"],
  columns: { company: "text" },
  text: `update tributary.company_settings set paused_at = tributary.now(), paused_by = $2, updated_at = tributary.now()
          where company = $1 and paused_at is null returning company`
})

/** False where it was paused before. */
export const pause = (company: string, by: string) =>
  Effect.map(Statement.run(pauseStatement, [company, by]), (rows) => rows.length > 0)

export const lockStatement = Statement.make({
  name: "lock the settings of a company",
  params: ["text"],
  columns: { moveId: "text?", moveState: "text?", version: "text" },
  text: `select move_id as "moveId", move_state as "moveState", xmin::text as version
           from tributary.company_settings where company = $1 for update`
})

export const resumeStatement = Statement.make({
  name: "resume a company",
  params: ["text"],
  columns: { company: "text" },
  text: `update tributary.company_settings s
            set paused_at = null, paused_by = null, move_state = null, updated_at = tributary.now()
          where company = $1 and (paused_at is not null or move_state is not null) and move_state is distinct from 'arriving'
            and not exists (select from tributary.receipts r where r.move_id = s.move_id) returning company`
})

/** Ends its pause, and a move that has not given it away. False where there is neither. */
export const resume = (company: string) =>
  transaction(
    // A move has the row locked until it has given the company away: the next statement sees its receipt.
    Effect.andThen(
      Statement.run(lockStatement, [company]),
      Effect.map(Statement.run(resumeStatement, [company]), (rows) => rows.length > 0)
    )
  )

export const rotateStatement = Statement.make({
  name: "replace the token of a company",
  params: ["text", "text", "text"],
  columns: { company: "text" },
  text: `update tributary.company_settings set sealed_token = decode($3, 'base64'), token = null, updated_at = tributary.now()
          where company = $1 and url = $2 returning company`
})

/** Replaces the token. False where the row was removed, or has another address meanwhile. */
export const rotateToken = Effect.fnUntraced(function* (
  key: Redacted.Redacted,
  owner: TokenOwner,
  token: Redacted.Redacted
) {
  const values = [owner.company, owner.url, yield* seal(key, owner, token)] as const
  return (yield* Statement.run(rotateStatement, values)).length > 0
})

export const deleteStatement = Statement.make({
  name: "delete the settings of a company",
  params: ["text"],
  columns: { company: "text" },
  text: "delete from tributary.company_settings where company = $1 returning company"
})

/** False where there is none. */
export const remove = (company: string) =>
  Effect.map(Statement.run(deleteStatement, [company]), (rows) => rows.length > 0)
