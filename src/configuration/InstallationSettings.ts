/**
 * The settings in which installations of the source differ. At the top level of the file they are the default of every
 * installation; one of `installations`, or of the warehouse, has the same names for what it has otherwise.
 */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { batchRecordsMaxDefault, engineDefault } from "../sync/EngineSettings.ts"
import { addressOf } from "../http/Proxies.ts"
import { CustomResource, resourcePath } from "./ResourceSettings.ts"
import {
  address,
  between,
  choice,
  filled,
  type Form,
  meaning,
  minutes,
  natural,
  pattern,
  positive,
  required,
  ruled,
  seconds,
  section,
  setting,
  variableName
} from "./SettingValues.ts"

/** The name of a company or an installation. */
export const name = pattern(/^[A-Za-z0-9_-]{1,64}$/u, "Expected letters, digits, _ or - (at most 64)")

const Budget = section({
  requestsPerMinute: setting(
    "requests_per_minute",
    choice([positive, Schema.Literal("unlimited")], "Expected unlimited, or a whole number from 1"),
    "requests per minute for one token; the default leaves some of the service's 600 to other programs",
    500
  ),
  reservePercent: setting(
    "reserve_percent",
    between(0, 90),
    "the share of requests_per_minute that is left to other programs",
    0
  ),
  scope: setting(
    "scope",
    Schema.Literals(["token", "install"]),
    "the unit that the service's limit counts by; install: all tokens of one address share one budget",
    "token"
  )
})

/** The value of `proxy` for none. */
export const noProxy = "off"

const proxyAddress = ruled("off, or the address of an HTTP proxy", (text) => {
  const url = addressOf(text)
  if (text === noProxy) return true
  if (url === null) return `Expected ${noProxy}, or the address of a proxy, such as http://proxy.example.com:3128`
  return (
    `${url.username}${url.password}` === "" ||
    "Expected an address without user and password: put one that has them into a variable, and name that in proxy_env"
  )
})

export const Requests = section({
  requestTimeout: setting("timeout_seconds", seconds(positive), "the timeout of one whole answer", 60),
  attemptsMax: setting("attempts_max", positive, "attempts at one request before the run gives up", 8),
  retryAfterMax: setting("retry_after_max_seconds", seconds(positive), "longest Retry-After that is waited for", 900),
  requestIdHeader: setting(
    "request_id_header",
    pattern(/^[A-Za-z0-9-]{1,60}$/u, "Expected the name of a header (letters, digits and -, at most 60)"),
    "the header that has the id of a request; default: the first one whose name has request-id in it"
  ),
  proxy: setting(
    "proxy",
    proxyAddress,
    "the HTTP proxy of requests to the service, such as http://proxy.example.com:3128; off: none; default: that of " +
      "HTTPS_PROXY and HTTP_PROXY, with the exceptions of NO_PROXY"
  ),
  proxyVariable: setting(
    "proxy_env",
    variableName,
    "the environment variable (or .env entry) that holds that address, with user and password: http://user:password@host:port"
  ),
  caFile: setting(
    "ca_file",
    filled("Expected the path of a file"),
    "file of certificates (PEM) of authorities that are trusted for requests to the service, beside the usual ones"
  )
})

export const Paging = section({
  pagingMode: setting(
    "mode",
    Schema.Literals(["auto", "cursor", "page", "offset", "link", "none"]),
    "how this installation pages",
    "auto"
  ),
  pageSize: setting(
    "page_size",
    positive,
    "records per page; default: as many as the service accepts, which the program finds out"
  )
})

export const List = section({
  itemsKey: setting("items_key", Schema.String, "the key of the records in a list answer; default auto")
})

/** How the records of a company are read. */
const reading = {
  customFields: setting("custom_fields", Schema.Boolean, "whether the install's own fields are read too", false),
  overlap: setting(
    "overlap_seconds",
    seconds(natural),
    "how far before the stored cursor a scan begins at least, for rows that become visible late",
    Duration.toSeconds(engineDefault.overlap)
  ),
  fullScanInterval: setting(
    "full_scan_every_days",
    meaning(natural, Schema.Duration, (days) => (days === 0 ? Duration.infinity : Duration.days(days))),
    "a resource with modifiedsince is read in full again after this time, so that removals are seen; 0 never",
    Duration.toDays(engineDefault.fullScanInterval)
  ),
  cursorlessScanInterval: setting(
    "sweep_every_minutes",
    minutes(natural),
    "a resource without modifiedsince is read in full again after this time; in between only children of records " +
      "that changed are read; 0 reads it by every sync",
    Duration.toMinutes(engineDefault.cursorlessScanInterval)
  ),
  deletionsShareMax: setting(
    "deletions_max_percent",
    meaning(between(0, 100), Schema.Finite, (percent) => percent / 100),
    "a full scan in which more of a resource's rows are missing stops at the mass-delete guard; --accept-deletions passes it",
    engineDefault.deletionsShareMax * 100
  )
}

const sections = {
  budget: setting("budget", Budget, "how much of the service's request limit may be used", {}),
  requests: setting("requests", Requests, "timeouts and retries of a request", {}),
  paging: setting("paging", Paging, "how lists are paged", {}),
  list: setting("list", List, "the shape of list answers", {})
}
const allowHttp = setting(
  "allow_http",
  Schema.Boolean,
  "whether plain http is accepted everywhere, to the service too; webhooks.allow_http and dashboard.allow_http accept " +
    "it for one listener",
  false
)

/** These settings at the top level, with those of a sync that are of the program. */
export const topLevel = {
  ...sections,
  sync: setting(
    "sync",
    section({
      concurrency: setting("concurrency", positive, "resources of one company that are read at the same time", 4),
      batchRecordsMax: setting(
        "batch_records",
        positive,
        "records landed in one transaction, about",
        batchRecordsMaxDefault
      ),
      ...reading
    }),
    "how a sync works",
    {}
  ),
  allowHttp
}

/** The settings of one installation, where the top level has filled what it leaves out. */
export const Complete = section({
  ...sections,
  sync: setting("sync", section(reading), "how a sync reads", {}),
  allowHttp
})

/** Values as the file holds them. */
export type Written = Readonly<Record<string, unknown>>

/** What is written for a section, once it is known to be valid; every setting of it may be left out. */
const written = (form: Form<unknown>) => Schema.toEncoded(form) as unknown as Form<Written>

const part = (key: string, form: Form<unknown>) =>
  setting(key, written(form), `as ${key} of the top level, for this installation; default: what the top level has`)

/** What is written for an installation beside its name. */
export const own = {
  url: setting("url", address, "the base address of its companies, ending in /!/api/v2"),
  budget: part("budget", Budget),
  requests: part("requests", Requests),
  paging: part("paging", Paging),
  list: part("list", List),
  sync: part("sync", section(reading)),
  allowHttp: setting(
    "allow_http",
    Schema.Boolean,
    "whether plain http is accepted to this installation; default: as the top level"
  )
}

/** An installation of the file. */
export const InstallationSettings = section({
  name: required("name", name, "the name of the installation in output"),
  ...own,
  resources: setting(
    "resources",
    Schema.Record(resourcePath, CustomResource),
    "by the path of their list: resources that only this installation has; their columns are inferred from the records",
    {}
  )
})

/** An installation of the warehouse, without its name and its address. */
export const Stored = section(own)
