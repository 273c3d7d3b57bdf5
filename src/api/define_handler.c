/*
 * define_handler.c: what can be a handler, decided when a job is defined.
 *
 * A name may have many functions behind it.  Those that take one jsonb (a
 * procedure: and may give one back) are candidates, and there must be exactly
 * one; everything else is refused here, with the reason, and not when the
 * first job runs.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/proclang.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"
#include "parser/parser.h"
#include "parser/scanner.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "api/define_handler.h"
#include "core/compat.h"
#include "core/error.h"
#include "run/command.h"

static void
refuse_handler(const char *handler, const char *reason, const char *hint)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("\"%s\" cannot be the handler of a job", handler),
			 errdetail("%s.", reason),
			 errhint("%s", hint)));
}

static void
refuse_procedure(const char *handler, const char *reason)
{
	ereport(ERROR,
			(ujobs_errcode(STEP_NOT_DURABLE),
			 errmsg("procedure \"%s\" cannot be the handler of a durable job", handler),
			 errdetail("%s, so it could not commit its steps.", reason),
			 errhint("Write it in PL/pgSQL without SECURITY DEFINER and SET clauses, or make it a function for an atomic job.")));
}

/* ---- finding the candidates ---- */

static List *
split_name(const char *handler)
{
	List	   *parts = NIL;
	List	   *names = NIL;
	ListCell   *cell;

	if (!SplitIdentifierString(pstrdup(handler), '.', &parts) || parts == NIL ||
		list_length(parts) > 2 || (strchr(handler, '(') != NULL && strchr(handler, '"') == NULL))
		refuse_handler(handler, "It is not the name of a function",
					   "Write the name alone, without arguments, such as 'app.onboard_org'.");
	foreach(cell, parts)
		names = lappend(names, makeString((char *) lfirst(cell)));
	return names;
}

/* (jsonb) for both; (jsonb, INOUT jsonb) for procedures too. */
static bool
arguments_fit(HeapTuple tuple)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	Oid		   *types;
	char	  **names;
	char	   *modes;
	int			n;

	if (proc->prokind != PROKIND_PROCEDURE)
		return proc->pronargs == 1 && proc->proargtypes.values[0] == JSONBOID;
	n = get_func_arg_info(tuple, &types, &names, &modes);
	if (n == 1)
		return types[0] == JSONBOID && (modes == NULL || modes[0] == PROARGMODE_IN);
	return n == 2 && types[0] == JSONBOID && types[1] == JSONBOID && modes != NULL &&
		modes[0] == PROARGMODE_IN && modes[1] == PROARGMODE_INOUT;
}

typedef struct Candidates
{
	int			n;				/* that fit */
	Oid			proc;			/* one of them */
	int			n_other;
	Oid			other;			/* one that does not fit */
	List	   *names;			/* of those that fit */
} Candidates;

static void
find_candidates(const char *handler, Candidates *found)
{
	FuncCandidateList list = FuncnameGetCandidates(split_name(handler), -1, NIL, false, false,
												   false, true);

	memset(found, 0, sizeof(*found));
	for (; list != NULL; list = list->next)
	{
		HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(list->oid));

		if (!HeapTupleIsValid(tuple))
			continue;
		if (arguments_fit(tuple))
		{
			found->names = lappend(found->names, format_procedure_qualified(list->oid));
			found->proc = list->oid;
			found->n++;
		}
		else
		{
			found->other = list->oid;
			found->n_other++;
		}
		ReleaseSysCache(tuple);
	}
}

static int
by_text(const ListCell *a, const ListCell *b)
{
	return strcmp((const char *) lfirst(a), (const char *) lfirst(b));
}

