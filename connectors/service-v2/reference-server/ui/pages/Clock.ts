/** `/clock`: the server's clock, and the delivery cycle. */
import { badge, facts, section } from "../../../../../src/web/Components.ts"
import { visible } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import { printInstant } from "../../time.ts"
import type { Action } from "../Action.ts"
import { accepted, button, form, routesOf, textOf } from "../Action.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { ofForm, page, PageError, root } from "../Page.ts"
import { input, when } from "../Parts.ts"

const path = `${root}/clock`

const steps: ReadonlyArray<readonly [seconds: number, text: string]> = [
  [60, "1 minute"],
  [300, "5 minutes"],
  [3_600, "1 hour"],
  [86_400, "1 day"],
  [604_800, "1 week"]
]

const stepButtons = (request: PageRequest): Html =>
  html`<div class="controls">
    ${steps.map(([seconds, text]) => button(request, "clock", { advance: String(seconds) }, `Advance ${text}`))}
  </div>`

const show = (request: PageRequest): Page => {
  const { world, now } = request
  const isManual = world.clock.isManual()
  const waiting = world.events.all().reduce((sum, { queue }) => sum + queue.length, 0)
  return page({
    title: "Clock",
    section: "clock",
    isLive: !isManual,
    body: html`<h1>Clock</h1>
      ${facts([
        [
          "Now",
          printInstant(world.clock.now())
            .replace("T", " ")
            .replace(/\.\d+Z$/, "")
        ],
        ["State", isManual ? html`${badge("warn", "stopped")} moves only on request` : badge("good", "runs")],
        ["Next delivery cycle", when(world.events.nextCycle, now)],
        ["Events that wait for it", String(waiting)]
      ])}
      ${
        isManual
          ? button(request, "clock", { manual: "false" }, "Let it run")
          : button(request, "clock", { manual: "true" }, "Stop it")
      }
      ${section(
        "advance",
        "Advance",
        html`<p>What falls due runs at its own time: delivery cycles, purges, expiries.</p>
          ${stepButtons(request)}
          ${form(
            request,
            "clock",
            html`<div class="ask">
              ${input("advance", "Seconds", { value: "30", isRequired: true })}
              <p class="buttons"><button type="submit">Advance</button></p>
            </div>`,
            "Advance by seconds"
          )}`
      )}
      ${section(
        "set",
        "Set",
        html`<p>Nothing that falls due in between runs. The time may be earlier.</p>
          ${form(
            request,
            "clock",
            html`<div class="ask">
              ${input("now", "Time in UTC", { value: `${printInstant(world.clock.now()).slice(0, 19)}Z`, isRequired: true })}
              <p class="buttons"><button type="submit">Set</button></p>
            </div>`,
            "Set the time"
          )}`
      )}
      ${section("cycle", "Delivery cycle", button(request, "cycle", {}, "Run a delivery cycle now"))}`
  })
}

const change: Action = {
  name: "clock",
  section: "clock",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const advance = ofForm(request, "advance")
    const now = ofForm(request, "now")
    const manual = ofForm(request, "manual")
    if (advance !== null && !/^-?\d+(?:\.\d+)?$/.test(advance)) throw new PageError(400, "Seconds are a number.")
    const reply = accepted(
      await request.call("POST", "/clock", {
        ...(advance === null ? {} : { advanceSeconds: Number(advance) }),
        ...(now === null ? {} : { now }),
        ...(manual === null ? {} : { manual: manual === "true" })
      })
    )
    const state = reply["manual"] === true ? "it is stopped" : "it runs"
    return `The clock shows ${visible(textOf(reply["now"]).slice(0, 19).replace("T", " "))}; ${state}.`
  }
}

export const routes: ReadonlyArray<Route> = [{ method: "GET", path: "/clock", handle: show }, ...routesOf(change)]
