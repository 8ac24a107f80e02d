/** Bugs of a warehouse with several installations of the source: a key without the company or its installation. */
import { type Plan, undisturbed } from "../Plan.ts"
import { just, type Mutants } from "./Mutant.ts"

const guard = "src/sync/SourceGuard.ts"
const due = "src/inbox/DueEvents.ts"
const merge = "src/land/MergeSql.ts"

/** Deliveries without faults, and no sync after the first. */
const byEvents: Partial<Plan> = {
  hooks: "only",
  webhooks: {
    cycleEvery: 3_000_000,
    failureThreshold: 24,
    checkEvery: 12_000_000,
    keep: 30 * 86_400_000_000,
    ...undisturbed
  }
}

export const installations: Mutants = {
  "installation-not-compared": {
    why: ["a key without its installation", "the number of a company is its own"],
    file: guard,
    find: "row.sourceNumber === sourceNumber && (row.address === null || address === null || row.address === address)",
    replace: "row.sourceNumber === sourceNumber",
    options: just(["G4"])
  },
  "number-of-the-source": {
    why: ["a key without its installation", "rows have the number that the source says"],
    changes: [
      {
        file: guard,
        find: "  const rows = yield* readRows(company)\n  const named",
        replace:
          "  if (company.sourceNumber > 0n) return company.sourceNumber\n  const rows = yield* readRows(company)\n  const named"
      },
      {
        file: guard,
        find: "          .where(sql<boolean>`coalesce(tributary.companies.address = ${address}::text, true)`)\n",
        replace: ""
      }
    ],
    options: just(["G4"])
  },
  "event-of-the-warehouse-number": {
    why: ["the warehouse's number compared with the source's", "a company has one number"],
    file: due,
    find: "identity: { sourceNumber }",
    replace: "identity: { companyId: sourceNumber }",
    options: just(["G4"], byEvents)
  },
  "deleted-by-id": {
    why: ["a key without its company", "the ids of an installation are unique"],
    file: merge,
    find: 'from ${goneRows} g where g.id = t."id" and t."_company_id" = $1 returning',
    replace: 'from ${goneRows} g where g.id = t."id" and $1::bigint is not null returning',
    options: just(["G4", "S11"], { hooks: "off", resources: ["areas"], records: 20, writes: 45 })
  },
  "event-answered-by-any-company": {
    why: ["a key without its company", "the row of an id is newer than the event"],
    file: "src/inbox/CompareWithRow.ts",
    find: 'where k."_company_id" = $1 and k."id" = e.record',
    replace: 'where k."id" = e.record',
    options: just(["G4"], { ...byEvents, resources: ["jobs"], rewriteShare: 0.6, writes: 45 })
  },
  "pushed-to-the-number-of-the-source": {
    why: ["the warehouse's number compared with the source's", "a company has one number"],
    file: "src/tasks/PushOutbox.ts",
    find: "const { companyId } = identity",
    replace: "const { sourceNumber: companyId } = identity",
    options: { on: ["G4", "U21"], overrides: { pushes: "beside" } }
  },
  "verified-by-id": {
    why: ["a key without its company", "the ids of an installation are unique"],
    file: "src/verify/WarehouseRows.ts",
    find: 't where t."_company_id" = $1`',
    replace: "t where $1::bigint is not null`",
    options: just(["G4"])
  }
}