static void
refuse_ambiguous(const char *handler, Candidates *found)
{
	StringInfoData names;
	ListCell   *cell;

	initStringInfo(&names);
	list_sort(found->names, by_text);
	foreach(cell, found->names)
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", (char *) lfirst(cell));
	ereport(ERROR,
			(errcode(ERRCODE_AMBIGUOUS_FUNCTION),
			 errmsg("handler \"%s\" is ambiguous", handler),
			 errdetail("It can be any of %s.", names.data),
			 errhint("Drop or rename all but one of them.")));
}

/* No candidate fits: says why, by the one that comes nearest. */
static void
refuse_misfit(const char *handler, const Candidates *found)
{
	char	   *signature;
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		variadic;
	bool		polymorphic = false;

	if (found->n_other == 0)
		ereport(ERROR,
				(ujobs_errcode(HANDLER_MISSING),
				 errmsg("handler \"%s\" does not exist", handler),
				 errdetail("There is no function or procedure of that name in this database, or not in the search_path."),
				 errhint("Create it first, as a function or procedure of one jsonb, and write its schema too.")));
	signature = format_procedure_qualified(found->other);
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(found->other));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", found->other);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	variadic = OidIsValid(proc->provariadic);
	for (int i = 0; i < proc->pronargs; i++)
		polymorphic |= IsPolymorphicType(proc->proargtypes.values[i]);
	ReleaseSysCache(tuple);
	if (found->n_other == 1 && variadic)
		refuse_handler(handler, psprintf("%s is variadic", signature),
					   "Give it one argument of type jsonb.");
	if (found->n_other == 1 && polymorphic)
		refuse_handler(handler, psprintf("%s is polymorphic", signature),
					   "Give it one argument of type jsonb.");
	ereport(ERROR,
			(ujobs_errcode(HANDLER_MISSING),
			 errmsg("handler \"%s\" with one jsonb argument does not exist", handler),
			 errdetail("There is %s.", signature),
			 errhint("A handler is a function (jsonb), or a procedure (jsonb) or (jsonb, INOUT jsonb).")));
}

/* ---- judging the one ---- */

static void
check_function(const char *handler, Form_pg_proc proc)
{
	if (proc->prokind != PROKIND_FUNCTION)
		refuse_handler(handler, "It is an aggregate or window function", "Use a plain function.");
	if (proc->proretset)
		refuse_handler(handler, "It returns a set",
					   "Let it return one value, such as a jsonb array.");
	if (get_typtype(proc->prorettype) == TYPTYPE_PSEUDO && proc->prorettype != VOIDOID &&
		proc->prorettype != RECORDOID)
		refuse_handler(handler,
					   psprintf("It returns the pseudo-type %s", format_type_be(proc->prorettype)),
					   "Let it return jsonb, void or another ordinary type.");
}

static void
check_procedure(const char *handler, HeapTuple tuple)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);

	if (proc->prolang == SQLlanguageId)
		refuse_procedure(handler, "It is written in LANGUAGE sql");
	if (proc->prosecdef)
		refuse_procedure(handler, "It is SECURITY DEFINER");
	if (!heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL))
		refuse_procedure(handler, "It has SET clauses");
}

char *
ujobs_define_handler_resolve(const char *handler, UjobsKind *kind)
{
	Candidates	found;
	HeapTuple	tuple;
	Form_pg_proc proc;
	char	   *qualified;

	find_candidates(handler, &found);
	if (found.n == 0)
		refuse_misfit(handler, &found);
	if (found.n > 1)
		refuse_ambiguous(handler, &found);
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(found.proc));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", found.proc);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (isAnyTempNamespace(proc->pronamespace))
		refuse_handler(handler, "It is temporary, so no other session could call it",
					   "Create it in an ordinary schema.");
	*kind = proc->prokind == PROKIND_PROCEDURE ? UJOBS_KIND_DURABLE : UJOBS_KIND_ATOMIC;
	if (*kind == UJOBS_KIND_DURABLE)
		check_procedure(handler, tuple);
	else
		check_function(handler, proc);
	if (object_aclcheck(ProcedureRelationId, found.proc, GetUserId(), ACL_EXECUTE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV,
					   *kind == UJOBS_KIND_DURABLE ? OBJECT_PROCEDURE : OBJECT_FUNCTION, handler);
	qualified = ujobs_define_handler_quote(proc->pronamespace, NameStr(proc->proname));
	ReleaseSysCache(tuple);
	return qualified;
}

