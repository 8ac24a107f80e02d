/**
 * The limits of the service (LIM-01..LIM-13; limits that the documents leave open are decided in A-03 and B-08).
 *
 * Promise: a number that both client and server use is stated only here.
 */
export const limits = {
  /** Records in one /batch call (LIM-01). */
  batchRecordsMax: 250,
  /** Requests in a sliding minute (LIM-02). */
  requestsPerMinute: 600,
  /** Webhook test calls in a sliding minute, counted separately (LIM-03). */
  webhookTestsPerMinute: 10,
  webhookTimeoutSeconds: 15,
  webhookAttemptsMax: 3,
  /** Consecutive failed attempts until a subscription is disabled (LIM-06, decision H-06). */
  webhookFailuresMax: 24,
  /** Stored bytes of a receiver's answer (LIM-07). */
  webhookAnswerBytesMax: 500,
  webhookDeliveredDays: 7,
  webhookAbandonedDays: 30,
  webhookUrlLengthMax: 500,
  webhookDescriptionLengthMax: 100,
  webhookSignatureAgeSeconds: 300,
  /** Default and maximum number of records of a list page (decision A-03; the documents do not show them). */
  pageRecordsDefault: 100,
  pageRecordsMax: 250,
  /** Hours for which the answer to a key is stored (decision B-08). */
  idempotencyHours: 24,
  idempotencyKeyLengthMax: 255,
  /** Digits of a stored decimal, before and after the point together. */
  decimalDigitsMax: 20
} as const
