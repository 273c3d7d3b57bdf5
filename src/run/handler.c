/*
 * handler.c: finds functions by the name that the definition stores.
 *
 * By name, because a name survives dump and restore, a replaced function and
 * pg_upgrade; a look-up costs two cache probes.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/proclang.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "core/compat.h"
#include "run/command.h"
#include "run/handler.h"

/* A routine of one jsonb, or else of two. */
static Oid
find_proc(const char *name)
{
	FuncCandidateList candidate = FuncnameGetCandidates(ujobs_compat_name_list(name), -1, NIL,
														false, false, false, true);
	Oid			found = InvalidOid;

	for (; candidate != NULL; candidate = candidate->next)
	{
		if (candidate->nargs == 1 && candidate->args[0] == JSONBOID)
			return candidate->oid;
		if (candidate->nargs == 2 && candidate->args[0] == JSONBOID &&
			candidate->args[1] == JSONBOID)
			found = candidate->oid;
	}
	return found;
}

static bool
shape_fits(const UjobsDefinition *definition, Form_pg_proc form)
{
	if (definition->kind == UJOBS_KIND_ATOMIC)
		return form->prokind == PROKIND_FUNCTION && !form->proretset && form->pronargs == 1;
	return form->prokind == PROKIND_PROCEDURE;
}

static bool
find_callable(const UjobsDefinition *definition, UjobsHandler *handler, char **missing)
{
	HeapTuple	tuple;
	Form_pg_proc form;
	bool		fits;

	handler->proc = find_proc(definition->handler);
	tuple = OidIsValid(handler->proc) ?
		SearchSysCache1(PROCOID, ObjectIdGetDatum(handler->proc)) : NULL;
	if (!HeapTupleIsValid(tuple))
	{
		*missing = psprintf("handler %s(jsonb) does not exist", definition->handler);
		return false;
	}
	form = (Form_pg_proc) GETSTRUCT(tuple);
	fits = shape_fits(definition, form);
	handler->result_type = form->prorettype;
	handler->has_result = form->pronargs == 2;
	handler->plpgsql = form->prolang == get_language_oid("plpgsql", true);
	ReleaseSysCache(tuple);
	if (!fits)
		*missing = psprintf("handler %s is no longer a %s of one jsonb", definition->handler,
							definition->kind == UJOBS_KIND_ATOMIC ? "function" : "procedure");
	return fits;
}

bool
ujobs_handler_find(const UjobsDefinition *definition, UjobsHandler *handler, char **missing)
{
	AclResult	allowed;

	memset(handler, 0, sizeof(*handler));
	handler->kind = definition->kind;
	if (definition->kind == UJOBS_KIND_COMMAND)
	{
		handler->text = pstrdup(definition->handler);
		return true;
	}
	if (!find_callable(definition, handler, missing))
		return false;
	allowed = object_aclcheck(ProcedureRelationId, handler->proc, GetUserId(), ACL_EXECUTE);
	if (allowed != ACLCHECK_OK)
		aclcheck_error(allowed, OBJECT_FUNCTION, definition->handler);
	if (definition->kind == UJOBS_KIND_DURABLE)
	{
		handler->text = psprintf("call %s(%s)", definition->handler,
								 handler->has_result ? "$1, null" : "$1");
		return true;
	}
	fmgr_info(handler->proc, &handler->function);
	if (handler->result_type != JSONBOID && handler->result_type != VOIDOID)
		ujobs_command_prepare_jsonb(&handler->to_jsonb, handler->result_type);
	return true;
}
