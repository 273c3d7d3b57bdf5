-- Everything a user would miss after pg_dump and restore.  The identity
-- sequences are registered too: without their values the first enqueue after
-- a restore would collide.  Secrets are not: a dump is read by many.
do $$
declare
    r record;
begin
    for r in
        select c.oid::regclass as rel
          from pg_catalog.pg_class c
         where c.relnamespace = 'ujobs_internal'::regnamespace
           and c.relkind in ('r', 'p', 'S')
           and c.relkind <> 'p'
           and c.relname <> 'sink_secret'
    loop
        perform pg_catalog.pg_extension_config_dump(r.rel, '');
    end loop;
end
$$;
