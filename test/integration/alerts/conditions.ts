/** A warehouse with one company, what makes each kind of condition hold in it, and rounds of three processes. */
import { Effect } from "effect"
import type * as SqlClient from "effect/sql/SqlClient"
import * as MessageStore from "../../../src/alerts/MessageStore.ts"
import type { Route } from "../../../src/alerts/Route.ts"
import type { ObservedProblem } from "../../../src/processes/Observe.ts"
import type { Kind } from "../../../src/status/ProblemKinds.ts"
import * as CountCompanies from "../../../src/tasks/CountCompanies.ts"
import { type Alerting, alertingProcess, alertsTo } from "../../support/alerting.ts"
import { clockIs, databaseUrl, layerWarehouse, sql } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

export const run = <Row extends object>(text: string) => sql.unsafe<Row>(text).pipe(Effect.orDie)

const budget = "f".repeat(64)

/** A warehouse with the company north, whose resource `things` is fresh, and a clock that only {@link pass} moves. */
export const prepare = Effect.gen(function* () {
  yield* run("create table public.test_clock (at timestamptz not null)")
  yield* run("insert into public.test_clock values ('2026-11-20T12:00:00Z')")
  yield* run(clockIs("(select at from public.test_clock)"))
  yield* run(
    `insert into tributary.companies (company, company_id, installation, budget) values ('north', 7, 'one', '${budget}')`
  )
  yield* run(
    `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, status, started_at, finished_at)
     values ('north', 'things', 'sync', 'every 10 min', 900000, 'done', tributary.now(), tributary.now())`
  )
  yield* succeed
})

