/** A running operator and a browser for the tests of a file. */
import type { Browser } from "playwright-core"
import { afterAll, inject } from "vitest"
import { openBrowser } from "./browser.ts"
import { openOperatorWithServe, type Operator, type ServeProcess } from "./operator.ts"

export interface OperatorInBrowser {
  readonly operator: Operator
  readonly served: ServeProcess
  readonly browser: Browser
}

/** Opens both, and closes them after the tests of the file. */
export const openInBrowser = async (): Promise<OperatorInBrowser> => {
  const [{ operator, served }, browser] = await Promise.all([
    openOperatorWithServe(inject("postgresUrl")),
    openBrowser()
  ])
  afterAll(async () => {
    try {
      await browser.close()
    } finally {
      await operator.close()
    }
  })
  return { operator, served, browser }
}