/* Stored and compared, so it must not depend on the session's quote_all_identifiers. */
char *
ujobs_define_handler_quote(Oid schema, const char *name)
{
	bool		quotes_all = quote_all_identifiers;
	char	   *quoted;

	quote_all_identifiers = false;
	quoted = quote_qualified_identifier(get_namespace_name(schema), name);
	quote_all_identifiers = quotes_all;
	return quoted;
}

/* ---- commands ---- */

static void
refuse_command(const char *reason)
{
	ereport(ERROR,
			(ujobs_errcode(INVALID_OPTION),
			 errmsg("option \"command\" has an invalid value"),
			 errdetail("\"command\" %s; it takes one SQL statement without parameters.", reason),
			 errhint("Put more than one statement into a procedure and CALL it.")));
}

/* Has the text a parameter such as $1 outside strings and comments? */
static bool
has_parameter(const char *command)
{
	core_yy_extra_type extra;
	core_yyscan_t scanner = scanner_init(command, &extra, &ScanKeywords, ScanKeywordTokens);
	core_YYSTYPE value;
	YYLTYPE		at;
	bool		found = false;

	while (!found && core_yylex(&value, &at, scanner) != 0)
		found = command[at] == '$' && command[at + 1] >= '0' && command[at + 1] <= '9';
	scanner_finish(scanner);
	return found;
}

/* The parser's position is one in the command, not one in the caller's statement. */
static void
show_command(void *command)
{
	int			position = geterrposition();

	if (position <= 0)
		return;
	errposition(0);
	internalerrposition(position);
	internalerrquery(command);
	if (geterrcode() == ERRCODE_SYNTAX_ERROR)
		errhint("Give the text of one SQL statement; more than one go into a procedure.");
}

static List *
parse_command(const char *command)
{
	ErrorContextCallback frame = {
		.previous = error_context_stack,
		.callback = show_command,
		.arg = (void *) command
	};
	List	   *statements;

	error_context_stack = &frame;
	statements = pg_parse_query(command);
	error_context_stack = frame.previous;
	return statements;
}

void
ujobs_define_handler_check_command(const char *command)
{
	List	   *statements = parse_command(command);

	if (statements == NIL)
		refuse_command("is empty");
	if (list_length(statements) > 1)
		refuse_command(psprintf("has %d statements", list_length(statements)));
	if (IsA(linitial_node(RawStmt, statements)->stmt, TransactionStmt))
		refuse_command("is a transaction control statement");
	if (ujobs_command_copies_to_client(linitial_node(RawStmt, statements)->stmt))
		refuse_command("copies to or from a client, which a job does not have");
	if (has_parameter(command))
		refuse_command("has a parameter");
}

/* ---- owners ---- */

void
ujobs_define_handler_check_login(Oid owner, UjobsKind kind)
{
	HeapTuple	tuple;
	bool		can_login;

	if (!UJOBS_COMPAT_OWNER_NEEDS_LOGIN || kind == UJOBS_KIND_EXTERNAL)
		return;
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(owner));
	can_login = HeapTupleIsValid(tuple) && ((Form_pg_authid) GETSTRUCT(tuple))->rolcanlogin;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (!can_login)
	{
		const char *name = GetUserNameFromId(owner, false);

		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("role \"%s\" cannot own a job: it cannot log in", name),
				 errdetail("On servers before 17 a background process can run only as a role with LOGIN."),
				 errhint("Run ALTER ROLE %s LOGIN; a password is not needed.", quote_identifier(name))));
	}
}
