/**
 * Models of the views: empty, normal, with everything wrong, with long and with hostile texts. No server and no database is
 * needed to show them.
 */
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { protect } from "../../src/catalogue/Protection.ts"
import * as FieldRules from "../../src/connector/FieldRules.ts"
import type { BudgetState } from "../../src/budget/BudgetState.ts"
import * as Action from "../../src/dashboard/Action.ts"
import { away, refusal } from "../../src/dashboard/ErrorPages.ts"
import type { Answer } from "../../src/dashboard/Page.ts"
import { loginPage } from "../../src/dashboard/LoginRoutes.ts"
import { backfillInputs } from "../../src/dashboard/pages/Actions.ts"
import * as Budget from "../../src/dashboard/pages/Budget.ts"
import * as Invariants from "../../src/dashboard/pages/Invariants.ts"
import * as Outbox from "../../src/dashboard/pages/Outbox.ts"
import * as OutboxRow from "../../src/dashboard/pages/OutboxRow.ts"
import type { RecordModel } from "../../src/dashboard/pages/Record.ts"
import { namedRecords } from "../../src/dashboard/pages/RecordFields.ts"
import * as Records from "../../src/dashboard/pages/Records.ts"
import * as Resource from "../../src/dashboard/pages/Resource.ts"
import * as Resources from "../../src/dashboard/pages/Resources.ts"
import * as SubscriptionActions from "../../src/dashboard/pages/SubscriptionActions.ts"
import * as WebhookEvent from "../../src/dashboard/pages/WebhookEvent.ts"
import { isObject, parse } from "../../src/json/Json.ts"
import type { RejectedRow } from "../../src/outbox/Push.ts"
import type { RecordLine } from "../../src/status/RecordTables.ts"
import type { Checkpoint, Health, ResourceState } from "../../src/status/Resources.ts"
import type { Run } from "../../src/status/Runs.ts"
import type { Task } from "../../src/tasks/TaskQueue.ts"
import type { Version } from "../../src/verify/Explanation.ts"
import type { LandedVersion } from "../../src/verify/LandedVersions.ts"
import { tableOf } from "../../src/warehouse/Table.ts"
import { visible } from "../../src/web/Escape.ts"
import { hostile, unconnected } from "./asking.ts"

export const now = new Date("2026-11-28T09:30:00Z")
const before = (minutes: number): Date => new Date(now.getTime() - minutes * 60_000)
const hour = (hours: number): Date => new Date(Date.UTC(2026, 10, 28, 9 - hours))
const many = <A>(length: number, make: (index: number) => A): Array<A> =>
  Array.from({ length }, (_, index) => make(index))

/** A foreign name, such as that of a company, and a foreign text, such as an error. */
interface Texts {
  readonly name: string
  readonly text: string
}

const plain: Texts = {
  name: "customers",
  text: "GET /customers?limit=250: the service failed (500) [request 5f0c2a7e]; try again, then report the request to the operator"
}
const long: Texts = {
  name: "an_installation_with_a_name_that_is_as_long_as_postgres_allows",
  text: `${"The value is longer than any that this system has seen. ".repeat(12)}${"0123456789abcdef".repeat(12)}`
}
const odd: Texts = { name: hostile, text: hostile }

const table = tableOf(serviceV2.resources.get("customers")!)
const protection = protect(serviceV2.resources.get("customers")!, [
  { pattern: "name", rule: FieldRules.mask("***", 2) },
  { pattern: "nosuchfield", rule: FieldRules.exclude }
]).resource.protection

// ------------------------------------------------------------------------------------------------------------ resources

const taskOf = ({ name, text }: Texts, change: Partial<Task> = {}): Task => ({
  company: name,
  resource: name,
  kind: "sync",
  schedule: "every 10 min",
  promiseMs: 15 * 60_000,
  nextAt: before(-5),
  deferredFrom: null,
  pausedAt: null,
  pausedBy: text,
  askedAt: null,
  askedBy: text,
  askedFull: true,
  since: null,
  until: null,
  runningSince: null,
  beganAt: before(5),
  endedAt: before(5),
  status: "done",
  runId: 1n,
  failures: 0,
  error: null,
  remedy: null,
  failureKind: null,
  ...change
})

