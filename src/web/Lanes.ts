/** Lanes on one time axis, one for each thing; a kind of chart. */
import { across, axisHeight, figure, type Frame, type Key, shape, type Tick, timeAxis } from "./Chart.ts"
import { html, type Html } from "./Html.ts"

/** A stretch of a lane; both ends are shares of the width. */
export interface Stretch {
  readonly from: number
  readonly to: number
  readonly kind: string
  /** Its height as a share of the lane. */
  readonly strength: number
  readonly text: string
  readonly link?: string | null
  /** A sign at its start. Its text says the same. */
  readonly sign?: string
}

export interface Lane {
  readonly name: Html | string
  /** The lane in words, for a reader who does not see it. */
  readonly summary: string
  readonly stretches: ReadonlyArray<Stretch>
}

const laneHeight = 22
/** The least height of a stretch, so that one event is seen beside a time with many. */
const strengthMin = 0.3
/** In shares of the width. */
const widthMin = 0.003

const stretchOf = ({ from, to, kind, strength, text, link, sign }: Stretch): Html => {
  const height = laneHeight * Math.max(strengthMin, Math.min(1, strength))
  const x = across(Math.min(0.985, from + 0.015))
  return html`${shape(kind, [from, Math.max(widthMin, to - from)], [laneHeight - height, height], text, link)}
  ${sign === undefined ? "" : html`<text class="sign" x="${x}" y="${laneHeight - 5}">${sign}</text>`}`
}

/** A drawn lane; without a height it has that of a line. */
interface DrawnLane {
  readonly name: Html | string
  readonly summary: string
  readonly drawing: Html | ReadonlyArray<Html>
  readonly hasLinks?: boolean
  readonly height?: number
}

/** Lanes beneath each other, and the time axis that they share. */
export const laneList = (frame: Frame, ticks: ReadonlyArray<Tick>, lanes: ReadonlyArray<DrawnLane>): Html =>
  html`<ul class="lanes">
      ${lanes.map(
        ({ name, summary, drawing: drawn, hasLinks = false, height = laneHeight }) =>
          html`<li>
            <span class="name">${name}</span>
            <svg height="${height}" role="${hasLinks ? "group" : "img"}" aria-label="${summary}">
              <desc>${summary}</desc>
              ${drawn}
            </svg>
          </li>`
      )}
      <li>
        <svg class="axis" height="${axisHeight}" role="img" aria-labelledby="${frame.id}-title ${frame.id}-words">
          <desc id="${frame.id}-words">${frame.summary}</desc>
          ${timeAxis(ticks, 0)}
        </svg>
      </li>
    </ul>
    <p class="unit">${frame.unit}</p>`

/** One lane for each thing, on one time axis. */
export const laneChart = (
  frame: Frame & { readonly keys?: ReadonlyArray<Key>; readonly ticks: ReadonlyArray<Tick>; readonly figures?: Html },
  lanes: ReadonlyArray<Lane>
): Html =>
  figure(
    frame,
    frame.keys ?? [],
    html`${laneList(
      frame,
      frame.ticks,
      lanes.map(({ name, summary, stretches }) => ({
        name,
        summary,
        drawing: stretches.map(stretchOf),
        hasLinks: stretches.some(({ link }) => link !== undefined)
      }))
    )}
    ${frame.figures ?? ""}`
  )
