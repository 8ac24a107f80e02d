/**
 * The source of the commands. `main.ts` supplies it, so that no command names a connector.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import type { CompanyConfiguration } from "../configuration/Companies.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import type { ConfigurationError } from "../configuration/ConfigurationError.ts"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { Demo, Reference, ReferenceFailed, ReferenceOptions } from "../connector/Demo.ts"
import type { RadarBounds, RadarResult } from "../connector/Radar.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { Sandbox } from "../connector/Sandbox.ts"
import type { Invariant } from "../invariants/Invariant.ts"
import type { Model } from "../warehouse/Model.ts"

export class Source extends Context.Service<
  Source,
  {
    readonly catalogue: Catalogue
    /** Only within `Warehouse.provide` is the token's budget shared with every process on that warehouse. */
    readonly connect: (
      company: CompanyConfiguration,
      configuration: Configuration
    ) => Effect.Effect<ConnectorShape, ConfigurationError, Scope.Scope>
    /** Compares an installation with the documentation by reading only. */
    readonly radar: (
      company: CompanyConfiguration,
      configuration: Configuration,
      bounds: RadarBounds
    ) => Effect.Effect<RadarResult, ConfigurationError, Scope.Scope>
    /** The reader that verifies and decodes webhook deliveries of this source. */
    readonly deliveries: Effect.Effect<DeliveryReader>
    readonly reference: (options: ReferenceOptions) => Effect.Effect<Reference, ReferenceFailed, Scope.Scope>
    readonly demo: Effect.Effect<Demo>
    /** Puts records of the warehouse into a reference server. */
    readonly sandbox: Effect.Effect<Sandbox>
    /** The views over this source's records. */
    readonly models: Effect.Effect<ReadonlyArray<Model>>
    /** The rules that hold for this source's records. */
    readonly invariants: Effect.Effect<ReadonlyArray<Invariant>>
  }
>()("tributary/cli/Source") {}

/** A company with the settings of its installation, and none of its own but these. */
export const companyOf = (
  own: Pick<CompanyConfiguration, "name" | "installation" | "url" | "token"> & Partial<CompanyConfiguration>
): CompanyConfiguration => ({
  companyId: null,
  warehouseNumber: null,
  resources: null,
  excluded: [],
  webhookSecrets: [],
  webhookEvents: null,
  paused: null,
  ...own
})
