/**
 * A declared call of the control plane: what it takes, what it answers, an example.
 *
 * The declaration drives the dispatch, the checks of the input, the OpenAPI document and the table of the README.
 */
import type * as Schema from "effect/Schema"
import type { Answer } from "../http/Message.ts"
import { json } from "../http/Message.ts"
import type { SeedOptions } from "../seed/seed.ts"
import type { World } from "../World.ts"
import type { Worlds } from "../worlds/Worlds.ts"
import { reader, readNothing } from "./Input.ts"
import type { Form } from "./Input.ts"

/** The addresses of a world, or of the main one for null. */
export type Urls = (name: string | null) => { readonly baseUrl: string; readonly controlUrl: string }

export interface Call<Input, Parameters> {
  readonly world: World
  /** All worlds of the server. */
  readonly worlds: Worlds
  readonly urls: Urls
  /** The options of the server's start. */
  readonly started: SeedOptions
  /** The body of NDJSON, of a call that takes it instead of its input; then the input is not decoded. */
  readonly lines: string | null
  /** The decoded body. */
  readonly input: Input
  /** The decoded parameters of the path and the query. */
  readonly parameters: Parameters
}

/** A call before its input is decoded. */
export interface RawCall {
  readonly world: World
  readonly worlds: Worlds
  readonly urls: Urls
  readonly started: SeedOptions
  readonly lines: string | null
  /** The body as `parseExactly` read it; an empty object without a body. */
  readonly body: unknown
  /** The texts of the path and the query by name. */
  readonly parameters: Readonly<Record<string, string>>
}

export interface Output {
  /** The status of success. */
  readonly status: number
  readonly type: string
  /** The body; of NDJSON one line. */
  readonly schema: Schema.Constraint
}

export interface Example {
  /** The values of the parameters by name. */
  readonly parameters?: Readonly<Record<string, string | number>>
  readonly input?: Readonly<Record<string, unknown>>
  /** The body of the answer; of NDJSON one line. */
  readonly output: unknown
}

interface Description {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  /** As a template: `/companies/{id}`. */
  readonly path: string
  /** A short sentence: what the call does. */
  readonly summary: string
  /** More sentences; default none. */
  readonly description?: string
  readonly output: Output
  /** Of a server that was started with the data `demo`. */
  readonly example: Example
  /** Whether the body may be NDJSON instead of the input; default false. */
  readonly takesLines?: boolean
  /** The conditions of 400 beyond the form of the input, one sentence each. */
  readonly errors?: ReadonlyArray<string>
}

interface Declaration<Input, Parameters> extends Description {
  /** The body; default none. */
  readonly input?: Form<Input>
  /** Members of the body whose numbers keep their digits. */
  readonly exact?: ReadonlyArray<string>
  /** The parameters of the path and the query; default none. */
  readonly parameters?: Form<Parameters>
  readonly answer: (call: Call<Input, Parameters>) => Answer
}

export interface ControlRoute extends Description {
  /** Null means that the call takes no body. */
  readonly input: Form<unknown> | null
  readonly parameters: Form<unknown> | null
  readonly answer: (call: RawCall) => Answer
}

/** Declares a call. Its input is decoded before `answer` runs, and a wrong one is refused. */
export const route = <Input = unknown, Parameters = unknown>(
  declaration: Declaration<Input, Parameters>
): ControlRoute => {
  const { input, exact, parameters, answer, ...description } = declaration
  const readInput = input === undefined ? readNothing : reader(input, exact)
  const readParameters = parameters === undefined ? readNothing : reader(parameters)
  return {
    ...description,
    input: input ?? null,
    parameters: parameters ?? null,
    answer: ({ body, parameters: texts, ...call }) =>
      answer({
        ...call,
        input: (call.lines === null ? readInput(body) : {}) as Input,
        parameters: readParameters(texts) as Parameters
      })
  }
}

/** JSON of a schema, with the status of success. */
export const jsonOf = (schema: Schema.Constraint, status = 200): Output => ({ status, type: json, schema })

/** One JSON value of a schema a line. */
export const linesOf = (schema: Schema.Constraint): Output => ({ status: 200, type: "application/x-ndjson", schema })

export const textAnswer = (body: string, status = 200, type: string = json): Answer => ({
  status,
  headers: { "Content-Type": type },
  body,
  wire: null
})

export const jsonAnswer = (value: unknown, status = 200): Answer => textAnswer(JSON.stringify(value), status)

/** An answer that is sent in chunks. */
export const streamAnswer = (chunks: Iterable<string>, type = "application/x-ndjson"): Answer => ({
  ...textAnswer("", 200, type),
  chunks
})

/** An answer that waits for external work; a failure of the work is answered by the dispatch. */
export const later = (work: Promise<Answer>): Answer => ({ ...jsonAnswer({}), pending: work })