/** A run of `things` succeeds now, and its task with it. */
export const succeed = Effect.gen(function* () {
  yield* run(
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at)
     values (7, 'things', 'incremental', 'live', 'done', 1, tributary.now(), tributary.now())`
  )
  yield* run(
    `update tributary.tasks set status = 'done', failure_kind = null, error = null, remedy = null, failures = 0,
            started_at = tributary.now(), finished_at = tributary.now(), updated_at = tributary.now()`
  )
})

export const pass = (seconds: number) => run(`update public.test_clock set at = at + interval '${seconds} seconds'`)

export const fail = (kind: string) =>
  Effect.andThen(
    pass(1),
    run(
      `update tributary.tasks set status = 'failed', failure_kind = '${kind}', error = 'answered by ${kind}', remedy = 'repair it',
            failures = failures + 1, finished_at = tributary.now(), updated_at = tributary.now()`
    )
  )

/** All processes evaluate and send at the same time, until no message is due. */
export const round = Effect.fnUntraced(function* (processes: ReadonlyArray<Alerting>) {
  const together = { concurrency: "unbounded" } as const
  yield* CountCompanies.countDue()
  yield* Effect.forEach(processes, ({ evaluate }) => evaluate, together)
  while ((yield* Effect.forEach(processes, ({ send }) => send, together)).includes(true));
})

/** Rounds every two minutes and at the end, with a successful run before each where `isFresh`. */
export const minutes = Effect.fnUntraced(function* (count: number, processes: ReadonlyArray<Alerting>, isFresh = true) {
  for (let left = count; left > 0; left -= 2) {
    yield* pass(60 * Math.min(left, 2))
    if (isFresh) yield* succeed
    yield* round(processes)
  }
})

/** A test with a warehouse of its own. */
export const test = testWith(layerWarehouse, 120_000)

interface Posted {
  readonly id: string
  readonly messages: ReadonlyArray<
    Readonly<Record<"event" | "kind" | "what" | "remedy" | "since", string>> & { company: string | null }
  >
}

export const postsOf = (requests: ReadonlyArray<{ readonly body: string }>) =>
  requests.flatMap(({ body }) => (JSON.parse(body) as Posted).messages)

export const eventsOf = (requests: ReadonlyArray<{ readonly body: string }>) =>
  postsOf(requests).map(({ event, kind }) => `${event} ${kind}`)

const several = (owners: ReadonlyArray<string>) => (routes: ReadonlyArray<Route>) =>
  Effect.flatMap(databaseUrl, (url) =>
    Effect.forEach(owners, (owner) => alertingProcess(owner, url, alertsTo(routes), ["north", "south"]))
  )
export const two = several(["one", "two"])
export const three = several(["one", "two", "three"])

export const quarantine = (from: number, to: number) =>
  run(
    `insert into tributary.quarantine (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at)
     select 7, 'things', n::text, 'a NUL cannot be stored', '{}', 1, 'GET /x', tributary.now(), tributary.now()
       from generate_series(${from}, ${to}) n`
  )

/** As a process stores it. */
const full: ObservedProblem & { readonly critical_from: number } = {
  kind: "disk",
  subject: "db.example.com",
  level: 0,
  critical_from: 1,
  what: "1.5 GB free for the server (/data)",
  remedy: "free space there",
  command: "tributary doctor"
}

interface Trigger {
  readonly begin: Effect.Effect<unknown, never, SqlClient.SqlClient>
  readonly minutes: number
  readonly end: Effect.Effect<unknown, never, SqlClient.SqlClient>
  /** Whether runs succeed meanwhile. */
  readonly isFresh: boolean
}

/** What makes a condition of each kind hold, how many minutes it takes to start, and what ends it. */
export const triggers = {
  late: { begin: Effect.void, minutes: 25, end: succeed, isFresh: false },
  failing: { begin: fail("ServerFault"), minutes: 7, end: succeed, isFresh: false },
  installation: {
    begin: Effect.andThen(
      run(`with south as (insert into tributary.companies (company, company_id, installation) values ('south', 8, 'one'))
           insert into tributary.tasks (company, resource, kind) values ('south', 'things', 'sync')`),
      fail("Unreachable")
    ),
    minutes: 7,
    end: Effect.andThen(
      run(
        "with south as (delete from tributary.companies where company_id = 8) delete from tributary.tasks where company = 'south'"
      ),
      succeed
    ),
    isFresh: false
  },
  token: { begin: fail("Unauthorized"), minutes: 1, end: succeed, isFresh: false },
  quarantine: {
    begin: quarantine(1, 3),
    minutes: 1,
    end: run("update tributary.quarantine set resolved_at = tributary.now()"),
    isFresh: true
  },
  gap: {
    begin: run(
      `insert into tributary.delivery_gaps (company, resource, cause, detail, began_at)
       values ('north', 'things', 'subscription_inactive', 'the subscription was disabled', tributary.now())`
    ),
    minutes: 12,
    end: run("update tributary.delivery_gaps set closed_at = tributary.now()"),
    isFresh: true
  },
  endpoint: {
    begin: run(
      `insert into tributary.change_endpoints (name, url, origin, state, state_since, reason, last_position)
       values ('shop', 'https://shop.example.com', 'command', 'dead', tributary.now(), 'answered 500 for two days', 0)`
    ),
    minutes: 1,
    end: run("delete from tributary.change_endpoints where name = 'shop'"),
    isFresh: true
  },
  budget: {
    begin: run(
      `insert into tributary.budgets (fingerprint, requests_per_minute, updated_at, retry_after_at)
       values ('${budget}', 500, tributary.now(), tributary.now() + interval '30 minutes')`
    ),
    minutes: 4,
    end: run("delete from tributary.budgets"),
    isFresh: true
  },
  disk: {
    begin: run(
      `insert into tributary.processes (process_id, companies, heartbeat_at, observed)
       values ('p1', '{}', 'infinity', '${JSON.stringify([full])}')`
    ),
    minutes: 1,
    end: run("delete from tributary.processes"),
    isFresh: true
  },
  restore: {
    begin: run("update tributary.warehouse set pause_reason = 'the database was restored'"),
    minutes: 1,
    end: run("update tributary.warehouse set pause_reason = null"),
    isFresh: true
  },
  invariant: {
    begin: run(
      `with rule as (
         insert into tributary.invariants (name, severity, statement, comment, resources, query)
         values ('price_is_positive', 'warning', 'A price is positive.', '', '{things}', 'select 1') returning name),
       violated as (
         insert into tributary.invariant_states (invariant, company_id, state, violations, open_violations) select name, 7, 'violated', 1, 1 from rule)
       insert into tributary.violations (invariant, company_id, resource, record_id, detail, opened_at)
       select name, 7, 'things', 1, 'thing 1 has the price -1', tributary.now() from rule`
    ),
    minutes: 7,
    end: run("update tributary.invariant_states set open_violations = 0, state = 'holds'"),
    isFresh: true
  },
  unevaluated: {
    begin: run(
      `with rule as (
         insert into tributary.invariants (name, severity, statement, comment, resources, query)
         values ('broken', 'warning', 'It holds.', '', '{things}', 'select') returning name)
       insert into tributary.invariant_states (invariant, company_id, state, error) select name, 7, 'failed', 'syntax error' from rule`
    ),
    minutes: 7,
    end: run("delete from tributary.invariants where name = 'broken'"),
    isFresh: true
  },
  receiver: {
    begin: run(
      `insert into tributary.subscriptions (company, subscription_id, url, events, state, checked_at)
       values ('north', 's1', 'https://hooks.example.com', '{things.updated}', 'active', tributary.now())`
    ),
    minutes: 7,
    end: run("delete from tributary.subscriptions"),
    isFresh: true
  },
  subscription: {
    begin: run(
      `insert into tributary.subscriptions (company, subscription_id, url, events, state, checked_at)
       values ('north', 's1', 'https://hooks.example.com', '{things.updated}', 'deleted', tributary.now())`
    ),
    minutes: 12,
    end: run("delete from tributary.subscriptions"),
    isFresh: true
  },
  dead_letters: {
    begin: run(
      `insert into tributary.inbox (company, event_id, event_type, sent_at, body, state)
       values ('north', 'e1', 'things.updated', tributary.now(), '', 'dead_letter')`
    ),
    minutes: 1,
    end: run("delete from tributary.inbox"),
    isFresh: true
  },
  rejected: {
    begin: run(
      `insert into tributary.outbox (company, resource, record, state, reason, resolved_at)
       values ('north', 'things', '{}', 'rejected', 'a field is missing', tributary.now())`
    ),
    minutes: 1,
    end: run("delete from tributary.outbox"),
    isFresh: true
  },
  unresolved: {
    begin: run(
      `insert into tributary.push_requests (company, resource, operation, idempotency_key, body, record_count)
       values ('north', 'things', 'create', 'k1', '{}', 1)`
    ),
    minutes: 7,
    end: run("delete from tributary.push_requests"),
    isFresh: true
  },
  undelivered: {
    begin: run(
      `with endpoint as (
         insert into tributary.change_endpoints (name, url, origin, last_position)
         values ('shop', 'https://shop.example.com', 'command', 0) returning name)
       insert into tributary.change_retries (endpoint, position, company_number, resource, state, failed_at, next_attempt_at)
       select name, 1, 7, 'things', 'dead', tributary.now(), tributary.now() from endpoint`
    ),
    minutes: 7,
    end: run("delete from tributary.change_endpoints where name = 'shop'"),
    isFresh: true
  },
  process: {
    begin: run(
      `insert into tributary.processes (process_id, companies, host, pid, heartbeat_at)
       values ('p1', '{north}', 'web1', 17, tributary.now() - interval '2 minutes')`
    ),
    minutes: 7,
    end: run("update tributary.processes set stopped_at = tributary.now()"),
    isFresh: true
  }
} satisfies Partial<Record<Kind, Trigger>>

/** The messages of a route, newest first, with their states. */
export const statesOf = (route: string) =>
  Effect.map(MessageStore.readHistory(100), (messages) =>
    messages.filter((one) => one.route === route).map(({ event, state }) => `${event} ${state}`)
  )