const checkpoint: Checkpoint = {
  cursor: "2026-11-28T09:20:00.000000Z",
  overlapMs: 432_000_000,
  lateMs: 60_000,
  fullScanAt: before(3_000),
  fullWanted: null,
  scanKind: "full",
  scanPages: 1_234
}

const healthOf = (state: Health["state"], change: Partial<Health> = {}): Health => ({
  state,
  isFailing: state === "failing",
  isLate: state === "late",
  isPaused: state === "paused",
  isRunning: false,
  isBlocked: state === "blocked",
  ageMs: 300_000,
  targetMs: 900_000,
  ...change
})

const stateOf = (texts: Texts, change: Partial<ResourceState> = {}): ResourceState => {
  const state = {
    company: texts.name,
    companyId: 1n,
    resource: texts.name,
    task: taskOf(texts),
    backfill: taskOf(texts, { kind: "backfill", status: "failed", error: texts.text }),
    checkpoint: { ...checkpoint, fullWanted: texts.text },
    lastRun: {
      id: 12n,
      status: "done" as const,
      kind: "incremental",
      beganAt: before(5),
      endedAt: before(5),
      errorKind: null,
      error: null,
      remedy: null,
      note: texts.text
    },
    freshAt: before(5),
    isProven: false,
    rows: { rows: 12_345_678, deleted: 5, isExact: false, countedAt: before(3) },
    quarantined: 3,
    health: healthOf("quarantine"),
    failure: null,
    ...change
  }
  return state
}

const failing = (texts: Texts): ResourceState => {
  const { lastRun, ...state } = stateOf(texts)
  const trouble = { error: texts.text, remedy: texts.text }
  return stateOf(texts, {
    ...state,
    lastRun: { ...lastRun!, status: "failed", errorKind: "failed", ...trouble },
    task: taskOf(texts, { pausedAt: before(60), askedAt: before(2), failures: 3, status: "failed", ...trouble }),
    freshAt: before(90),
    health: healthOf("failing", { isLate: true, isPaused: true, ageMs: 5_400_000 }),
    failure: { at: before(5), ...trouble }
  })
}

const runOf = ({ name, text }: Texts, index: number): Run => ({
  id: BigInt(100 - index),
  companyId: 1n,
  company: name,
  resource: name,
  lane: "live",
  kind: "incremental",
  status: (["failed", "abandoned", "done", "quarantined"] as const)[index % 4]!,
  resumed: false,
  beganAt: before(10 * index + 2),
  endedAt: before(10 * index),
  endedUs: 1n,
  cursorFrom: null,
  cursorTo: "2026-11-28T09:20:00Z",
  quietRuns: index % 5,
  quietSince: null,
  note: text,
  errorKind: text,
  error: text,
  remedy: text,
  pages: 3,
  requests: 4 * index,
  retries: 1,
  bytes: 123_456,
  records: 700,
  inserted: 600,
  updated: 50,
  unchanged: 49,
  deleted: 1,
  quarantined: 0,
  late: 0,
  lateMs: 0,
  staleVersions: 0,
  deadLetters: index
})

