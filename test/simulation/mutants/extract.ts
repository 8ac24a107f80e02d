/** Bugs of reading: cursors, boundaries, resumed scans. */
import { type Mutants, rates } from "./Mutant.ts"

const scan = "src/extract/Scan.ts"
const checkpoints = "src/land/CheckpointStore.ts"
const session = "src/land/WriteSession.ts"

/** The cursor plus a microsecond, which makes an inclusive source exclusive. */
const later =
  "((text: string) => { const parts = /^(.*\\.)(\\d{6})Z$/.exec(text); return parts === null ? text : " +
  'parts[1] + String(Math.min(999_999, Number(parts[2]) + 1)).padStart(6, "0") + "Z" })'

const incremental = "const since = later(before(cursor, overlapMs), cursorFrom(resource.since))"
const firstPage = "syncedThrough: state === null ? cursor : earlier(state.syncedThrough, cursor),"
const lastStamp =
  'page.records.at(-1)?.columns[resource.fields.findIndex((field) => field.name === "lastchangedate")] ?? cursor'

export const extract: Mutants = {
  "ties-across-a-checkpoint": {
    why: [
      "museum 1",
      "the checkpoint after each page is the stamp of its last record, and the next read begins after it"
    ],
    changes: [
      { file: scan, find: firstPage, replace: `syncedThrough: ${lastStamp},` },
      {
        file: checkpoints,
        find: "cursor: completed?.syncedThrough ?? null,\n    cursorReadAt",
        replace: "cursor: (completed ?? scan)?.syncedThrough ?? null,\n    cursorReadAt"
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
  "exclusive-boundary": {
    why: ["museum 2", "records at the cursor have been read already"],
    file: scan,
    find: incremental,
    replace: incremental.replace("before(cursor, overlapMs)", `${later}(before(cursor, overlapMs))`),
    options: { on: ["B1"], off: ["S9", "S7", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  "bound-read-apart": {
    why: ["museum 3", "the upper bound can be requested after the data"],
    file: scan,
    find: "const complete = page.next === null\n    yield* offer",
    replace:
      "const complete = page.next === null\n    if (complete && state.syncedThrough !== null) " +
      "state = { ...state, syncedThrough: (yield* connector.page({ resource, since: from.since, token: null })).syncedThrough }\n    yield* offer",
    options: { on: ["S5"], off: ["S9", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  "no-overlap": {
    why: ["museum 4", "a cursor is a cursor"],
    file: scan,
    find: incremental,
    replace: incremental.replace("before(cursor, overlapMs)", "cursor"),
    options: { on: ["S7"], off: ["S9", "S7x"], overrides: { overlap: 60_000_000, rewriteShare: 0.1, writes: 60 } }
  },
  "overlap-not-stored-text": {
    why: ["museum 6", "the source's high-water mark is right; the overlap is only for old servers"],
    file: scan,
    find: "Math.max(Duration.toMillis(settings.overlap), checkpoint.overlapMs)",
    replace: "Math.min(1_000, Math.max(Duration.toMillis(settings.overlap), checkpoint.overlapMs))",
    options: { on: ["S7"], off: ["S9", "S7x"], overrides: { overlap: 60_000_000 } }
  },
  "null-stamps-excluded": {
    why: ["museum 7", "a record without a time of change has not changed"],
    file: scan,
    find: "const page = from.until === null ? read : recordsUntil(resource, read, from.until)",
    replace:
      'const stampAt = resource.fields.findIndex((field) => field.name === "lastchangedate")\n' +
      "    const page = stampAt < 0 ? read : { ...read, records: read.records.filter(({ columns }) => columns[stampAt] !== null) }",
    options: { on: ["S9"] }
  },
  "cursor-from-the-last-page": {
    why: ["museum 11", "the last page knows the position best"],
    file: scan,
    find: firstPage,
    replace: "syncedThrough: cursor,",
    options: { on: ["Pp", "S5"], off: ["S9", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  "cursor-is-the-latest-stamp": {
    why: ["exclusive upper bound", "the newest stamp that was read is the next cursor"],
    file: scan,
    find: firstPage,
    replace: `syncedThrough: ${lastStamp},`,
    options: { off: ["S9", "S7x", "Pb"], overrides: { overlap: 0 } }
  },
  "open-scan-of-another-cursor": {
    why: ["page-token reuse", "a page token is a page token"],
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
  "unmarked-page-says-nothing": {
    why: ["a position from a later page than the first", "the page has no position: the next one will have it"],
    file: scan,
    find: "return !resource.modifiedSince || answeredAt === null ? null : before(answeredAt, overlapMs)",
    replace: "return !resource.modifiedSince || answeredAt === null ? null : null",
    options: {
      on: ["S8p", "S5", "N5"],
      off: ["S4e", "S8"],
      overrides: { resources: ["jobs"], overlap: 0, pageSize: 3, rewriteShare: 0.6, writes: 60 }
    }
  },
  "empty-page-is-the-end": {
    why: ["a page that is empty by mistake", "no records, no next page: that is the end"],
    file: scan,
    find: "if (!isEmpty(first) || first.next !== null || !(yield* isUnlikely)) return first",
    replace: "return first",
    options: { on: ["S4m"], overrides: { hooks: "off" } }
  },
  "cursor-is-the-time-of-asking": {
    why: ["an answer that a cache gives again", "an answer shows the source at the time of the request"],
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
        later: rates({ cacheRate: 0.5 })
      }
    }
  }
}
