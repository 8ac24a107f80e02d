/** Error pages: for a page that cannot be shown, and for a refused request. */
import { html, page, type Page, type PageStatus } from "./Page.ts"

const lasting = (status: PageStatus, title: string, sentence: string, above?: string): Page =>
  page({
    title,
    status,
    section: null,
    isLive: false,
    ...(above === undefined ? {} : { level: { text: title, above } }),
    body: html`<h1>${title}</h1>
      <p>${sentence}</p>`
  })

/** An error page that the browser refreshes until the requested page can be shown. */
const passing = (title: string, sentence: string): Page => ({ ...lasting(503, title, sentence), isLive: true })

export const away = passing(
  "The warehouse does not answer",
  "Postgres does not answer. This page is shown as soon as Postgres answers again; nothing is lost meanwhile."
)

export const slow = passing(
  "The warehouse is slow",
  "The answer took too long. This page is requested again automatically."
)

export const failed = passing(
  "This page cannot be shown now",
  "A query failed; the log of tributary serve has the reason, and tributary doctor names the remedy. This page is " +
    "requested again automatically."
)

export const notDone = lasting(503, "The warehouse does not answer", "Postgres does not answer. Nothing was done.", "/")

export const notCertain = lasting(
  503,
  "The warehouse failed",
  "The action may have been done or not. Check the page before you repeat it.",
  "/"
)

export const broken = lasting(
  500,
  "Internal error",
  "The page could not be created. The log of tributary serve has the reason."
)

const titles = {
  400: "Invalid request",
  401: "Wrong password",
  403: "Not allowed",
  404: "Not found",
  409: "Not possible now",
  413: "Too large",
  415: "Not a form",
  429: "Too many wrong passwords"
} as const

/** A refused request; `above` is the page above it, where its address does not state that. */
export const refusal = (status: keyof typeof titles, sentence: string, above?: string): Page =>
  lasting(status, titles[status], sentence, above)
