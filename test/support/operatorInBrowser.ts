/** A running operator and a browser for the tests of a file. */
import type { Browser } from "playwright-core"
import { afterAll, inject } from "vitest"
import { openBrowser, type Visit, visit } from "./browser.ts"
import type { Operator, ServeProcess } from "./operator.ts"

export interface OperatorInBrowser {
  readonly operator: Operator
  readonly served: ServeProcess
  readonly browser: Browser
  /** Opens a visit with a session, which ends with the file. */
  readonly openVisit: () => Promise<Visit>
}

/** Opens both, and closes them after the tests of the file. Fails if there were problems in a visit. */
export const openInBrowser = async (
  open: (postgresUrl: string) => Promise<Pick<OperatorInBrowser, "operator" | "served">>
): Promise<OperatorInBrowser> => {
  const [{ operator, served }, browser] = await Promise.all([open(inject("postgresUrl")), openBrowser()])
  const visits: Array<Visit> = []
  afterAll(async () => {
    try {
      for (const one of visits) await one.close()
    } finally {
      await browser.close()
      await operator.close()
    }
  })
  const openVisit = async () => {
    const one = await visit(browser, await served.link())
    visits.push(one)
    return one
  }
  return { operator, served, browser, openVisit }
}
