/** SQL for the tables that a view reads. */

/**
 * The tables that the view with this oid reads, as an array of `dataset.name`. A view is bound to its tables, not to their
 * names: after a table or its dataset was renamed, it reads the renamed one.
 */
export const tablesOfView = (oid: string): string =>
  `array(select distinct dn.nspname || '.' || dc.relname from pg_rewrite w
           join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid and d.refclassid = 'pg_class'::regclass
           join pg_class dc on dc.oid = d.refobjid and dc.oid <> w.ev_class
           join pg_namespace dn on dn.oid = dc.relnamespace
          where w.ev_class = ${oid})`
