/** The route of a path: its methods, the action of each and the scope that it needs. */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import type { SpecialRule } from "../rules/Rules.ts"

export type WebhookCall = "list" | "create" | "retrieve" | "update" | "cancel" | "test" | "deliveries"

export type Action =
  | { readonly kind: "list" | "create" | "batch"; readonly resource: Resource }
  | { readonly kind: "retrieve" | "update" | "cancel"; readonly resource: Resource; readonly id: number | null }
  | { readonly kind: "special"; readonly resource: Resource; readonly id: number | null; readonly rule: SpecialRule }
  | { readonly kind: "webhooks"; readonly call: WebhookCall; readonly id: number | null }
  | { readonly kind: "me" }

export interface ScopedAction {
  readonly action: Action
  /** The scope that is needed; null accepts any token. */
  readonly scope: string | null
}

export interface Route {
  /** The optional module that must be licensed. */
  readonly feature: string | null
  readonly methods: ReadonlyMap<string, ScopedAction>
}
