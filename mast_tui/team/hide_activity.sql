-- Hide the activity of others and the sizes of tables from all but monitoring programs, which have
-- the role "pg_monitor". "rights.py" runs this file if a superuser changes the team.

DO $$
DECLARE function record; columns text;
BEGIN
  FOR function IN SELECT oid::regprocedure AS signature FROM pg_proc
    WHERE prokind = 'f' AND proname ~ ('^pg_(stat_|lock_status|current_wal|last_wal|'
      'notification_queue|blocking_pids|safe_snapshot|prepared_xact|(total_)?relation_size|'
      '(table|indexes|database|tablespace)_size)')
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function.signature);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO pg_monitor', function.signature);
  END LOOP;
  SELECT string_agg(attname, ', ') INTO columns FROM pg_attribute
    WHERE attrelid = 'pg_class'::regclass AND attnum > 0 AND attname NOT IN ('reltuples',
      'relpages', 'relallvisible', 'relallfrozen', 'relfrozenxid', 'relminmxid');
  REVOKE SELECT ON pg_class FROM PUBLIC;
  EXECUTE format('GRANT SELECT (%s) ON pg_class TO PUBLIC', columns);
  GRANT SELECT ON pg_class TO pg_monitor;
END $$;
