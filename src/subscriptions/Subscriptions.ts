/** The subscriptions at the source: the operations that commands and pages offer. */
export { create, descriptionOf } from "./Create.ts"
export { type Change, ensure, type EnsureReport } from "./Ensure.ts"
export { list, type Listing } from "./List.ts"
export { deliveries, type LogFilter } from "./ListDeliveries.ts"
export { pause, remove, resume, test } from "./Manage.ts"
export { rotate } from "./Rotate.ts"
export {
  type ChangeNeeds,
  type DesiredSubscription,
  type ProblemKind,
  type SubscribeError,
  type SubscribeNeeds,
  type Subscriber,
  SubscriptionError
} from "./SubscriptionError.ts"
