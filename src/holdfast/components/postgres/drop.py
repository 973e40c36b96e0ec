"""Empties a database inside a transaction: everything that a dump restores, and no more.

    event triggers first, because they would see the rest → the content of schemas → the schemas
    → extensions that were not there then → objects outside schemas

Extensions that were there then stay, with their objects, because only some users may create them.
The schema `public` stays and is emptied, because a dump expects it. Its owner and rights are set to
those of a new database, and a dump contains the differences from that.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.components.postgres.connection import PsqlConnection, literal

_OURS = """
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = o.class AND d.objid = o.oid AND d.deptype IN ('e', 'i')
      AND d.refobjid <> d.objid)
"""

_IN_SCHEMAS = f"""
  SELECT o.class, o.oid FROM (
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AS class, oid,
           relnamespace AS space, 1 AS turn
      FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, oid, pronamespace, 2
      FROM pg_catalog.pg_proc
    UNION ALL SELECT 'pg_catalog.pg_opclass'::pg_catalog.regclass, oid, opcnamespace, 3
      FROM pg_catalog.pg_opclass
    UNION ALL SELECT 'pg_catalog.pg_opfamily'::pg_catalog.regclass, oid, opfnamespace, 4
      FROM pg_catalog.pg_opfamily
    UNION ALL SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, oid, oprnamespace, 5
      FROM pg_catalog.pg_operator
    UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, t.typnamespace, 6
      FROM pg_catalog.pg_type t
      WHERE t.typelem = 0 AND (t.typrelid = 0 OR EXISTS (
        SELECT FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c'))
    UNION ALL SELECT 'pg_catalog.pg_collation'::pg_catalog.regclass, oid, collnamespace, 7
      FROM pg_catalog.pg_collation
    UNION ALL SELECT 'pg_catalog.pg_conversion'::pg_catalog.regclass, oid, connamespace, 8
      FROM pg_catalog.pg_conversion
    UNION ALL SELECT 'pg_catalog.pg_ts_config'::pg_catalog.regclass, oid, cfgnamespace, 9
      FROM pg_catalog.pg_ts_config
    UNION ALL SELECT 'pg_catalog.pg_ts_dict'::pg_catalog.regclass, oid, dictnamespace, 10
      FROM pg_catalog.pg_ts_dict
    UNION ALL SELECT 'pg_catalog.pg_ts_template'::pg_catalog.regclass, oid, tmplnamespace, 11
      FROM pg_catalog.pg_ts_template
    UNION ALL SELECT 'pg_catalog.pg_ts_parser'::pg_catalog.regclass, oid, prsnamespace, 12
      FROM pg_catalog.pg_ts_parser
  ) o JOIN pg_catalog.pg_namespace n ON n.oid = o.space
  WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' {_OURS}
  ORDER BY o.turn, o.oid
"""

_ELSEWHERE = f"""
  SELECT o.class, o.oid FROM (
    SELECT 'pg_catalog.pg_publication'::pg_catalog.regclass::pg_catalog.oid AS class, oid, 1 AS turn
      FROM pg_catalog.pg_publication
    UNION ALL SELECT 'pg_catalog.pg_foreign_server'::pg_catalog.regclass, oid, 2
      FROM pg_catalog.pg_foreign_server
    UNION ALL SELECT 'pg_catalog.pg_foreign_data_wrapper'::pg_catalog.regclass, oid, 3
      FROM pg_catalog.pg_foreign_data_wrapper
    UNION ALL SELECT 'pg_catalog.pg_cast'::pg_catalog.regclass, oid, 4 FROM pg_catalog.pg_cast
    UNION ALL SELECT 'pg_catalog.pg_transform'::pg_catalog.regclass, oid, 5
      FROM pg_catalog.pg_transform
    UNION ALL SELECT 'pg_catalog.pg_language'::pg_catalog.regclass, oid, 6
      FROM pg_catalog.pg_language WHERE lanname <> 'plpgsql'
    UNION ALL SELECT 'pg_catalog.pg_am'::pg_catalog.regclass, oid, 7 FROM pg_catalog.pg_am
  ) o WHERE o.oid >= 16384 {_OURS} ORDER BY o.turn, o.oid
"""

_EVENT_TRIGGERS = f"""
  SELECT o.class, o.oid FROM (
    SELECT 'pg_catalog.pg_event_trigger'::pg_catalog.regclass::pg_catalog.oid AS class, oid
      FROM pg_catalog.pg_event_trigger) o WHERE true {_OURS} ORDER BY o.oid
"""

_DROP_ALL = """DO LANGUAGE plpgsql $holdfast$
DECLARE
  found record;
  named record;
BEGIN
  FOR found IN {query} LOOP
    SELECT * INTO named FROM pg_catalog.pg_identify_object(found.class, found.oid, 0);
    IF named.identity IS NOT NULL THEN  -- what depended on something else is gone already
      EXECUTE pg_catalog.format('DROP %s %s CASCADE',
        CASE named.type
          WHEN 'composite type' THEN 'type'
          ELSE pg_catalog.replace(named.type, '-', ' ') END,
        CASE named.type
          WHEN 'transform' THEN pg_catalog.replace(named.identity, ' on language ', ' language ')
          ELSE named.identity END);
    END IF;
  END LOOP;
END $holdfast$"""

_DROP_EXTENSIONS = """DO LANGUAGE plpgsql $holdfast$
DECLARE found record;
BEGIN
  FOR found IN SELECT extname FROM pg_catalog.pg_extension
    WHERE extname <> 'plpgsql' AND NOT extname = ANY (ARRAY[{kept}]::text[]) ORDER BY oid DESC
  LOOP
    EXECUTE pg_catalog.format('DROP EXTENSION IF EXISTS %I CASCADE', found.extname);
  END LOOP;
END $holdfast$"""

_DROP_SCHEMAS = """DO LANGUAGE plpgsql $holdfast$
DECLARE found record;
BEGIN
  FOR found IN SELECT n.oid, n.nspname FROM pg_catalog.pg_namespace n
    WHERE n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'public')
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND d.objid = n.oid
          AND d.deptype = 'e')
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_extension e WHERE e.extnamespace = n.oid)
    ORDER BY n.oid
  LOOP
    EXECUTE pg_catalog.format('DROP SCHEMA %I CASCADE', found.nspname);
  END LOOP;
