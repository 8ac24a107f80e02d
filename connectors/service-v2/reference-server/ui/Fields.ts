/** The fields of a form, from the declared input of a control call. */
import type * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"
import { isObject } from "../json.ts"
import { controlRoutes } from "../control/routes.ts"
import { select } from "../../../../src/web/Components.ts"
import { html, type Html } from "../../../../src/web/Html.ts"
import { ofForm, type PageRequest } from "./Page.ts"
import { input } from "./Parts.ts"

/** One member of a call's input. */
export interface FormField {
  readonly name: string
  readonly description: string
  /** The allowed values; null for a free one. */
  readonly choices: ReadonlyArray<string | number | boolean> | null
  readonly isText: boolean
  readonly isNullable: boolean
}

const partsOf = (type: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => (type._tag === "Union" ? type.types : [type])

const textOf = (annotations: unknown): string => {
  const description = isObject(annotations) ? annotations["description"] : undefined
  return typeof description === "string" ? description : ""
}

const fieldOf = (name: string, type: SchemaAST.AST): FormField => {
  const parts = partsOf(type)
  const literals = parts.flatMap((part) => (part._tag === "Literal" ? [part.literal as string | number] : []))
  const choices = type._tag === "Boolean" ? [true, false] : literals.length > 0 ? literals : null
  return {
    name,
    description: textOf(type.annotations) || textOf(type.checks?.at(-1)?.annotations),
    choices,
    isText: parts.some((part) => part._tag === "String") || (literals.length > 0 && typeof literals[0] === "string"),
    isNullable: parts.some((part) => part._tag === "Null")
  }
}

const fieldsOfAst = (ast: SchemaAST.AST): ReadonlyArray<FormField> =>
  ast._tag === "Objects" ? ast.propertySignatures.map(({ name, type }) => fieldOf(String(name), type)) : []

const inputOf = (method: string, path: string): SchemaAST.AST | undefined =>
  (controlRoutes.find((route) => route.method === method && route.path === path)?.input as Schema.Top | null)?.ast

/** The members of the input of a call. */
export const fieldsOf = (method: string, path: string): ReadonlyArray<FormField> => {
  const ast = inputOf(method, path)
  return ast === undefined ? [] : fieldsOfAst(ast)
}

/** The members of the items of a list in the input of a call. */
export const itemFieldsOf = (method: string, path: string, member: string): ReadonlyArray<FormField> => {
  const ast = inputOf(method, path)
  const list = ast?._tag === "Objects" ? ast.propertySignatures.find(({ name }) => name === member)?.type : undefined
  return list?._tag === "Arrays" && list.rest[0] !== undefined ? fieldsOfAst(list.rest[0]) : []
}

/** A field with its present value. */
export const formField = ({ name, description, choices }: FormField, present: string): Html => {
  const hint = description.replaceAll("`", "")
  return choices === null
    ? input(name, name, { value: present, hint })
    : select(name, name, null, choices.map(String), present, hint)
}

/** Several fields beside each other. */
export const formFields = (fields: ReadonlyArray<FormField>, present: (name: string) => string): Html =>
  html`<div class="beside fields">${fields.map((field) => formField(field, present(field.name)))}</div>`

/** The value that a text stands for; undefined where it is empty and the field cannot be null. */
export const valueOf = (field: FormField, text: string | null): unknown => {
  if (text === null) return field.isNullable ? null : undefined
  const chosen = field.choices?.find((value) => String(value) === text)
  if (chosen !== undefined) return chosen
  return !field.isText && /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text
}

/** The values that a form changes. */
export const changedValues = (
  request: PageRequest,
  fields: ReadonlyArray<FormField>,
  present: Readonly<Record<string, unknown>>
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    fields
      .filter(({ name }) => request.form.has(name))
      .map((field) => [field.name, valueOf(field, ofForm(request, field.name))] as const)
      .filter(([name, value]) => value !== undefined && value !== present[name])
  )