const knownOf = (texts: Texts): NonNullable<Resource.Model["known"]> => ({
  runs: many(20, (index) => runOf(texts, index)),
  hours: many(47, (index) => ({
    at: hour(47 - index),
    runs: 6,
    inserted: index * 100,
    updated: index,
    deleted: index % 3,
    gaps: index % 9 === 0 ? 1 : 0,
    rows: 12_000_000 + index * 1_000,
    ageMs: (index % 13) * 100_000,
    lateness: (index % 13) / 9
  })),
  entries: many(3, (index) => ({
    id: BigInt(index),
    companyId: 1n,
    resource: texts.name,
    recordId: index === 0 ? null : texts.text,
    field: texts.name,
    reason: texts.text,
    firstSeenAt: before(100),
    lastSeenAt: before(10),
    resolvedAt: null,
    times: 12
  })),
  changes: many(10, (index) => ({
    position: BigInt(index),
    resume: "",
    companyId: 1n,
    resource: texts.name,
    id: BigInt(index),
    version: BigInt(index),
    op: (["insert", "update", "delete"] as const)[index % 3]!,
    before: JSON.stringify({ name: texts.text }),
    after: JSON.stringify({ name: `${texts.text}!` }),
    changed: ["name", texts.name],
    origin: "scan",
    source: texts.text,
    runId: 12n,
    observedAt: before(3),
    landedAt: before(2)
  })),
  changed: { lines: new Map([[`${texts.name} 1`, lineOf(texts, "1")]]), table },
  columns: many(30, (index) => ({ name: `${texts.name} ${index}`, type: "numeric(20,4)", nullShare: index / 29 })),
  unknown: many(2, (index) => ({
    field: texts.name,
    firstSeenAt: before(500),
    lastSeenAt: before(5),
    types: [texts.name, "integer"],
    promotedAt: index === 0 ? null : before(3),
    times: 1_234
  }))
})

const findings: Resource.Model["findings"] = [
  { companyId: 1n, resource: "customers", kind: "volatile", field: "name", rows: 40, runs: 3 }
]

const resourceModels = (texts: Texts): ReadonlyArray<Resource.Model> => [
  { state: stateOf(texts), findings, protection, applied: null, known: knownOf(texts), now },
  { state: failing(texts), findings: [], protection: null, applied: null, known: knownOf(texts), now }
]

const emptyResource: Resource.Model = {
  state: stateOf(plain, {
    companyId: null,
    task: null,
    backfill: null,
    checkpoint: null,
    lastRun: null,
    freshAt: null,
    rows: null,
    quarantined: 0
  }),
  findings: [],
  protection: null,
  applied: null,
  known: null,
  now
}

const listedOf = (texts: Texts, states: Array<ResourceState>): Resources.Model => ({
  _tag: "Listed",
  choice: { company: null, filter: "all", area: null, text: null, order: "-age", part: 1 },
  everything: states,
  areas: [texts.name, "Sales"],
  names: [texts.name, "north", "south"],
  all: states,
  matching: states.length * 3,
  part: 1,
  shown: states,
  hours: many(20, (index) => ({
    company: texts.name,
    resource: texts.name,
    at: hour(index),
    landed: index * 7,
    lateness: index / 12,
    ageMs: index * 60_000
  })),
  now
})

// -------------------------------------------------------------------------------------------------------------- records

const lineOf = ({ name, text }: Texts, id: string): RecordLine => ({
  resource: name,
  company: 1n,
  id,
  key: text.length > 150 ? text.slice(0, 200) : "ACME",
  detail: "orderdate 2026-11-28T09:00:00Z, total 1250.5000",
  isCancelled: true,
  isDeleted: id === "2"
})

const versionRun = {
  id: 12n,
  kind: "full",
  lane: "live",
  status: "failed",
  beganAt: "2026-11-28T09:00:00Z",
  endedAt: null
}

const versionsOf = ({ text }: Texts): ReadonlyArray<Version> =>
  many(8, (index) => ({
    version: BigInt(index + 2),
    validFrom: before(100 - index).toISOString(),
    validTo: null,
    op: index === 4 ? "delete" : index === 0 ? "insert" : "update",
    origin: (["scan", "webhook", "push"] as const)[index % 3]!,
    source: text,
    runId: 12n,
    run: index === 1 ? null : versionRun,
    changes:
      index === 0 || index > 5
        ? []
        : [
            { field: "name", from: JSON.stringify(`${text} before`), to: JSON.stringify(`${text} after it`) },
            { field: "creditlimit", from: "10000.0000", to: "1250.5000" }
          ],
    record: JSON.stringify({
      id: 1,
      name: text,
      notes: `${text}\n`.repeat(3),
      salesmanid: 7,
      lines: [{ id: 1 }],
      code: ""
    })
  }))

