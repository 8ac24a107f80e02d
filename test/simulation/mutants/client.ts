/** Bugs of the connector: waiting, retrying, paging, decoding. */
import { just, type Mutants } from "./Mutant.ts"

const exchange = "connectors/service-v2/client/Exchange.ts"
const decode = "connectors/service-v2/client/Decode.ts"
const copyText = "connectors/service-v2/client/CopyText.ts"
const values = "connectors/service-v2/client/Values.ts"
const paging = "connectors/service-v2/client/Paging.ts"
const pages = "connectors/service-v2/client/Pages.ts"

export const client: Mutants = {
  "retry-after-ignored": {
    why: ["Retry-After ignored", "our own backoff is surely long enough"],
    changes: [
      {
        file: exchange,
        find: "const isStated = stated !== null && !Duration.isZero(stated)",
        replace: "const isStated = false"
      },
      {
        file: exchange,
        find: "if (isForAll) yield* hold(Duration.max(wait, failed.stated ?? Duration.zero))",
        replace: "if (isForAll) yield* hold(wait)"
      }
    ],
    options: { on: ["S2"] }
  },
  "retry-after-without-bound": {
    why: ["a bogus Retry-After stopped a company for a year", "the server knows best how long to wait"],
    file: "src/budget/PermitRule.ts",
    find: "const until = nowMs + Math.ceil(Math.min(statedMs, maxMs))",
    replace: "const until = nowMs + Math.ceil(statedMs)",
    options: { on: ["S2h"], overrides: { sharedBudget: true, network: [["S2h huge wait", 0.3]] } }
  },
  "one-refusal-stops-all": {
    why: ["one refused resource stopped the company", "a 401, a 403 of the user and a redirect concern every request"],
    file: "src/connector/FailureScope.ts",
    find: 'scope: "resource" })',
    replace: 'scope: "company" })',
    options: just(["S3r"], { resources: ["jobs", "worktypes", "areas"], concurrency: 1 })
  },
  "retry-on-4xx": {
    why: ["retry on 4xx", "another try never hurts"],
    file: exchange,
    find: "if (!reason.handling.isRetryable) return null",
    replace: "if (!reason.handling.isRetryable && state.failures >= 6) return null",
    options: {
      on: ["S3", "N16"],
      overrides: {
        network: [
          ["S3 forbidden", 0.5],
          ["N16 redirect", 0.3]
        ]
      }
    }
  },
  "float-money": {
    why: ["float money", "a decimal is a number"],
    changes: [
      // On the fast path, …
      {
        file: copyText,
        find: "if (end === notPlain || !hasQuote) return end",
        replace:
          "const first = hasQuote ? from + 1 : from\n" +
          "    if (end !== notPlain) this.length -= end - first\n" +
          '    if (end !== notPlain) this.length += this.buffer.write(String(Number(source.toString("latin1", first, end))), this.length)\n' +
          "    if (end === notPlain || !hasQuote) return end"
      },
      // … and in strict decoding.
      {
        file: values,
        find: 'return sign === "-" && !(whole === "0" && isZeros(kept)) ? `-${magnitude}` : magnitude',
        replace:
          'return String(Number(sign === "-" && !(whole === "0" && isZeros(kept)) ? `-${magnitude}` : magnitude))'
      }
    ]
  },
  "unknown-fields-dropped": {
    why: ["schema drift drops column", "fields that the catalogue does not know are not needed"],
    file: decode,
    find: 'return { customFields, extra: extra === "" ? null : `{${extra}}` }',
    replace: "return { customFields, extra: null }",
    options: { on: ["S12"] }
  },
  "drift-unnoticed": {
    why: ["museum 5", "offset by offset, every record is read"],
    file: paging,
    find: "if (token === null || edge === null) return { repeated: 0, again: null }",
    replace: "if (token !== undefined || edge === null) return { repeated: 0, again: null }",
    options: {
      on: ["Pp", "S5"],
      off: ["S9", "S7x", "Pb", "S8", "S4e"],
      overrides: { overlap: 0, pageSize: 3, rewriteShare: 0.7, records: 24, writes: 60, delayMax: 3_000_000 }
    }
  },
  "cancelled-records-forgotten": {
    why: ["delete ignored", "cancelled records are not needed"],
    file: pages,
    find: 'else if (isCancellable(resource)) parameters.push(["cancel", "any"])',
    replace: "else if (isCancellable(resource) && since === undefined) parameters.push()"
  }
}
