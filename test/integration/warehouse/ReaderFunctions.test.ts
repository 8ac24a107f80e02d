/** What a reader may execute, compared with `pg_proc` of this server. `npm run test:postgres` does so on other versions. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import * as ReaderFunctions from "../../../src/warehouse/ReaderFunctions.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"
import { assertNone } from "../../support/assertions.ts"

/** Functions of Postgres 14 to 18 that were looked at, and are closed. */
const closed = new Set(
  `
  binary_upgrade_add_sub_rel_state binary_upgrade_create_empty_extension binary_upgrade_logical_slot_has_caught_up
  binary_upgrade_replorigin_advance binary_upgrade_set_missing_value binary_upgrade_set_next_array_pg_type_oid
  binary_upgrade_set_next_attribute_versions binary_upgrade_set_next_heap_pg_class_oid
  binary_upgrade_set_next_heap_relfilenode binary_upgrade_set_next_index_pg_class_oid
  binary_upgrade_set_next_index_relfilenode binary_upgrade_set_next_multirange_array_pg_type_oid
  binary_upgrade_set_next_multirange_pg_type_oid binary_upgrade_set_next_pg_authid_oid
  binary_upgrade_set_next_pg_enum_oid binary_upgrade_set_next_pg_tablespace_oid
  binary_upgrade_set_next_pg_type_oid binary_upgrade_set_next_toast_pg_class_oid
  binary_upgrade_set_next_toast_relfilenode binary_upgrade_set_record_init_privs brin_desummarize_range
  brin_summarize_new_values brin_summarize_range gin_clean_pending_list lo_close lo_creat lo_create lo_from_bytea
  lo_get lo_lseek lo_lseek64 lo_open lo_put lo_tell lo_tell64 lo_truncate lo_truncate64 lo_unlink loread lowrite
  pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all pg_advisory_unlock_shared
  pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_cancel_backend pg_clear_attribute_stats
  pg_clear_relation_stats pg_copy_logical_replication_slot pg_copy_physical_replication_slot
  pg_create_logical_replication_slot pg_create_physical_replication_slot pg_drop_replication_slot
  pg_export_snapshot pg_extension_config_dump pg_import_system_collations pg_isolation_test_session_is_blocked
  pg_log_backend_memory_contexts pg_logical_emit_message pg_logical_slot_get_binary_changes
  pg_logical_slot_get_changes pg_logical_slot_peek_binary_changes pg_logical_slot_peek_changes pg_nextoid
  pg_notify pg_read_file_old pg_replication_slot_advance pg_restore_attribute_stats pg_restore_relation_stats
  pg_rotate_logfile_old pg_stop_making_pinned_objects pg_sync_replication_slots pg_terminate_backend
  pg_try_advisory_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared`
    .trim()
    .split(/\s+/)
)

/** The volatile functions that a role without any grant may call. */
const executable = (role: string) =>
  sql
    .unsafe<{ readonly name: string }>(
      `select distinct proname::text as name from pg_proc p
        where pronamespace = 'pg_catalog'::regnamespace and provolatile = 'v' and prokind = 'f'
          and prorettype::regtype::text !~ '(trigger|_handler|internal)$' and pg_get_function_arguments(oid) !~ 'internal'
          and has_function_privilege('${role}', oid, 'execute') order by 1`
    )
    .pipe(Effect.map((rows) => rows.map(({ name }) => name)))

suite("what a reader may execute", layerWarehouse, (test) => {
  test("is listed for every volatile function of the server, and the others are closed", function* () {
    const mark = process.pid
    const [plain, keeper, reader] = [`plain_${mark}`, `keeper_${mark}`, `closed_reader_${mark}`]
    yield* Effect.acquireRelease(
      Effect.forEach([plain, keeper, reader], (role) => sql.unsafe(`create role ${role}`)),
      () =>
        Effect.orDie(
          Effect.forEach([plain, keeper, reader], (role) =>
            Effect.andThen(sql.unsafe(`drop owned by ${role}`), sql.unsafe(`drop role ${role}`))
          )
        )
    )
    const before = yield* executable(plain)
    assertNone(
      before,
      (name) => !ReaderFunctions.allowed.includes(name) && !closed.has(name),
      "look at these functions of a new version of Postgres, and add them to one of the two lists"
    )
    assert.include(before, "pg_logical_emit_message")
    yield* sql.unsafe(ReaderFunctions.restrict(reader, [keeper]))
    const after = yield* executable(plain)
    assertNone(after, (name) => !ReaderFunctions.allowed.includes(name))
    assert.includeMembers(after, ["set_config", "pg_lock_status", "query_to_xml", "clock_timestamp"])
    // The loader and the owner keep what they had.
    assert.deepStrictEqual(yield* executable(keeper), before)
    const denied = yield* Effect.flip(
      sql.withTransaction(
        Effect.andThen(sql.unsafe(`set local role ${reader}`), sql`select pg_logical_emit_message(false, 'a', 'b')`)
      )
    )
    assert.strictEqual(DatabaseError.from("try")(denied).code, "42501")
    const [role] = yield* sql<{
      config: string
    }>`select rolconfig::text as config from pg_roles where rolname = ${reader}`
    assert.include(role!.config, "temp_file_limit=1GB")
    // A role without the rights of a superuser changes nothing, and gets a warning.
    yield* sql.withTransaction(
      Effect.andThen(sql.unsafe(`set local role ${keeper}`), sql.unsafe(ReaderFunctions.restrict(reader, [])))
    )
  })
})