const recordOf = (texts: Texts): RecordModel => {
  const { name, text } = texts
  const versions = versionsOf(texts)
  const record = parse(versions.at(-1)!.record)
  const members = isObject(record) ? record : new Map()
  return {
    company: name,
    resource: name,
    id: "1",
    one: {
      companyId: 1n,
      resource: name,
      id: "1",
      state: "exists",
      versions,
      quarantine: many(2, (index) => ({
        field: name,
        reason: text,
        bytes: text,
        source: text,
        runId: 1n,
        times: 3n,
        firstSeenAt: "2026-11-28T09:00:00Z",
        lastSeenAt: "2026-11-28T09:10:00Z",
        resolvedAt: index === 0 ? null : "2026-11-28T09:20:00Z"
      })),
      rereads: [{ field: name, value: text, askedAt: "2026-11-28T09:00:00Z" }],
      fullScan: { ...versionRun, confirmed: true },
      checkpoints: [
        {
          lane: "live",
          cursor: text,
          fullScanAt: "2026-11-28T09:00:00Z",
          scan: null,
          updatedAt: "2026-11-28T09:00:00Z"
        }
      ]
    },
    table,
    part: {
      _tag: "Whole",
      record: members,
      named: namedRecords(members, table),
      lines: new Map([[`${name} 1`, lineOf(texts, "1")]]),
      referring: {
        lists: [
          {
            resource: name,
            field: name,
            through: null,
            count: 1_001,
            records: many(5, (id) => lineOf(texts, String(id)))
          },
          { resource: name, field: name, through: "orders", count: 9, records: [lineOf(texts, "9")] }
        ],
        unsearched: [{ resource: name, field: name }]
      },
      origins: {
        events: [{ version: 3n, eventId: text, eventType: name, receivedAt: before(9) }],
        pushed: [{ version: 4n, row: 4n, push: 2n, line: 12n, operation: "create", outcome: "created" }]
      }
    },
    now
  }
}

const recordsOf = (texts: Texts): ReadonlyArray<Records.Model> => {
  const { name, text } = texts
  const asked = { text, company: name, companies: [name, "north"] }
  const records = many(6, (id) => ({
    ...lineOf(texts, String(id)),
    match: (["number", "text", "beginning", "quarantine"] as const)[id % 4]!
  }))
  const names = new Map([[1n, name]])
  const record = recordOf(texts)
  const list = record.part._tag === "Whole" ? record.part.referring.lists[0]! : null
  return [
    { ...asked, found: { _tag: "Record", record } },
    { ...asked, found: { _tag: "Record", record: { ...record, part: { _tag: "List", lines: new Map(), list } } } },
    {
      ...asked,
      found: { _tag: "Search", text, names, isPrefix: false, result: { records, isCut: true, unsearched: [name] } }
    },
    { ...asked, found: { _tag: "Problem", sentence: visible(text.slice(0, 200)) } }
  ]
}

// ------------------------------------------------------------------------------------------------------ events and pushes

const landedOf = ({ text }: Texts): ReadonlyArray<LandedVersion> => [
  {
    version: 3n,
    validFrom: before(3),
    validTo: null,
    op: "update",
    origin: "scan",
    source: text,
    runId: 12n,
    isBrought: true
  }
]

const eventOf = ({ name, text }: Texts, change: Partial<NonNullable<WebhookEvent.Model["event"]>> = {}) => ({
  id: 7n,
  company: name,
  eventId: text,
  eventType: `${name}.updated`,
  resource: name,
  recordId: "1",
  recordModifiedAt: "2026-11-28T09:00:00.123456Z",
  occurredAt: before(30),
  sentAt: before(29),
  receivedAt: before(28),
  state: "done" as const,
  attempts: 2,
  runId: 12n,
  nextAttemptAt: before(-2),
  resolvedAt: before(20),
  runStatus: "done" as const,
  resolution: text,
  lastError: text,
  body: new TextEncoder().encode(JSON.stringify({ name: text })),
  bodyBytes: 123_456,
  ...change
})