END $holdfast$"""


_RENEW_PUBLIC = """DO LANGUAGE plpgsql $holdfast$
DECLARE
  found record;
  there pg_catalog.pg_namespace;
  is_new bool := pg_catalog.current_setting('server_version_num')::int >= 150000;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'public') THEN
    CREATE SCHEMA public;
    COMMENT ON SCHEMA public IS 'standard public schema';
  END IF;
  SELECT * INTO there FROM pg_catalog.pg_namespace WHERE nspname = 'public';
  IF is_new AND there.nspowner <> 'pg_database_owner'::pg_catalog.regrole THEN
    ALTER SCHEMA public OWNER TO pg_database_owner;
    SELECT * INTO there FROM pg_catalog.pg_namespace WHERE nspname = 'public';
  END IF;
  IF (SELECT pg_catalog.array_agg(a.grantee || a.privilege_type ORDER BY 1)
      FROM pg_catalog.aclexplode(there.nspacl) a WHERE a.grantee <> there.nspowner)
    IS DISTINCT FROM
      (CASE WHEN is_new THEN ARRAY['0USAGE'] ELSE ARRAY['0CREATE', '0USAGE'] END)
  THEN
    FOR found IN SELECT DISTINCT a.grantee FROM pg_catalog.aclexplode(there.nspacl) a
      WHERE a.grantee <> there.nspowner
    LOOP
      EXECUTE 'REVOKE ALL ON SCHEMA public FROM ' || CASE WHEN found.grantee = 0 THEN 'PUBLIC'
        ELSE found.grantee::pg_catalog.regrole::text END || ' CASCADE';
    END LOOP;
    IF is_new THEN
      GRANT USAGE ON SCHEMA public TO PUBLIC;
    ELSE
      GRANT ALL ON SCHEMA public TO PUBLIC;
    END IF;
  END IF;
END $holdfast$"""


def drop_everything(
    connection: PsqlConnection, kept_extensions: Iterable[str], *, with_public: bool
) -> None:
    """`with_public` says whether there was a schema of that name."""
    kept = ", ".join(literal(name) for name in kept_extensions)
    connection.execute(
        "removing the current content",
        _DROP_ALL.format(query=_EVENT_TRIGGERS),
        _DROP_ALL.format(query=_IN_SCHEMAS),
        _DROP_EXTENSIONS.format(kept=kept),
        _DROP_ALL.format(query=_ELSEWHERE),
        _DROP_SCHEMAS,
        _RENEW_PUBLIC if with_public else "DROP SCHEMA IF EXISTS public CASCADE",
    )
