/** The facts and decisions behind an answer that is no refusal, by what the request does. */
import type { Ids } from "./codes.ts"

export const byAction: Readonly<Record<string, Ids>> = {
  list: ["EP-05", "A-01 A-02 A-03 A-04"],
  retrieve: ["EP-08", "A-13 A-14 A-15"],
  create: ["EP-06", "A-13 B-01"],
  batch: ["EP-07 EP-11", "G-01 G-02 G-03"],
  update: ["EP-09", "A-13 B-01 B-02"],
  cancel: ["EP-10 GEN-09 STATE-12", "A-13 D-13"],
  "me retrieve": ["SPECIAL-10 RES-04", "C-05"],
  "webhooks list": ["WEBHOOK-12 EVT-01", "H-04"],
  "webhooks create": ["WEBHOOK-13 SIG-06 WEBHOOK-11", "H-09 X-22"],
  "webhooks retrieve": ["WEBHOOK-15", "H-04"],
  "webhooks update": ["WEBHOOK-16 STATE-18", "H-07 H-08"],
  "webhooks cancel": ["WEBHOOK-19 WEBHOOK-09", "H-13"],
  "webhooks test": ["LOG-01 LOG-02 WEBHOOK-17", "H-14 H-15"],
  "webhooks deliveries": ["LOG-04 LOG-05 WEBHOOK-18", "H-17 H-18"],
  "shipments packages": ["SPECIAL-01", "J-01"],
  "shipments invoice": ["SPECIAL-02", "J-02"],
  "shipments pdf": ["SPECIAL-04 GEN-01", "J-04"],
  "shipments boxlabels": ["SPECIAL-05 GEN-01", "J-04"],
  "orders invoice": ["SPECIAL-03 STATE-06", "J-03"],
  "invoicelines tax": ["SPECIAL-06", "J-05"],
  "payments receipt": ["SPECIAL-07", "J-06"],
  "invoices post": ["SPECIAL-08 STATE-09", "J-07"],
  "apbills post": ["SPECIAL-08 STATE-11", "J-07"],
  "invoices pdf": ["SPECIAL-12 GEN-01", "J-04 J-11"],
  "customers balance": ["SPECIAL-11", "J-09"],
  "items stock": ["SPECIAL-11", "J-10"]
}

/** The facts and decisions behind a parameter of a list. */
export const byParameter: Readonly<Record<string, Ids>> = {
  modifiedsince: ["EP-16 GEN-10", "A-05 A-06 A-07"],
  cancel: ["EP-15 FIELD-13", "A-08"],
  externalid: ["EP-17 FIELD-12", "A-18"],
  include: ["EP-13 FIELD-16", "A-12"],
  limit: ["LIM-13", "A-03"],
  cursor: ["EP-19", "A-02"],
  page: ["EP-19", "A-02"],
  offset: ["EP-19", "A-02"]
}

/** A stored answer that is sent again. */
export const replayed: Ids = ["EP-02 EP-01", "B-07 B-08 B-09"]

/** An answer of an armed fault. */
export const fault: Ids = ["", "D-15"]