const eventModels = (texts: Texts): ReadonlyArray<WebhookEvent.Model> => {
  const { name, text } = texts
  const gap = {
    id: 3n,
    resource: name,
    cause: "event_lost" as const,
    detail: text,
    beganAt: before(90),
    detectedAt: before(60)
  }
  const model = {
    company: name,
    eventId: text,
    event: eventOf(texts),
    subscriptions: [
      { id: name, url: `https://hooks.example.com/${name}`, state: "active" as const, checkedAt: before(3) }
    ],
    gaps: [
      { ...gap, endedAt: before(80), lastError: text, closedAt: null, closedBy: null, isListed: true },
      { ...gap, endedAt: null, lastError: null, closedAt: before(3), closedBy: text, isListed: false }
    ],
    versions: landedOf(texts),
    now
  }
  return [
    model,
    { ...model, versions: [], event: eventOf(texts, { state: "dead_letter", resolution: null, resolvedAt: null }) },
    { ...model, event: null, versions: [] }
  ]
}

const rowOf = ({ name, text }: Texts): OutboxRow.Model["row"] => ({
  id: 9n,
  company: name,
  resource: name,
  operation: "create",
  externalid: text,
  recordId: "1",
  state: "done",
  push: 2n,
  pushSource: text,
  outcome: "created",
  validated: true,
  attempts: 2,
  absenceConfirmedAt: before(4),
  conflictRetries: 1,
  code: null,
  field: null,
  reason: null,
  createdAt: before(10),
  resolvedAt: before(2),
  requestId: 5n,
  requestIndex: 3,
  requestOperation: "batch",
  requestRecords: 50,
  requestState: "completed",
  requestCreatedAt: before(5),
  requestFailures: 1,
  status: 201,
  answerReason: text,
  record: JSON.stringify({ name: text }),
  recordCharacters: 100_000,
  line: 12,
  isRead: false,
  problems: null,
  differences: [{ field: name, given: text, current: null }]
})

const wrong = ({ name, text }: Texts) => ({
  code: name,
  field: name,
  reason: text,
  problems: [{ field: name, message: text }]
})

const rowModels = (texts: Texts): ReadonlyArray<OutboxRow.Model> => {
  const row = rowOf(texts)
  return [
    { row, pause: null, versions: landedOf(texts), now },
    { row: { ...row, ...wrong(texts), state: "rejected", outcome: null, status: 422 }, pause: null, versions: [], now },
    {
      row: { ...row, state: "pending", resolvedAt: null, requestId: null, push: null },
      pause: texts.text,
      versions: [],
      now
    }
  ]
}

const counts = {
  waiting: 5,
  sending: 2,
  rejected: 20,
  different: 3,
  created: 9,
  updated: 8,
  unchanged: 1,
  cancelled: 1,
  adopted: 2
}

const rejectedOf = (texts: Texts): ReadonlyArray<RejectedRow> =>
  many(3, (index) => ({
    id: BigInt(index),
    line: index,
    operation: "create",
    externalid: texts.text,
    recordId: texts.name,
    record: JSON.stringify({ name: texts.text }),
    ...wrong(texts)
  }))

const trend = {
  amounts: many(12, (index) => ({ at: hour(index), kind: "done", amount: index * 9, isCut: false })),
  countedMax: 20_000,
  now
}

const outboxOf = (texts: Texts): Outbox.Model => {
  const { name, text } = texts
  const of = { company: name, resource: name }
  return {
    company: name,
    companies: [unconnected(name), unconnected("north")],
    waiting: 5,
    rejected: 20,
    inserted: many(4, (index) => ({ ...of, oldestAt: before(index), ...counts })),
    pushes: many(4, (index) => ({
      ...of,
      push: BigInt(index),
      operation: "update",
      source: text,
      records: 130,
      known: 10,
      createdAt: before(99),
      finishedAt: index === 0 ? null : before(9),
      waiting: 3,
      sending: 2,
      rejected: index
    })),
    requests: many(2, (index) => ({
      ...of,
      resource: index === 0 ? name : "orders",
      operation: "batch",
      items: 50,
      failures: 2,
      reason: text,
      ageMs: 300_000
    })),
    pause: text,
    unknown: 2,
    unresolved: [
      {
        kind: "unresolved",
        company: of.company,
        subject: of.resource,
        severity: "warning",
        level: 0,
        size: 1,
        since: before(9),
        what: text,
        remedy: text,
        command: "tributary push retry 2",
        isConsequence: false
      }
    ],
    rejectedRows: many(3, (index) => ({
      ...of,
      id: BigInt(index),
      operation: "create",
      externalid: text,
      recordId: null,
      push: 2n,
      state: "rejected",
      outcome: null,
      code: name,
      field: name,
      reason: text,
      createdAt: before(9),
      resolvedAt: before(8),
      resolvedMs: 60_000
    })),
    trend,
    now
  }
}

