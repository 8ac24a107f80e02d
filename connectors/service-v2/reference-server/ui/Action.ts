/**
 * The actions of the pages.
 *
 * Promise: an action that destroys something is done only after a page has shown its consequences and a person has
 * confirmed them. The result is shown once.
 */
import { address, visible } from "../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../src/web/Html.ts"
import { isObject, print } from "../json.ts"
import type { ControlReply, Page, PageRequest, Route, Section } from "./Page.ts"
import { page, PageError, redirect, root } from "./Page.ts"

export interface Action {
  /** The end of its paths: `/confirm/NAME` and `/do/NAME`. */
  readonly name: string
  readonly section: Section
  /** The question before it is done; null where it destroys nothing. */
  readonly confirmation: {
    /** The fields of the form that name its target. */
    readonly fields: ReadonlyArray<string>
    readonly heading: (values: URLSearchParams) => string
    /** One sentence each. */
    readonly consequences: ReadonlyArray<string>
    readonly button: string
  } | null
  /** The page to return to. */
  readonly back: (values: URLSearchParams) => string
  /** Answers a sentence about the result, or a page that shows it. */
  readonly act: (request: PageRequest) => Promise<string | Page>
}

/** The hidden field that protects a form, and the form's other parts; nothing where forms are not accepted. */
export const form = (
  { formToken }: Pick<PageRequest, "formToken">,
  action: string,
  body: Html,
  label: string | null = null
): Html =>
  formToken === null
    ? html`<p class="note">This server was started without a key for forms; use the control plane.</p>`
    : html`<form
        method="post"
        action="${root}/do/${action}"
        class="stack"
        ${label === null ? "" : html` aria-label="${label}"`}
      >
        <input type="hidden" name="form_token" value="${formToken}" />
        ${body}
      </form>`

/** A button that does an action at once; `about` names its target for screen readers. */
export const button = (
  request: Pick<PageRequest, "formToken">,
  action: string,
  values: Readonly<Record<string, string>>,
  text: string,
  about = ""
): Html =>
  form(
    request,
    action,
    html`${hidden(values)}<button type="submit">
        ${text}${about === "" ? "" : html`<span class="visually-hidden"> ${about}</span>`}
      </button>`
  )

/** A link to the confirmation of an action. */
export const confirmLink = (action: string, values: Readonly<Record<string, string>>, text: string, about = ""): Html =>
  html`<a class="button" href="${address(`${root}/confirm/${action}`, values)}"
    >${text}${about === "" ? "" : html`<span class="visually-hidden"> ${about}</span>`}</a
  >`

const hidden = (values: Readonly<Record<string, string>>): ReadonlyArray<Html> =>
  Object.entries(values).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)

/** The body of an accepted call; the message of a refused one becomes an error page. */
export const accepted = ({ status, body }: ControlReply): Readonly<Record<string, unknown>> => {
  const members = isObject(body) ? body : {}
  if (status < 300) return members
  const { error } = members
  throw new PageError(status === 404 ? 404 : 400, visible(typeof error === "string" ? error : "The call was refused."))
}

/** A member of an answer as text. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : print(value))

const named = (values: URLSearchParams, fields: ReadonlyArray<string>): Record<string, string> =>
  Object.fromEntries(fields.flatMap((name) => (values.has(name) ? [[name, values.get(name)!]] : [])))

/** The confirmation of an action, and the action. */
export const routesOf = (action: Action): ReadonlyArray<Route> => {
  const { name, section, confirmation, back, act } = action
  const confirm: ReadonlyArray<Route> =
    confirmation === null
      ? []
      : [
          {
            method: "GET",
            path: `/confirm/${name}`,
            handle: (request) => {
              const heading = confirmation.heading(request.query)
              return page({
                title: heading,
                section,
                body: html`<h1>${heading}</h1>
                  ${confirmation.consequences.map((sentence) => html`<p>${sentence}</p>`)}
                  ${form(
                    request,
                    name,
                    html`${hidden(named(request.query, confirmation.fields))}
                      <p class="buttons">
                        <button type="submit" class="primary">${confirmation.button}</button>
                        <a class="button" href="${back(request.query)}">Cancel</a>
                      </p>`
                  )}`
              })
            }
          }
        ]
  return [
    ...confirm,
    {
      method: "POST",
      path: `/do/${name}`,
      handle: async (request) => {
        const result = await act(request)
        return typeof result === "string" ? redirect(back(request.form), result) : result
      }
    }
  ]
}
