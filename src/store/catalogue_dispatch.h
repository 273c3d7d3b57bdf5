/*
 * catalogue_dispatch.h: what the dispatcher reads: lanes, parties, what is due.
 *
 * A part of the table in catalogue.c, included there alone.
 */
#ifndef UJOBS_STORE_CATALOGUE_DISPATCH_H
#define UJOBS_STORE_CATALOGUE_DISPATCH_H

	/* dispatch_store */
	[UJOBS_SQL_DISPATCH_NEXT_LANE] = {
		"dispatch_next_lane",
		"/* ujobs:dispatch_next_lane */\n"
		"select definition_id, queue\n"
		"  from ujobs_internal.job\n"
		" where (definition_id, queue) > ($1, $2)\n"
		" order by definition_id, queue\n"
		" limit 1",
		2, {INT4OID, TEXTOID}
	},
	[UJOBS_SQL_DISPATCH_NEXT_PRIORITY] = {
		"dispatch_next_priority",
		"/* ujobs:dispatch_next_priority */\n"
		"select priority\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority > $3\n"
		" order by priority\n"
		" limit 1",
		3, {INT4OID, TEXTOID, INT4OID}
	},
	[UJOBS_SQL_DISPATCH_DUE] = {
		"dispatch_due",
		"/* ujobs:dispatch_due */\n"
		"select id, due_at\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority = $3\n"
		"   and (due_at, id) > ($4, $5)\n"
		"   and due_at <= $6\n"
		"   and state <> 'l'\n"
		"   and tenant = ''\n"
		" order by due_at, id\n"
		" limit $7",
		7, {INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, INT8OID, TIMESTAMPTZOID, INT8OID}
	},
	[UJOBS_SQL_DISPATCH_FUTURE] = {
		"dispatch_future",
		"/* ujobs:dispatch_future */\n"
		"select id, due_at\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority = $3\n"
		"   and due_at > $4\n"
		"   and due_at < 'infinity'\n"
		"   and state <> 'l'\n"
		"   and tenant = ''\n"
		" order by due_at, id\n"
		" limit $5",
		5, {INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, INT8OID}
	},
	[UJOBS_SQL_DISPATCH_HAS_PLAIN] = {
		"dispatch_has_plain",
		"/* ujobs:dispatch_has_plain */\n"
		"select 1\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and tenant = ''\n"
		" limit 1",
		1, {INT4OID}
	},
	[UJOBS_SQL_DISPATCH_TENANTS] = {
		"dispatch_tenants",
		"/* ujobs:dispatch_tenants */\n"
		"with recursive t as (\n"
		"    (select tenant\n"
		"       from ujobs_internal.job\n"
		"      where definition_id = $1\n"
		"        and queue = $2\n"
		"        and tenant <> ''\n"
		"      order by tenant\n"
		"      limit 1)\n"
		"    union all\n"
		"    select (select j.tenant\n"
		"              from ujobs_internal.job j\n"
		"             where j.definition_id = $1\n"
		"               and j.queue = $2\n"
		"               and j.tenant <> ''\n"
		"               and j.tenant > t.tenant\n"
		"             order by j.tenant\n"
		"             limit 1)\n"
		"      from t\n"
		"     where t.tenant is not null\n"
		")\n"
		"select tenant\n"
		"  from t\n"
		" where tenant is not null\n"
		" limit $3",
		3, {INT4OID, TEXTOID, INT8OID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_ROWS] = {
		"dispatch_tenant_rows",
		"/* ujobs:dispatch_tenant_rows */\n"
		"select id, due_at, priority\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and tenant = $3\n"
		"   and tenant <> ''\n"
		"   and state <> 'l'\n"
		" order by priority, due_at, id\n"
		" limit $4",
		4, {INT4OID, TEXTOID, TEXTOID, INT8OID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_NEXT_PRIORITY] = {
		"dispatch_tenant_next_priority",
		"/* ujobs:dispatch_tenant_next_priority */\n"
		"select priority\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority > $3\n"
		"   and tenant = $4\n"
		"   and tenant <> ''\n"
		" order by priority\n"
		" limit 1",
		4, {INT4OID, TEXTOID, INT4OID, TEXTOID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_DUE] = {
		"dispatch_tenant_due",
		"/* ujobs:dispatch_tenant_due */\n"
		"select id, due_at\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority = $3\n"
		"   and (due_at, id) > ($4, $5)\n"
		"   and due_at <= $6\n"
		"   and tenant = $8\n"
		"   and tenant <> ''\n"
		"   and state <> 'l'\n"
		" order by due_at, id\n"
		" limit $7",
		8, {INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, INT8OID, TIMESTAMPTZOID, INT8OID, TEXTOID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_FUTURE] = {
		"dispatch_tenant_future",
		"/* ujobs:dispatch_tenant_future */\n"
		"select id, due_at\n"
		"  from ujobs_internal.job\n"
		" where definition_id = $1\n"
		"   and queue = $2\n"
		"   and priority = $3\n"
		"   and due_at > $4\n"
		"   and due_at < 'infinity'\n"
		"   and tenant = $6\n"
		"   and tenant <> ''\n"
		"   and state <> 'l'\n"
		" order by due_at, id\n"
		" limit $5",
		6, {INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, INT8OID, TEXTOID}
	},
	[UJOBS_SQL_DISPATCH_TENANT_OF] = {
		"dispatch_tenant_of",
		"/* ujobs:dispatch_tenant_of */\n"
		"select tenant\n"
		"  from ujobs_internal.job\n"
		" where id = $1",
		1, {INT8OID}
	},
	[UJOBS_SQL_DISPATCH_QUEUES] = {
		"dispatch_queues",
		"/* ujobs:dispatch_queues */\n"
		"select name, paused, concurrency, per_tenant, rate_per_tenant, rate_window\n"
		"  from ujobs_internal.queue",
		0, {0}
	},

#endif							/* UJOBS_STORE_CATALOGUE_DISPATCH_H */