const emptyOutbox: Outbox.Model = {
  ...outboxOf(plain),
  company: null,
  companies: [],
  waiting: 0,
  rejected: 0,
  inserted: [],
  pushes: [],
  requests: [],
  pause: null,
  unknown: 0,
  unresolved: [],
  rejectedRows: [],
  trend: { amounts: [], countedMax: null, now }
}

const pushOf = (texts: Texts): Outbox.PushModel => ({
  push: {
    push: 2n,
    company: texts.name,
    resource: texts.name,
    operation: "create",
    source: texts.text,
    records: 130,
    known: 10,
    ageMs: 300_000,
    finishedAt: null,
    counts,
    oldestMs: 200_000,
    state: "unfinished with rejections",
    rejectedBy: [{ code: texts.name, records: 20 }]
  },
  rejected: rejectedOf(texts),
  now
})

// --------------------------------------------------------------------------------------------- budgets, rules and actions

const budgetOf = (index: number): BudgetState => ({
  fingerprint: String(index),
  readAt: now,
  used: 300,
  configured: 400,
  allowed: index === 2 ? 400 : 300,
  pausedUntil: index === 0 ? before(-1) : null,
  pausedMs: 60_000,
  pausedBy: null,
  isProbing: false,
  refusals: 12,
  lastRefusalAt: before(3),
  askedAt: before(1)
})

const budgetsOf = ({ name }: Texts, length: number): Budget.Model => ({
  isMany: length > 1,
  text: length > 1 ? name : null,
  budgets: 1_234,
  companies: 2_000,
  found: 99,
  shown: many(length, (index) => ({
    fingerprint: String(index),
    companies: many(5, () => name),
    limit: 400,
    budget: budgetOf(index),
    points: many(100, (at) => ({
      at: before(50 - at / 4),
      used: 100 + at * 2,
      allowed: at > 60 ? 300 : 400,
      configured: 400,
      isPaused: at > 40 && at < 50,
      refusals: at > 40 ? 3 : 1
    }))
  })),
  hours: null,
  now
})

const rulesOf = ({ name, text }: Texts): Invariants.Model => {
  const rules = many(5, (index) => ({
    name: `${name} ${index}`,
    severity: "critical" as const,
    statement: text,
    comment: text,
    resources: [name, "orders"],
    evaluated: 3,
    waiting: index === 4 ? 3 : 0,
    failed: index === 1 ? 2 : 0,
    open: index === 0 ? 12 : 0,
    unconfirmed: index < 3 ? 2 : 0,
    error: index === 1 ? text : null,
    evaluatedAt: before(3)
  }))
  return {
    rules,
    seen: trend,
    one: {
      rule: rules[0]!,
      company: name,
      state: "all",
      before: 9n,
      names: new Map([[1n, name]]),
      shown: many(3, (index) => ({
        id: BigInt(index),
        companyId: BigInt(index),
        resource: name,
        recordId: 4n,
        detail: text,
        firstSeenAt: before(99),
        openedAt: index === 0 ? null : before(9),
        endedAt: index === 2 ? before(2) : null
      })),
      next: 3n
    },
    companies: [unconnected(name), unconnected("north")],
    now
  }
}

const confirmOf = (texts: Texts, formAccess: Action.Model<Texts>["formAccess"]): Answer =>
  Action.view<Texts>({
    name: "backfill",
    section: "resources",
    target: () => {
      throw new Error("not asked for")
    },
    fields: ({ name }) => ({ company: name, resource: null }),
    heading: ({ name }) => `Backfill ${name.replaceAll(/\P{L}/gu, "_")}?`,
    consequences: () => ["A past range, or everything, is read again.", "No row returns to an older version."],
    inputs: backfillInputs,
    button: "Backfill",
    back: () => "/resources",
    act: () => {
      throw new Error("not asked for")
    }
  })({ target: texts, formAccess })

