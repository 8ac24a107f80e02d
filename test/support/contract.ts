/**
 * A checker of requests and answers by the OpenAPI document.
 *
 * It knows the server by its document only: the answer that a path, method and status may have, and whether the
 * document allows a request.
 */
import { Ajv2020 } from "ajv/dist/2020.js"
import type { ValidateFunction } from "ajv"
import addFormats from "ajv-formats"

type Node = Readonly<Record<string, unknown>>

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && !Array.isArray(value)

export interface ContractAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
}

export interface ContractRequest {
  readonly method: string
  /** Below the base address, with its query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string | null
}

export interface MatchedPath {
  readonly template: string
  /** Null when the path exists without the method. */
  readonly operation: Node | null
  readonly parts: Readonly<Record<string, string>>
}

export interface Contract {
  readonly document: Node
  readonly find: (method: string, path: string) => MatchedPath | null
  /** The problems of an answer; empty when it is as documented. */
  readonly answerProblems: (
    request: Pick<ContractRequest, "method" | "url">,
    answer: ContractAnswer
  ) => ReadonlyArray<string>
  /** The problems of a request. */
  readonly requestProblems: (request: ContractRequest) => ReadonlyArray<string>
}

const escape = (part: string) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))

const segmentsOf = (path: string): ReadonlyArray<string> => {
  try {
    return path.slice(1).split("/").map(decodeURIComponent)
  } catch {
    return ["%"]
  }
}

const isWellEncoded = (query: string): boolean => {
  try {
    return query.split("&").every((part) => decodeURIComponent(part) !== "=")
  } catch {
    return false
  }
}

/** The one path that is compared before it is decoded. */
const own = "/openapi.json"

/** The text of a parameter as a value of its schema's type. */
const coerced = (schema: Node, text: string): unknown => {
  const { type } = schema
  if (type === "integer") return /^-?\d+$/.test(text) ? Number(text) : text
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text
  return text
}

