/** Pages that stand in for a page that cannot be shown, and the answers to a request that is refused. */
import { html, page, type Page, type PageStatus } from "./Page.ts"

const messagePage = (status: PageStatus, title: string, sentence: string, isLive: boolean): Page =>
  page({
    title,
    status,
    section: null,
    isLive,
    body: html`<h1>${title}</h1>
      <p>${sentence}</p>`
  })

/** A page that the browser requests again by itself until the page itself can be shown. */
const passing = (title: string, sentence: string): Page => messagePage(503, title, sentence, true)

const lasting = (status: PageStatus, title: string, sentence: string): Page =>
  messagePage(status, title, sentence, false)

export const away = passing(
  "The warehouse is away",
  "Postgres does not answer. This page shows itself again as soon as it does; nothing is lost meanwhile."
)

export const slow = passing("The warehouse is slow", "It took too long to answer. This page tries again by itself.")

export const failed = passing(
  "This page cannot be shown now",
  "The warehouse could not answer it; the log of the service says why. This page tries again by itself."
)

export const notDone = lasting(503, "The warehouse is away", "Postgres does not answer, so that nothing was done.")

export const notCertain = lasting(
  503,
  "The warehouse failed",
  "It is not certain that this was done. Look at the page again before you repeat it."
)

export const broken = lasting(
  500,
  "Something went wrong",
  "The page could not be made. The log of the service says why."
)

const titles = {
  400: "That makes no sense",
  401: "Not the password",
  403: "Not allowed",
  404: "There is nothing here",
  409: "Not now",
  413: "That is too much",
  415: "Not a form",
  429: "Too many wrong passwords"
} as const

export const refusal = (status: keyof typeof titles, sentence: string): Page =>
  lasting(status, titles[status], sentence)