const deliveriesOf = ({ name, text }: Texts): SubscriptionActions.Model => ({
  company: name,
  subscription: name,
  log: {
    answer: {
      attempts: many(3, (index) => ({
        eventId: text,
        eventType: name,
        resource: name,
        attempts: index + 1,
        delivered: index === 0,
        abandoned: index === 1,
        responseCode: index === 0 ? 204 : null,
        disables: false,
        responseBody: text,
        durationMs: 12,
        at: "2026-11-28T09:00:00.123456Z"
      }))
    }
  }
})

/** The pages of a route, by the pattern of its path, with these texts. The first one of each is also shown with other texts. */
const pagesWith = (texts: Texts): Readonly<Record<string, ReadonlyArray<Answer>>> => ({
  "/companies/:company/:resource": resourceModels(texts).map(Resource.view),
  "/resources": [listedOf(texts, [...many(4, () => stateOf(texts)), failing(texts)])].map(Resources.view),
  "/records": recordsOf(texts).map(Records.view),
  "/webhooks/event": eventModels(texts).map(WebhookEvent.view),
  "/webhooks/:company/:subscription/deliveries": [SubscriptionActions.view(deliveriesOf(texts))],
  "/outbox": [Outbox.view(outboxOf(texts))],
  "/outbox/pushes/:id": [Outbox.viewPush(pushOf(texts))],
  "/outbox/rows/:id": rowModels(texts).map(OutboxRow.view),
  "/budget": [Budget.view(budgetsOf(texts, 1)), Budget.view(budgetsOf(texts, 3))],
  "/invariants": [Invariants.view(rulesOf(texts))],
  "/confirm/:action": [
    confirmOf(texts, { _tag: "Acting", formToken: "token" }),
    confirmOf(texts, { _tag: "Reading", reason: "Reading only: open the link that tributary serve link prints." })
  ]
})

const empty: Readonly<Record<string, ReadonlyArray<Answer>>> = {
  "/companies/:company/:resource": [Resource.view(emptyResource)],
  "/resources": [Resources.view(listedOf(plain, []))],
  "/records": [Records.view({ text: null, company: null, companies: [], found: { _tag: "Nothing" } })],
  "/webhooks/:company/:subscription/deliveries": [
    SubscriptionActions.view({ company: "north", subscription: "s", log: { answer: { attempts: [] } } }),
    SubscriptionActions.view({ company: "north", subscription: "s", log: { problem: plain.text } })
  ],
  "/outbox": [Outbox.view(emptyOutbox)],
  "/budget": [Budget.view({ ...budgetsOf(plain, 0), budgets: 0, companies: 0 })],
  "/invariants": [Invariants.view({ rules: [], seen: emptyOutbox.trend, one: null, companies: [], now })],
  "/login": [loginPage("token", "/", null, 200), loginPage("token", "/", "That is not the password.", 401)],
  "*": [away, refusal(404, plain.text), refusal(400, plain.text, "/runs")]
}

/** The patterns of the routes whose pages are shown here. */
export const patterns: ReadonlyArray<string> = Object.keys(pagesWith(plain))

interface ShownPage {
  readonly name: string
  readonly path: string
  /** Whether it differs from another page in the length and the characters of its texts alone. */
  readonly isVariant: boolean
  readonly answer: Answer
}

/** Every page. */
export const pages: ReadonlyArray<ShownPage> = Object.entries({
  normal: pagesWith(plain),
  empty,
  long: pagesWith(long),
  hostile: pagesWith(odd)
}).flatMap(([kind, byPath]) =>
  Object.entries(byPath).flatMap(([path, answers]) =>
    answers.map((answer, index) => ({
      name: `${path} ${kind} ${index}`,
      path,
      isVariant: kind === "long" || kind === "hostile",
      answer
    }))
  )
)
