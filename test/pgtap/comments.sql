-- Every public thing explains itself: \df+ and \d+ are the reference a user has at hand.
begin;
select plan(5);

select is_empty($$
	select p.oid::regprocedure::text
	  from pg_proc p
	 where p.pronamespace = 'ujobs'::regnamespace
	   and obj_description(p.oid, 'pg_proc') is null
	 order by 1
$$, 'every function of schema ujobs has a comment');

-- A comment that is only a sentence does not tell how to call the function.
select is_empty($$
	select p.oid::regprocedure::text
	  from pg_proc p
	 where p.pronamespace = 'ujobs'::regnamespace
	   and p.pronargs > 0
	   and obj_description(p.oid, 'pg_proc') !~* 'example'
	 order by 1
$$, 'every function that takes arguments has an example in its comment');

select is_empty($$
	select p.oid::regprocedure::text
	  from pg_proc p
	 where p.pronamespace = 'ujobs'::regnamespace
	   and obj_description(p.oid, 'pg_proc') !~* 'error'
	 order by 1
$$, 'every function''s comment says which errors it raises');

select is_empty($$
	select c.oid::regclass::text
	  from pg_class c
	 where c.relnamespace = 'ujobs'::regnamespace
	   and c.relkind in ('r', 'v', 'm', 'p')
	   and obj_description(c.oid, 'pg_class') is null
	 order by 1
$$, 'every view of schema ujobs has a comment');

select is_empty($$
	select t.oid::regtype::text
	  from pg_type t
	  join pg_class c on c.oid = t.typrelid
	 where t.typnamespace = 'ujobs'::regnamespace
	   and c.relkind = 'c'
	   and obj_description(t.oid, 'pg_type') is null
	 order by 1
$$, 'every type of schema ujobs has a comment');

select * from finish();
rollback;