export const contract = (document: Node): Contract => {
  const ajv = new Ajv2020({
    strict: false,
    validateSchema: false,
    allErrors: false,
    inlineRefs: false,
    code: { optimize: false }
  })
  addFormats.default(ajv)
  ajv.addSchema(document, "api")

  const at = (pointer: ReadonlyArray<string>): Node => {
    let node: unknown = document
    for (const part of pointer) node = isNode(node) || Array.isArray(node) ? (node as Node)[part] : undefined
    if (!isNode(node)) throw new Error(`the document has nothing at ${pointer.join("/")}`)
    return node
  }

  /** The place of a node, with its reference followed. */
  const real = (pointer: ReadonlyArray<string>): ReadonlyArray<string> => {
    const { $ref: reference } = at(pointer)
    return typeof reference === "string"
      ? reference
          .slice(2)
          .split("/")
          .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
      : pointer
  }

  const compiled = new Map<string, ValidateFunction>()
  const problemsAt = (pointer: ReadonlyArray<string>, value: unknown): ReadonlyArray<string> => {
    const key = pointer.map(escape).join("/")
    let validate = compiled.get(key)
    if (validate === undefined) compiled.set(key, (validate = ajv.compile({ $ref: `api#/${key}` })))
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message ?? ""} ${JSON.stringify(params)}`
    )
  }

  const templates = Object.keys(at(["paths"])).map((template) => ({ template, parts: template.slice(1).split("/") }))
  const bySize = new Map<number, typeof templates>()
  for (const one of templates) bySize.set(one.parts.length, [...(bySize.get(one.parts.length) ?? []), one])

  const find: Contract["find"] = (method, path) => {
    if (!path.startsWith("/")) return null
    if (path !== own && segmentsOf(path).join("/") === own.slice(1)) return null
    const segments = segmentsOf(path)
    const fitting = (bySize.get(segments.length) ?? []).filter(({ parts }) =>
      parts.every((part, index) => part.startsWith("{") || part === segments[index])
    )
    const isVariable = (part: string) => Number(part.startsWith("{"))
    const [best] = fitting.toSorted(
      (a, b) => a.parts.reduce((n, part) => n + isVariable(part), 0) - b.parts.reduce((n, p) => n + isVariable(p), 0)
    )
    if (best === undefined) return null
    const item = at(["paths", best.template])
    // Methods are case-sensitive: `get` is not a method.
    const operation = method === method.toUpperCase() ? item[method.toLowerCase()] : undefined
    const parts = Object.fromEntries(
      best.parts.flatMap((part, index) => (part.startsWith("{") ? [[part.slice(1, -1), segments[index]!]] : []))
    )
    return { template: best.template, operation: isNode(operation) ? operation : null, parts }
  }

  const responseOf = (
    request: Pick<ContractRequest, "method" | "url">,
    status: number
  ): ReadonlyArray<string> | null => {
    const [path = ""] = request.url.split("?")
    const found = find(request.method, path)
    if (found?.operation === null || found === null) {
      if (status === 401 || status === 403) return ["paths", "/me", "get", "responses", String(status)]
      if (found !== null && status === 405) return ["components", "responses", "MethodNotAllowed"]
      // A resource without operations on one record has a path without methods.
      if (found === null && status === 405) return ["components", "responses", "MethodNotAllowed"]
      return found === null && status === 404 ? ["components", "responses", "UnknownPath"] : null
    }
    const responses = ["paths", found.template, request.method.toLowerCase(), "responses"]
    return Object.hasOwn(at(responses), String(status)) ? [...responses, String(status)] : null
  }

  const answerProblems: Contract["answerProblems"] = (request, { status, headers, text }) => {
    const where = responseOf(request, status)
    if (where === null) return [`status ${status} is not documented: ${text.slice(0, 300)}`]
    const pointer = real(where)
    const response = at(pointer)
    const problems: Array<string> = []
    const headerValues = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    for (const name of Object.keys(response["headers"] ?? {})) {
      const header = real([...pointer, "headers", name])
      const value = headerValues.get(name.toLowerCase())
      const { required, schema } = at(header)
      if (value === undefined) {
        if (required === true) problems.push(`the header ${name} is missing`)
      } else {
        const wrong = problemsAt([...header, "schema"], coerced(schema as Node, value))
        problems.push(...wrong.map((problem) => `header ${name} = ${value}: ${problem}`))
      }
    }
    const content = (response["content"] ?? {}) as Node
    const type = (headerValues.get("content-type") ?? "").split(";")[0]!
    if (!Object.hasOwn(content, type)) return [...problems, `the content type ${type} is not documented`]
    if (type !== "application/json") return problems
    try {
      return [...problems, ...problemsAt([...pointer, "content", type, "schema"], JSON.parse(text))]
    } catch {
      return [...problems, `the body is not JSON: ${text.slice(0, 100)}`]
    }
  }

  const requestProblems: Contract["requestProblems"] = ({ method, url, headers, text }) => {
    const question = url.indexOf("?")
    const found = find(method, question < 0 ? url : url.slice(0, question))
    if (found === null) return ["the path is not documented"]
    const { template, operation, parts } = found
    if (operation === null) return ["the method is not documented"]
    const place = ["paths", template, method.toLowerCase()]
    const problems: Array<string> = []
    if (question >= 0 && !isWellEncoded(url.slice(question + 1))) problems.push("the query is not well encoded")
    const query = new Map<string, Array<string>>()
    for (const [name, value] of new URLSearchParams(question < 0 ? "" : url.slice(question + 1))) {
      query.set(name, [...(query.get(name) ?? []), value])
    }
    const known = new Set<string>()
    for (const index of Object.keys(operation["parameters"] ?? [])) {
      const pointer = real([...place, "parameters", index])
      const { name, in: where, schema } = at(pointer) as { name: string; in: string; schema: Node }
      if (where === "query") known.add(name)
      const values =
        where === "query"
          ? (query.get(name) ?? [])
          : [where === "path" ? parts[name] : headers[name.toLowerCase()]].filter((value) => value !== undefined)
      if (values.length > 1) problems.push(`${name} is given twice`)
      for (const value of values) {
        const wrong = problemsAt([...pointer, "schema"], coerced(schema, value))
        problems.push(...wrong.map((problem) => `${where} ${name}: ${problem}`))
      }
    }
    for (const name of query.keys()) if (!known.has(name)) problems.push(`query ${name} is not documented`)
    const body = operation["requestBody"]
    if (!isNode(body)) return problems
    if (text === null || text === "") return body["required"] === true ? [...problems, "the body is missing"] : problems
    try {
      const schema = [...place, "requestBody", "content", "application/json", "schema"]
      return [...problems, ...problemsAt(schema, JSON.parse(text))]
    } catch {
      return [...problems, "the body is not JSON"]
    }
  }

  return { document, find, answerProblems, requestProblems }
}
