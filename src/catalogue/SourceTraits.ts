/** The traits of a source besides its resources: names of fields, scopes and limits. */

/** The names of the fields that mean something to the engine; null for one that the source does not have. */
export interface FieldRoles {
  /** The record's key, a positive integer: the first field of every resource. Its column is called `id`. */
  readonly id: string
  /** When the record last changed, a timestamp: the newest version of a record wins. */
  readonly modifiedAt: string | null
  /** The caller's own key, a text by which lists can be filtered: it identifies a record that is pushed. */
  readonly externalKey: string | null
  /** True when the record is cancelled; only a cancel writes it. */
  readonly cancelled: string | null
}

export interface SourceTraits {
  readonly roles: FieldRoles
  /** Parameters that every list takes, beside filters by the external key and the cancel flag. */
  readonly parameters: ReadonlyArray<string>
  /** The scope that a token with these scopes lacks for an area, which is empty where it is unknown; null for none. */
  readonly missingScope: (
    scopes: ReadonlyArray<string>,
    area: string,
    access: "read" | "write" | "cancel"
  ) => string | null
  /** The member of the body of a delivery that carries the record; absent where a delivery carries none. */
  readonly deliveryRecord?: string
  /** The other members of such a body that the documents state: they carry nothing of a record. */
  readonly deliveryEnvelope?: ReadonlyArray<string>
  /** The most records of one batch. */
  readonly batchRecordsMax: number
  /** How long the source recognises an idempotency key. */
  readonly keyLifetime: `${number} hours`
}
