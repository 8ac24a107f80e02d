/** The drift radar of Service API v2, for the wiring. */
export { apply } from "./Like.ts"
export { run } from "./Radar.ts"
