/**
 * Errors of the service, all in one form.
 *
 * Promise: the status of a code is stated in the catalogue only. An ApiError thrown inside a write undoes the whole
 * write.
 */
import { serviceV2 } from "../catalogue/index.ts"

const statuses: ReadonlyMap<string, number> = new Map(serviceV2.errorCodes.map(({ code, status }) => [code, status]))

/** One problem of a body that may have several. */
export interface Problem {
  readonly field: string
  readonly code: string
  readonly message: string
}

export interface ApiErrorOptions {
  readonly field?: string | undefined
  readonly errors?: ReadonlyArray<Problem>
  readonly headers?: Readonly<Record<string, string>>
  /** JSON text of the current record (B-03). */
  readonly current?: string
}

export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly code: string
  readonly status: number
  readonly options: ApiErrorOptions
  constructor(code: string, message: string, options: ApiErrorOptions = {}) {
    super(message)
    this.code = code
    const status = statuses.get(code)
    if (status === undefined) throw new Error(`${code} is no error code of the catalogue`)
    this.status = status
    this.options = options
  }
}

/** The error for a parameter or field that does not exist here. `field` is absent where the name is empty. */
export const unknownName = (kind: "parameter" | "field", name: string, valid: string, at = ""): ApiError => {
  const field = name === "" ? at.replace(/\.$/, "") : `${at}${name}`
  const problem = name === "" ? `a ${kind} needs a name` : `${field} is no ${kind} here`
  return new ApiError("unknown_parameter", `${problem}; valid are: ${valid}`, field === "" ? {} : { field })
}

/** The inner error object, as batch results carry it. */
export const printError = ({ code, message, options }: ApiError): string => {
  const members = [`"code":${JSON.stringify(code)}`, `"message":${JSON.stringify(message)}`]
  if (options.field !== undefined) members.push(`"field":${JSON.stringify(options.field)}`)
  if (options.errors !== undefined) members.push(`"errors":${JSON.stringify(options.errors)}`)
  if (options.current !== undefined) members.push(`"current":${options.current}`)
  return `{${members.join(",")}}`
}

/** The one envelope of every failure (ERR-01). */
export const printEnvelope = (error: ApiError): string => `{"error":${printError(error)}}`
