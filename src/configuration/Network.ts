/**
 * How requests to an installation of the source leave this machine: a proxy, and authorities that are trusted beside the
 * usual ones.
 */
import { readFileSync } from "node:fs"
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls"
import { addressOf, expectedAddress, type Proxies, proxiesOf } from "../http/Proxies.ts"
import { type Inputs, variableStatus } from "./Inputs.ts"
import { noProxy, type Requests } from "./InstallationSettings.ts"

type NetworkSettings = Pick<typeof Requests.Type, "proxy" | "proxyVariable" | "caFile">

export interface Network {
  /** Null reaches every address directly. */
  readonly proxies: Proxies | null
  /** Null trusts the usual authorities. Clients share it, since one has a megabyte. */
  readonly secureContext: SecureContext | null
  /** What is wrong, by the name of a setting of `requests`. */
  readonly mistakes: ReadonlyArray<readonly [key: string, mistake: string]>
}

const readNetwork = (
  variable: Inputs["variable"],
  environment: Proxies | null,
  { proxy, proxyVariable, caFile }: NetworkSettings
): Network => {
  const mistakes: Array<readonly [string, string]> = []
  const wrong = (key: string, mistake: string) => {
    mistakes.push([key, mistake])
    return null
  }
  const readProxies = (): Proxies | null => {
    if (proxyVariable === null)
      return proxy === null ? environment : proxy === noProxy ? null : proxiesOf(addressOf(proxy)!)
    if (proxy !== null) return wrong("proxy_env", "set either proxy or proxy_env")
    const text = variable(proxyVariable)
    if (text === undefined)
      return wrong("proxy_env", `${variableStatus(proxyVariable)} is not set in the environment or .env`)
    const url = addressOf(text)
    return url === null ? wrong("proxy_env", expectedAddress) : proxiesOf(url)
  }
  const readAuthorities = (file: string): SecureContext | null => {
    try {
      const certificates = readFileSync(file, "utf8")
      if (!certificates.includes("BEGIN CERTIFICATE")) return wrong("ca_file", `${file} has no certificate in PEM`)
      return createSecureContext({ ca: [...getCACertificates(), certificates] })
    } catch (error) {
      return wrong("ca_file", `${file} cannot be read (${error instanceof Error ? error.message : String(error)})`)
    }
  }
  return { proxies: readProxies(), secureContext: caFile === null ? null : readAuthorities(caFile), mistakes }
}

/** The network of settings, which equal settings share. `environment` has the proxies where the settings name none. */
export const networksOf = (variable: Inputs["variable"], environment: Proxies | null) => {
  const known = new Map<string, Network>()
  return (settings: NetworkSettings): Network => {
    const key = JSON.stringify([settings.proxy, settings.proxyVariable, settings.caFile])
    const network = known.get(key) ?? readNetwork(variable, environment, settings)
    known.set(key, network)
    return network
  }
}

/** Reports the mistakes of the file's installations, at the first place that has them. */
export const checkNetworks = (
  { place, problems, settings: { installations } }: Inputs,
  networkOf: (settings: NetworkSettings) => Network,
  [topLevel, others]: readonly [NetworkSettings, ReadonlyArray<NetworkSettings>]
) => {
  const networks = new Map([[networkOf(topLevel), place("requests")]])
  for (const [index] of installations.entries()) {
    const network = networkOf(others[index]!)
    if (!networks.has(network)) networks.set(network, place("installations", index, "requests"))
  }
  for (const [{ mistakes }, its] of networks)
    problems.push(...mistakes.map(([key, mistake]) => `${its}.${key}: ${mistake}`))
}
