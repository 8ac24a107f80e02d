/** Bugs of reading: cursors, boundaries, resumed scans. */
import { noneLater } from "../Plan.ts"
import type { Mutant } from "./Mutant.ts"

const scan = "src/extract/Scan.ts"
const checkpoints = "src/land/CheckpointStore.ts"
const session = "src/land/WriteSession.ts"

/** The cursor plus a microsecond, which makes an inclusive source exclusive. */
const later =
  "((text: string) => { const parts = /^(.*\\.)(\\d{6})Z$/.exec(text); return parts === null ? text : " +
  'parts[1] + String(Math.min(999_999, Number(parts[2]) + 1)).padStart(6, "0") + "Z" })'

const incremental =
  'return { ...common, kind: "incremental", since: before(cursor, overlapMs), resume: null, reason: null }'
const firstPage = "syncedThrough: state === null ? cursor : earlier(state.syncedThrough, cursor),"
const lastStamp =
  'page.records.at(-1)?.columns[resource.fields.findIndex((field) => field.name === "lastchangedate")] ?? cursor'

export const extract: ReadonlyArray<Mutant> = [
  {
    name: "ties-across-a-checkpoint",
    origin: "museum 1",
    story: "the checkpoint after each page is the stamp of its last record, and the next read begins after it",
    changes: [
      { file: scan, find: firstPage, replace: `syncedThrough: ${lastStamp},` },
      {
        file: checkpoints,
        find: "completed?.syncedThrough ?? null,\n    completed === null",
        replace: "(completed ?? scan)?.syncedThrough ?? null,\n    completed === null"
      },
      {
        file: scan,
        find: incremental,
        replace: incremental.replace("before(cursor, overlapMs)", `${later}(before(cursor, overlapMs))`)
      },
      {
        file: scan,
        find: 'if (scan !== null && (scan.kind === "full" || incremental)) {',
        replace: 'if (scan !== null && scan.kind === "full" && !incremental) {'
      }
    ],
    options: { on: ["S6", "C1", "C8"], off: ["S9", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  {
    name: "exclusive-boundary",
    origin: "museum 2",
    story: "records at the cursor have been read already",
    file: scan,
    find: incremental,
    replace: incremental.replace("before(cursor, overlapMs)", `${later}(before(cursor, overlapMs))`),
    options: { on: ["B1"], off: ["S9", "S7", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  {
    name: "bound-read-apart",
    origin: "museum 3",
    story: "the upper bound can be requested after the data",
    file: scan,
    find: "const complete = page.next === null\n    yield* offer",
    replace:
      "const complete = page.next === null\n    if (complete && state.syncedThrough !== null) " +
      "state = { ...state, syncedThrough: (yield* connector.page({ resource, since: from.since, token: null })).syncedThrough }\n    yield* offer",
    options: { on: ["S5"], off: ["S9", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  {
    name: "no-overlap",
    origin: "museum 4",
    story: "a cursor is a cursor",
    file: scan,
    find: incremental,
    replace: incremental.replace("before(cursor, overlapMs)", "cursor"),
    options: { on: ["S7"], off: ["S9", "S7x"], overrides: { overlap: 60_000_000, rewriteShare: 0.1, writes: 60 } }
  },
  {
    name: "overlap-not-stored-text",
    origin: "museum 6",
    story: "the source's high-water mark is right; the overlap is only for old servers",
    file: scan,
    find: "Math.max(Duration.toMillis(settings.overlap), checkpoint.overlapMs)",
    replace: "Math.min(1_000, Math.max(Duration.toMillis(settings.overlap), checkpoint.overlapMs))",
    options: { on: ["S7"], off: ["S9", "S7x"], overrides: { overlap: 60_000_000 } }
  },
  {
    name: "null-stamps-excluded",
    origin: "museum 7",
    story: "a record without a time of change has not changed",
    file: scan,
    find: "const page = from.until === null ? read : recordsUntil(resource, read, from.until)",
    replace:
      'const stampAt = resource.fields.findIndex((field) => field.name === "lastchangedate")\n' +
      "    const page = stampAt < 0 ? read : { ...read, records: read.records.filter(({ columns }) => columns[stampAt] !== null) }",
    options: { on: ["S9"] }
  },
  {
    name: "cursor-from-the-last-page",
    origin: "museum 11",
    story: "the last page knows the position best",
    file: scan,
    find: firstPage,
    replace: "syncedThrough: cursor,",
    options: { on: ["Pp", "S5"], off: ["S9", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  {
    name: "cursor-is-the-latest-stamp",
    origin: "exclusive upper bound",
    story: "the newest stamp that was read is the next cursor",
    file: scan,
    find: firstPage,
    replace: `syncedThrough: ${lastStamp},`,
    options: { off: ["S9", "S7x", "Pb"], overrides: { overlap: 0 } }
  },
  {
    name: "open-scan-of-another-cursor",
    origin: "page-token reuse",
    story: "a page token is a page token",
    changes: [
      {
        file: session,
        find: "restart: (fullScanReason) => restart(session, fullScanReason)",
        replace: "restart: (_fullWanted) => Effect.void"
      },
      {
        file: scan,
        find: 'if (scan !== null && (scan.kind === "full" || incremental)) {',
        replace: "if (scan !== null && scan.token !== null) {"
      }
    ],
    options: { on: ["S10", "C8"] }
  },
  {
    name: "unmarked-page-says-nothing",
    origin: "a position from a later page than the first",
    story: "the page has no position: the next one will have it",
    file: scan,
    find: "return !resource.modifiedSince || answeredAt === null ? null : before(answeredAt, overlapMs)",
    replace: "return !resource.modifiedSince || answeredAt === null ? null : null",
    options: {
      on: ["S8p", "S5", "N5"],
      off: ["S4e", "S8"],
      overrides: { resources: ["jobs"], overlap: 0, pageSize: 3, rewriteShare: 0.6, writes: 60 }
    }
  },
  {
    name: "empty-page-is-the-end",
    origin: "a page that is empty by mistake",
    story: "no records, no next page: that is the end",
    file: scan,
    find: "if (!isEmpty(first) || first.next !== null || !(yield* isUnlikely)) return first",
    replace: "return first",
    options: { on: ["S4m"], overrides: { hooks: "off" } }
  },
  {
    name: "cursor-is-the-time-of-asking",
    origin: "an answer that a cache gives again",
    story: "an answer shows the source at the time of the request",
    file: scan,
    find: "const cursor = cursorOf(resource, page, from.overlapMs)",
    replace:
      "const cursor = cursorOf(resource, page, from.overlapMs) === null ? null : new Date(timeOf(page.beganAt)).toISOString()",
    options: {
      on: ["N9", "S9", "S5"],
      off: ["S7", "S7x", "Pb", "S8", "S4e"],
      overrides: {
        resources: ["jobs"],
        overlap: 0,
        rewriteShare: 0.6,
        writes: 60,
        later: { ...noneLater, cacheRate: 0.5 }
      }
    }
  }
]
