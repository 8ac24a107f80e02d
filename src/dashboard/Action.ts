/**
 * The actions of the pages.
 *
 * Promise: an action is done only after a page has shown its target and its consequences, and a person has confirmed
 * them. Then its result is shown once.
 */
import * as Effect from "effect/Effect"
import { problem } from "../web/Components.ts"
import { hiddenFields } from "./ListControls.ts"
import {
  type FormAccess,
  html,
  type Html,
  page,
  type PageEffect,
  pageRoute,
  type PageRequest,
  redirect,
  type Route,
  type Section
} from "./Page.ts"
import { ofForm, ofQuery } from "./Params.ts"

export interface Action<Target> {
  /** The end of its paths: `/confirm/NAME` and `/do/NAME`. */
  readonly name: string
  readonly section: Section
  /** The target that the query of the confirmation, or its form, names. */
  readonly target: (request: PageRequest, field: (name: string) => string | null) => PageEffect<Target>
  /** The fields that name the target; null ones are left out. */
  readonly fields: (target: Target) => Readonly<Record<string, string | null>>
  /** The title of the confirmation; default: its heading. */
  readonly title?: string
  readonly heading: (target: Target) => string
  /** One sentence each. */
  readonly consequences: (target: Target) => ReadonlyArray<string>
  /** Inputs for a person to fill in. */
  readonly inputs?: Html
  readonly button: string
  /** The page to return to. */
  readonly back: (target: Target) => string
  /** Performs the action, and answers a sentence about the result. */
  readonly act: (target: Target, request: PageRequest) => PageEffect<string>
}

/** The form of the action, or the reason why there is none. */
const formOf = <Target>(action: Action<Target>, target: Target, formAccess: FormAccess): Html => {
  const back = action.back(target)
  return formAccess._tag === "Reading"
    ? problem(formAccess.reason, null, html`<a class="button" href="${back}">Back</a>`)
    : html`<form method="post" action="/do/${action.name}">
        <input type="hidden" name="form_token" value="${formAccess.formToken}" />
        ${hiddenFields(action.fields(target))} ${action.inputs ?? ""}
        <p class="buttons">
          <button type="submit" class="primary">${action.button}</button> <a class="button" href="${back}">Cancel</a>
        </p>
      </form>`
}

export interface Model<Target> {
  readonly target: Target
  readonly formAccess: FormAccess
}

/** The confirmation of an action. */
export const view =
  <Target>(action: Action<Target>) =>
  ({ target, formAccess }: Model<Target>) => {
    const heading = action.heading(target)
    return page({
      title: action.title ?? heading,
      section: action.section,
      level: { text: action.button, above: action.back(target) },
      isLive: false,
      body: html`<h1>${heading}</h1>
        ${action.consequences(target).map((sentence) => html`<p>${sentence}</p>`)} ${formOf(action, target, formAccess)}`
    })
  }

/** The confirmation of an action, and the action. */
export const routesOf = <Target>(action: Action<Target>): ReadonlyArray<Route> => [
  pageRoute({
    path: `/confirm/${action.name}`,
    load: Effect.fn(`page.confirm.${action.name}`)(function* (request: PageRequest) {
      const target = yield* action.target(request, (name) => ofQuery(request, name))
      return { target, formAccess: request.formAccess } satisfies Model<Target>
    }),
    view: view(action)
  }),
  {
    method: "POST",
    path: `/do/${action.name}`,
    handle: Effect.fn(`page.do.${action.name}`)(function* (request) {
      const target = yield* action.target(request, (name) => ofForm(request, name))
      return redirect(action.back(target), yield* action.act(target, request))
    })
  }
]
