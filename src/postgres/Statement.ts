/**
 * Named SQL statements with the types of their parameters and columns.
 *
 * A statement is exported: `test/integration/postgres/Statements.test.ts` prepares each one against the migrated database
 * and compares the names, types and nullability that it declares.
 */
import type * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "./DatabaseError.ts"
import * as Sql from "./Sql.ts"

/** The values of the types of Postgres, as both drivers answer them. */
interface Types {
  readonly bool: boolean
  readonly int2: number
  readonly int4: number
  readonly float8: number
  readonly int8: bigint
  readonly numeric: string
  readonly text: string
  readonly name: string
  readonly date: string
  readonly timestamptz: Date
  readonly bytea: Uint8Array
  readonly json: unknown
  readonly jsonb: unknown
  readonly void: unknown
  readonly "bool[]": ReadonlyArray<boolean>
  readonly "int4[]": ReadonlyArray<number>
  readonly "float8[]": ReadonlyArray<number>
  readonly "int8[]": ReadonlyArray<bigint>
  readonly "text[]": ReadonlyArray<string>
  readonly "bytea[]": ReadonlyArray<Uint8Array>
  readonly "timestamptz[]": ReadonlyArray<Date>
}
/** The types of parameters, where they accept more than the type of a column. */
interface Inputs {
  readonly int8: bigint | number | string
  readonly numeric: string | number
  readonly timestamptz: Date | string
  readonly json: string
  readonly jsonb: string
  readonly "int8[]": ReadonlyArray<bigint | number | string | null>
  /** A buffer is an array in the binary format (`driver/BinaryArray.ts`). */
  readonly "text[]": ReadonlyArray<string | null> | Buffer
  readonly "bytea[]": ReadonlyArray<Uint8Array> | Buffer
  readonly "timestamptz[]": ReadonlyArray<Date | string>
}

type TypeName = keyof Types
declare const narrowed: unique symbol
/** A type of Postgres; `?` says that it may be null. */
export type Type = TypeName | `${TypeName}?`
/** A type of Postgres whose values have a narrower type in this program. */
export type As<A> = Type & { readonly [narrowed]: A }
/** Narrows the values of a column, without the null: `as<"open" | "closed">("text")`. */
export const as = <A>(type: Type): As<A> => type as As<A>
/** Columns of one type. */
export const columns = <const T extends Type, const Name extends string>(type: T, ...names: ReadonlyArray<Name>) =>
  Object.fromEntries(names.map((name) => [name, type])) as Readonly<Record<Name, T>>

type OrNull<T, A> = T extends `${string}?` ? A | null : A
type NameOf<T> = T extends `${infer Name extends TypeName}?` ? Name : T extends TypeName ? T : never
type Value<T> = T extends { readonly [narrowed]: infer A } ? A : OrNull<T, Types[NameOf<T>]>
type Input<T> = OrNull<T, NameOf<T> extends keyof Inputs ? Inputs[NameOf<T>] : Types[NameOf<T>]>

export type Columns = Readonly<Record<string, Type>>
export type RowOf<S> = S extends Statement<infer _, infer C> ? { readonly [Name in keyof C]: Value<C[Name]> } : never
export type Values<P extends ReadonlyArray<Type>> = { readonly [Index in keyof P]: Input<P[Index]> }

export interface Statement<P extends ReadonlyArray<Type>, C extends Columns> {
  /** A verb phrase, which names the operation in errors. */
  readonly name: string
  readonly params: P
  readonly columns: C
  readonly text: string
  /**
   * Whether a session parses and plans it once: for statements that run often, and find rows by a key however large the
   * tables become.
   */
  readonly isPrepared?: boolean
}

/** Declares a statement. `columns` is omitted where it answers no rows. */
export const make = <
  const P extends ReadonlyArray<Type> = [],
  const C extends Columns = Readonly<Record<string, never>>
>(statement: {
  readonly name: string
  readonly params?: P
  readonly columns?: C
  readonly text: string
  readonly isPrepared?: boolean
}): Statement<P, C> => ({ params: [] as unknown as P, columns: {} as C, ...statement })

/** The names of parameters with their types. */
type Parameters = Readonly<Record<string, Type>>

/** A statement whose parameters have names; `values` gives them their places. */
export interface Named<P extends Parameters, C extends Columns> extends Statement<ReadonlyArray<Type>, C> {
  readonly values: (given: { readonly [Name in keyof P]: Input<P[Name]> }) => Values<ReadonlyArray<Type>>
}

/** As {@link make}, for many parameters: `text` gets the place of each by its name. */
export const named = <const P extends Parameters, const C extends Columns = Readonly<Record<string, never>>>({
  params,
  columns,
  text,
  ...statement
}: {
  readonly name: string
  readonly params: P
  readonly columns?: C
  readonly text: (at: { readonly [Name in keyof P]: string }) => string
  readonly isPrepared?: boolean
}): Named<P, C> => {
  const names = Object.keys(params)
  const places = Object.fromEntries(names.map((name, index) => [name, `$${index + 1}`]))
  return {
    ...statement,
    params: Object.values(params),
    columns: columns ?? ({} as C),
    text: text(places as { readonly [Name in keyof P]: string }),
    values: (given) => names.map((name) => given[name] as Input<Type>)
  }
}

export const isStatement = (value: unknown): value is Statement<ReadonlyArray<Type>, Columns> =>
  typeof value === "object" && value !== null && "text" in value && "params" in value && "columns" in value

export type Arguments<P extends ReadonlyArray<Type>> = P extends readonly [] ? [] : [values: Values<P>]

/** Answers the rows of a statement. */
export type Run<E, R = never> = <P extends ReadonlyArray<Type>, C extends Columns>(
  statement: Statement<P, C>,
  ...values: Arguments<P>
) => Effect.Effect<ReadonlyArray<RowOf<Statement<P, C>>>, E, R>

/** Its error names the statement. */
export const run: Run<DatabaseError, SqlClient.SqlClient> = ({ name, text }, ...[values]) =>
  Sql.rows(text, values, name)
