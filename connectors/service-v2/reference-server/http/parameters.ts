/** Query parameters: each at most once, names on the allow-list (CODE-05). */
import { ApiError, unknownName } from "../ApiError.ts"

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "))
  } catch {
    throw new ApiError("invalid_request", "the query is not well encoded", { field: text.slice(0, 100) })
  }
}

/** Reads the query of a URL, without the question mark. */
export const readParameters = (query: string, allowed: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const parameters = new Map<string, string>()
  for (const part of query.split("&")) {
    if (part === "") continue
    const equals = part.indexOf("=")
    const name = decode(equals < 0 ? part : part.slice(0, equals))
    const value = equals < 0 ? "" : decode(part.slice(equals + 1))
    if (!allowed.includes(name)) {
      const valid = allowed.length === 0 ? "none" : allowed.join(", ")
      throw unknownName("parameter", name, valid)
    }
    if (parameters.has(name)) throw new ApiError("invalid_request", `${name} is given twice`, { field: name })
    parameters.set(name, value)
  }
  return parameters
}

const wrongType = (name: string, what: string) =>
  new ApiError("invalid_type", `${name} must be ${what}`, { field: name })

export const readInteger = (name: string, text: string): number => {
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value)) throw wrongType(name, "an integer")
  return value
}

export const readBoolean = (name: string, text: string): boolean => {
  if (text !== "true" && text !== "false") throw wrongType(name, "true or false")
  return text === "true"
}

/** Whether `include=custom_fields` is sent; any other value is refused. */
export const readInclude = (parameters: ReadonlyMap<string, string>): boolean => {
  const include = parameters.get("include")
  if (include === undefined) return false
  if (include !== "custom_fields") {
    throw new ApiError("invalid_enum", "include takes custom_fields and nothing else", { field: "include" })
  }
  return true
}
