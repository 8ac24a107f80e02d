/**
 * The source that the commands work with, without knowing which it is: `main.ts` supplies it.
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
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { Model } from "../warehouse/Model.ts"

export class Source extends Context.Service<
  Source,
  {
    readonly catalogue: Catalogue
    /** Within `Warehouse.provide` the token's budget is shared with every process on that warehouse; else it is not. */
    readonly connect: (
      company: CompanyConfiguration,
      configuration: Configuration
    ) => Effect.Effect<ConnectorShape, ConfigurationError, Scope.Scope>
    /** How webhook deliveries of this source are checked and read. */
    readonly deliveries: Effect.Effect<DeliveryReader>
    readonly reference: (options: ReferenceOptions) => Effect.Effect<Reference, ReferenceFailed, Scope.Scope>
    readonly demo: Effect.Effect<Demo>
    /** The views that people ask of this source's records. */
    readonly models: Effect.Effect<ReadonlyArray<Model>>
  }
>()("tributary/cli/Source") {}
