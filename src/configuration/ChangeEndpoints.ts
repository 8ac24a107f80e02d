/** The endpoints of the file with their secrets, which are in the environment. */
import * as Redacted from "effect/Redacted"
import { type FileEndpoint, isSecret, problemOfUrl } from "../delivery/Endpoint.ts"
import { type Inputs, variableStatus } from "./Inputs.ts"

/** The endpoints of the settings. */
export const endpointsOf = ({ settings, place, problems, variable }: Inputs): ReadonlyArray<FileEndpoint> => {
  const endpoints = settings.changeEndpoints.map(({ secretVariables, ...one }, index): FileEndpoint => {
    const problem = problemOfUrl(one.url, one.allowPrivate)
    if (problem !== null) problems.push(`${place("change_endpoints", index, "url")}: ${problem}`)
    const secrets = secretVariables.flatMap((name, position) => {
      const secret = variable(name)
      if (secret !== undefined && isSecret(secret)) {
        return [Redacted.make(secret, { label: `signing secret of endpoint ${one.name}` })]
      }
      problems.push(
        `${place("change_endpoints", index, "secrets_env", position)}: ${variableStatus(name)} ${
          secret === undefined
            ? "is not set in the environment or .env"
            : "is no secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64"
        }`
      )
      return []
    })
    return { ...one, secrets }
  })
  const names = endpoints.map(({ name }) => name)
  for (const twice of new Set(names.filter((name, index) => names.indexOf(name) !== index))) {
    problems.push(`two endpoints are called ${twice}`)
  }
  return endpoints
}
