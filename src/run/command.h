/*
 * command.h: statements that run inside another one: a step's command, and in
 * drain the call of a handler.
 *
 * The one part of run/ that speaks SPI.
 */
#ifndef UJOBS_RUN_COMMAND_H
#define UJOBS_RUN_COMMAND_H

#include "postgres.h"

#include "fmgr.h"
#include "nodes/params.h"
#include "tcop/dest.h"
#include "utils/jsonb.h"

#include "core/noreturn.h"

typedef enum UjobsResultColumn
{
	UJOBS_RESULT_FIRST_COLUMN,	/* of any type, through to_jsonb */
	UJOBS_RESULT_LAST_COLUMN	/* if it is jsonb: what a procedure gives back */
} UjobsResultColumn;

/* Keeps one column of the first row. */
typedef struct UjobsCommandResult
{
	DestReceiver pub;
	UjobsResultColumn column;
	MemoryContext into;
	bool		seen;
	Jsonb	   *value;			/* NULL: no row, or NULL */
} UjobsCommandResult;

/* In the current context; the value will be in `into`. */
extern UjobsCommandResult *ujobs_command_result(UjobsResultColumn column, MemoryContext into);

/* $1; NULL when there is no input. */
extern ParamListInfo ujobs_command_params(Jsonb *input);

/* Makes to_jsonb callable for one type. */
extern void ujobs_command_prepare_jsonb(FmgrInfo *to_jsonb, Oid type);

/*
 * COPY to or from the client: a worker has none, and would write to the
 * server's log or read its standard input.
 */
extern bool ujobs_command_copies_to_client(const Node *statement);
pg_noreturn extern void ujobs_command_refuse_copy(void);

/* A handler's text inside a client's transaction. */
extern Jsonb *ujobs_command_nested(const char *text, Jsonb *input, MemoryContext into);

/*
 * A step's command.  Open, run, perhaps commit, close; a commit ends the
 * transaction and begins the next one.  Commit is only allowed in a section
 * that was opened by a procedure called outside any atomic context.
 */
extern void ujobs_command_open(bool may_commit);
extern Jsonb *ujobs_command_run(const char *command, Jsonb *args, MemoryContext into);
extern void ujobs_command_commit(void);
extern void ujobs_command_close(void);

#endif							/* UJOBS_RUN_COMMAND_H */
