-- The extension installs, its schemas are explained, and its settings show.
select extname, extversion from pg_extension where extname = 'ujobs';
select nspname, obj_description(oid, 'pg_namespace') as comment
  from pg_namespace where nspname like 'ujobs%' order by nspname;
-- Every setting has a description.
select count(*) > 0 as some, count(*) filter (where short_desc is null or short_desc = '') as undescribed
  from pg_settings where name like 'ujobs.%';
-- Nothing of the store is open to everybody.
select count(*) as readable
  from pg_class c
 where relnamespace = 'ujobs_internal'::regnamespace
   and relkind in ('r', 'p', 'v', 'S')
   and exists (select from aclexplode(c.relacl) a where a.grantee = 0);
