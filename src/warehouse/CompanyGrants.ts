/**
 * The rights of a role that reads one company, as statements for the owner or an administrator.
 *
 * Promise: the role sees rows of its company only: the views of datasets of its own (`erp_2`, `erp_history_2` and
 * `erp_asof_2` for company number 2). It has no right on the datasets of all companies. Tables and columns that appear later are seen once
 * these statements are run again.
 *
 * Views instead of row-level security: the history of a resource is a view that reads with the rights of its owner, to
 * which policies do not apply, and `security_invoker` needs Postgres 15. Policies would also need one for each other
 * role, and cost the loader time.
 */
import type { AllDatasets } from "./Grants.ts"
import * as Grants from "./Grants.ts"
import { identifier, literal, supersededSuffix } from "./Identifier.ts"
import { restrict } from "./ReaderFunctions.ts"

/** The dataset with a company's part of another one. */
export const datasetOf = (dataset: string, companyId: bigint): string => `${dataset}_${companyId}`

export const readerDefault = (companyId: bigint): string => `${Grants.roleNamesDefault.reader}_${companyId}`

/** A view for each table and view with rows of companies. */
const createViews = (dataset: string, companyId: bigint, owner: string): string =>
  `do ${literal(`
declare one record;
begin
  for one in
    select c.relname from pg_class c
     where c.relnamespace = (select oid from pg_namespace where nspname = ${literal(dataset)}) and c.relkind in ('r', 'p', 'v')
       and not c.relispartition and right(c.relname, ${supersededSuffix.length}) <> ${literal(supersededSuffix)}
       and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = '_company_id' and not a.attisdropped)
  loop
    execute format('create or replace view %I.%I with (security_barrier) as select * from %I.%I where _company_id = ${companyId}',
      ${literal(datasetOf(dataset, companyId))}, one.relname, ${literal(dataset)}, one.relname);
    execute format(${literal(`alter view %I.%I owner to ${owner}`)}, ${literal(datasetOf(dataset, companyId))}, one.relname);
  end loop;
end`)}`

/** To be run in this order, after a first sync, by the owner of the datasets or by an administrator. */
export const statements = (
  datasets: AllDatasets,
  companyId: bigint,
  role: string,
  owner?: string
): ReadonlyArray<string> => {
  const reader = identifier(role)
  const all = Object.values(datasets).map(identifier)
  const read = [datasets.current, datasets.history, datasets.asOf]
  return [
    Grants.createRole(role),
    Grants.closePublic,
    Grants.grantDatabase("connect", role),
    ...Grants.createSchemas(Object.values(datasets), owner),
    ...all.flatMap((dataset) => [
      `revoke all on schema ${dataset} from ${reader}`,
      `revoke all on all tables in schema ${dataset} from ${reader}`
    ]),
    ...read.flatMap((dataset) => {
      const own = identifier(datasetOf(dataset, companyId))
      return [
        ...Grants.createSchemas([datasetOf(dataset, companyId)], owner),
        createViews(dataset, companyId, Grants.ownerName(owner)),
        `grant usage on schema ${own} to ${reader}`,
        `grant select on all tables in schema ${own} to ${reader}`
      ]
    }),
    ...Grants.readerSettings(role),
    restrict(role, [Grants.ownerName(owner)])
  ]
}
