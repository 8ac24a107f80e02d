/**
 * The functions of Postgres that a reader may execute.
 *
 * Promise: of the volatile functions in `pg_catalog`, which may write outside of transactions, lock, wait or end sessions,
 * a reader may execute those of {@link allowed} only; the others are revoked from everybody. A function that a later
 * version of Postgres adds is closed until it is listed. The embedded server is closed at the reader's next login, another
 * server by the statements of `tributary schema grants`, which a superuser runs; the loader and the owner keep the rights.
 *
 * Closed are, for example, `pg_logical_emit_message` (it writes WAL without end, also in a read-only transaction),
 * advisory locks (they would block a sync), `pg_notify`, `pg_cancel_backend` and `pg_terminate_backend` (the sessions of
 * the dashboard belong to the same role), replication slots and large objects.
 */
import * as Statement from "../postgres/Statement.ts"
import { identifier, literal } from "./Identifier.ts"

/** Names on Postgres 14 to 18. Each reads, or is restricted by the rights on what it names. */
export const allowed: ReadonlyArray<string> = `
  amvalidate array_sample array_shuffle clock_timestamp current_query currtid2 currval cursor_to_xml
  cursor_to_xmlschema gen_random_uuid lastval nextval pg_available_wal_summaries pg_blocking_pids
  pg_collation_actual_version pg_control_checkpoint pg_control_init pg_control_recovery pg_control_system
  pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn pg_database_collation_actual_version
  pg_database_size pg_get_loaded_modules pg_get_multixact_members pg_get_sequence_data pg_get_wait_events
  pg_get_wal_replay_pause_state pg_get_wal_resource_managers pg_get_wal_summarizer_state pg_indexes_size
  pg_is_in_backup pg_is_in_recovery pg_is_wal_replay_paused pg_jit_available pg_last_committed_xact
  pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_lock_status
  pg_notification_queue_usage pg_partition_ancestors pg_partition_tree pg_prepared_xact pg_relation_size
  pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_sleep pg_sleep_for pg_sleep_until pg_stat_clear_snapshot
  pg_stat_force_next_flush pg_stat_get_backend_io pg_stat_get_backend_wal pg_stat_get_io
  pg_stat_get_recovery_prefetch pg_stat_get_xact_blocks_fetched pg_stat_get_xact_blocks_hit
  pg_stat_get_xact_function_calls pg_stat_get_xact_function_self_time pg_stat_get_xact_function_total_time
  pg_stat_get_xact_numscans pg_stat_get_xact_tuples_deleted pg_stat_get_xact_tuples_fetched
  pg_stat_get_xact_tuples_hot_updated pg_stat_get_xact_tuples_inserted pg_stat_get_xact_tuples_newpage_updated
  pg_stat_get_xact_tuples_returned pg_stat_get_xact_tuples_updated pg_table_size pg_tablespace_size
  pg_total_relation_size pg_wal_summary_contents pg_xact_commit_timestamp pg_xact_commit_timestamp_origin
  pg_xact_status plpgsql_validator query_to_xml query_to_xml_and_xmlschema query_to_xmlschema random random_normal
  set_config setseed setval timeofday timezone ts_rewrite ts_stat txid_status uuidv4 uuidv7`
  .trim()
  .split(/\s+/)

/** No statement can call a function of these types. */
const internalTypes =
  "'{trigger, event_trigger, internal, language_handler, fdw_handler, index_am_handler, table_am_handler, tsm_handler}'::regtype[]"

const isInternal = `(p.prorettype = any (${internalTypes}) or 'internal'::regtype = any (p.proargtypes))`

/** A condition on the function `p`, of those that everybody may execute. */
export const isOpen = `p.pronamespace = 'pg_catalog'::regnamespace and p.provolatile = 'v' and not ${isInternal}
  and p.proname <> all (array[${allowed.map(literal).join(", ")}]) and has_function_privilege('public', p.oid, 'execute')`

/** The functions that everybody may execute although they are not allowed. */
export const openFunctionsStatement = Statement.make({
  name: "look for functions that a reader should not execute",
  columns: { names: "text[]" },
  text: `select coalesce(array_agg(distinct p.proname::text), '{}') as names from pg_proc p where ${isOpen}`
})

/** PL/pgSQL that closes them; `keepers` are roles that keep the right. `variable` is a record. */
export const close = (variable: string, keepers: ReadonlyArray<string>): string => `
      for ${variable} in select p.oid::regprocedure as signature from pg_proc p where ${isOpen}
      loop
        ${keepers.length === 0 ? "" : `execute format('grant execute on function %s to ${keepers.join(", ")}', ${variable}.signature);`}
        execute format('revoke execute on function %s from public', ${variable}.signature);
      end loop;`

/** How many bytes the temporary files of one session of a reader may have. */
export const tempFileLimit = "1GB"

/** The rights that only a superuser can take from a reader. Run by another role, it says what stays open. */
export const restrict = (reader: string, keepers: ReadonlyArray<string>): string =>
  `do ${literal(`
declare one record;
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    execute ${literal(`alter role ${identifier(reader)} set temp_file_limit = ${literal(tempFileLimit)}`)};
    ${close("one", keepers)}
  else
    raise warning ${literal(
      `${reader} may still write WAL, lock and fill the disk with temporary files: a superuser runs this statement too`
    )};
  end if;
end`)}`
