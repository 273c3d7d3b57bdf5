/*
 * error.h: every error of class UJ, in one list.
 *
 * The list produces the constants for errcode(), the rows of
 * ujobs.error_codes and docs/errors.md.  A terminal error dead-letters a
 * running job at once, whatever its retry policy says.
 */
#ifndef UJOBS_CORE_ERROR_H
#define UJOBS_CORE_ERROR_H

#include "postgres.h"

#include "utils/elog.h"

/* UJOBS_ERROR(constant, number, name, terminal, meaning, fix) */
#define UJOBS_ERROR_LIST(UJOBS_ERROR) \
	UJOBS_ERROR(IDEMPOTENCY_REQUIRED, "001", "X_IDEMPOTENCY_REQUIRED", false, \
				"a job definition has no idempotency key", \
				"Give idempotency_key a template over the input, such as 'onboard:{orgId}'.") \
	UJOBS_ERROR(KEY_PATH_MISSING, "002", "X_KEY_PATH_MISSING", false, \
				"a path of the key or tenant template is absent from the input, null, an object or an array", \
				"Put a string, number or boolean at that path of the input, or change the template.") \
	UJOBS_ERROR(INVALID_OPTION, "003", "X_INVALID_OPTION", false, \
				"an option has a value that it cannot take", \
				"See DETAIL for the option and the values it takes.") \
	UJOBS_ERROR(INPUT_INVALID, "004", "X_INPUT_INVALID", false, \
				"the input does not satisfy the definition's input schema", \
				"See DETAIL for the path and the rule; correct the input.") \
	UJOBS_ERROR(DEFINITION_CONFLICT, "005", "X_DEFINITION_CONFLICT", false, \
				"the name is already defined with other options", \
				"Pass replace => true to change the definition.") \
	UJOBS_ERROR(JOB_IN_USE, "006", "X_JOB_IN_USE", false, \
				"the definition still has live jobs, or the sink is still in use", \
				"Wait for them, or pass force => true to cancel jobs; DETAIL names what uses a sink.") \
	UJOBS_ERROR(CRON_INVALID, "007", "X_CRON_INVALID", false, \
				"a cron expression cannot be understood or can never fire", \
				"See DETAIL for the field and the reason.") \
	UJOBS_ERROR(TIMEZONE_INVALID, "008", "X_TIMEZONE_INVALID", false, \
				"a time zone is not one of the server's region names", \
				"Use a name such as 'Europe/Berlin' or 'UTC'.") \
	UJOBS_ERROR(JOB_DUPLICATE, "009", "X_JOB_DUPLICATE", false, \
				"a live job already holds the key", \
				"Use on_conflict => 'dedupe' to get the live job, or wait until it ends.") \
	UJOBS_ERROR(OUTBOX_NO_TX, "010", "X_OUTBOX_NO_TX", false, \
				"ujobs.outbox_mode is required and the enqueue is not in a transaction block", \
				"Enqueue between BEGIN and COMMIT, together with the business change.") \
	UJOBS_ERROR(JOB_UNKNOWN, "011", "X_JOB_UNKNOWN", false, \
				"no job definition has that name", \
				"Define it with ujobs.define_job, or correct the name.") \
	UJOBS_ERROR(STEP_DUPLICATE, "012", "X_STEP_DUPLICATE", true, \
				"a step name occurs twice in one attempt", \
				"Give every step of the handler its own name.") \
	UJOBS_ERROR(SUSPENSION_SWALLOWED, "013", "X_SUSPENSION_SWALLOWED", true, \
				"the handler caught a suspension and went on", \
				"Do not catch query_canceled around a sleep or a wait.") \
	UJOBS_ERROR(JOB_TIMEOUT, "014", "X_JOB_TIMEOUT", false, \
				"a job, a step or a wait took longer than its timeout", \
				"Raise the timeout, or make the work shorter.") \
	UJOBS_ERROR(STEP_OUTSIDE_JOB, "015", "X_STEP_OUTSIDE_JOB", false, \
				"a function that works only inside a running job was called outside one", \
				"Call it from a job's handler.") \
	UJOBS_ERROR(STEP_NOT_DURABLE, "016", "X_STEP_NOT_DURABLE", true, \
				"a step is called where it could not be committed", \
				"Call steps at the top level of a PL/pgSQL procedure, outside EXCEPTION blocks and functions.") \
	UJOBS_ERROR(JOB_NOT_CANCELLABLE, "017", "X_JOB_NOT_CANCELLABLE", false, \
				"the job's state does not allow the operation", \
				"Look at the job with ujobs.inspect_job.") \
	UJOBS_ERROR(JOB_NOT_FOUND, "018", "X_JOB_NOT_FOUND", false, \
				"there is no such job or step, or it is past its retention", \
				"Check the id; finished jobs are kept as long as their retention says.") \
	UJOBS_ERROR(JOB_LEASE_LOST, "019", "X_JOB_LEASE_LOST", false, \
				"the lease no longer holds the job", \
				"Stop working on the job: another worker may have it.") \
	UJOBS_ERROR(JOB_FAILED, "020", "X_JOB_FAILED", true, \
				"the handler called ujobs.fail", \
				"The handler's own message says why.") \
	UJOBS_ERROR(RETRY_AFTER, "021", "X_RETRY_AFTER", false, \
				"the handler called ujobs.retry_after", \
				"The job runs again after the delay the handler asked for.") \
	UJOBS_ERROR(JOB_MAX_ATTEMPTS, "022", "X_JOB_MAX_ATTEMPTS", false, \
				"every attempt of the job failed", \
				"Mend the cause, then call ujobs.retry with the job's id.") \
	UJOBS_ERROR(ENGINE_NOT_RUNNING, "023", "X_ENGINE_NOT_RUNNING", false, \
				"no engine serves this database", \
				"Call ujobs.start_workers(), or add ujobs to shared_preload_libraries.") \
	UJOBS_ERROR(DRIVER_UNAVAILABLE, "024", "X_DRIVER_UNAVAILABLE", false, \
				"a sink's module is not installed or its server cannot be reached", \
				"See DETAIL for the reason.") \
	UJOBS_ERROR(HANDLER_MISSING, "025", "X_HANDLER_MISSING", false, \
				"the handler or the owner of the definition does not exist", \
				"Create it again, or give the definition another with replace or set_job_owner; waiting jobs go on by themselves.") \
	UJOBS_ERROR(STEP_UNBALANCED, "026", "X_STEP_UNBALANCED", true, \
				"step_begin and step_end do not pair up", \
				"Close each step_begin with step_end before any other step, COMMIT or the end of the handler.") \
	UJOBS_ERROR(TOO_COMPLEX, "027", "X_TOO_COMPLEX", false, \
				"a schema or pattern would cost too much, or its check of an input did", \
				"Write a simpler schema; ujobs.max_schema_size and ujobs.max_validation_steps are the bounds.") \
	UJOBS_ERROR(STEP_CHANGED, "029", "X_STEP_CHANGED", true, \
				"a step of that name is remembered as one of another kind, or as another wait", \
				"Give what is new a name of its own, or let the jobs that remember the old step end first.") \
	UJOBS_ERROR(MESSAGE_FORGED, "030", "X_MESSAGE_FORGED", false, \
				"a message of a broker's queue was not signed with a key of the queue", \
				"Give its producer the key (ujobs.queue_key, ujobs.set_queue_key), or let consume_queue allow unsigned messages.") \
	UJOBS_ERROR(CORRUPT_STATE, "099", "X_CORRUPT_STATE", false, \
				"a row of the store says something impossible", \
				"Run SELECT * FROM ujobs.check() and report what it shows.")

#define UJOBS_SQLSTATE(number) \
	MAKE_SQLSTATE('U', 'J', (number)[0], (number)[1], (number)[2])

#define UJOBS_ERROR_CONSTANT(constant, number, name, terminal, meaning, fix) \
	static inline int UJOBS_ERRCODE_##constant##_(void) { return UJOBS_SQLSTATE(number); }
UJOBS_ERROR_LIST(UJOBS_ERROR_CONSTANT)
#undef UJOBS_ERROR_CONSTANT

/* The packed SQLSTATE, to compare with. */
#define UJOBS_ERRCODE(constant) UJOBS_ERRCODE_##constant##_()

/*
 * In ereport, as errcode: ujobs_errcode(JOB_UNKNOWN).  The error's name
 * becomes the last word of its DETAIL, in brackets, for people and for
 * programs that get no SQLSTATE.
 */
#define ujobs_errcode(constant) ujobs_error_set(UJOBS_ERRCODE(constant))
extern int	ujobs_error_set(int sqlerrcode);

typedef struct UjobsErrorInfo
{
	const char *sqlstate;		/* five characters */
	const char *name;
	bool		terminal;
	const char *meaning;
	const char *fix;
} UjobsErrorInfo;

/* The list as an array, ended by an entry whose sqlstate is NULL. */
extern const UjobsErrorInfo *ujobs_error_list(void);

/* The entry of a packed SQLSTATE, or NULL when it is not of class UJ. */
extern const UjobsErrorInfo *ujobs_error_find(int sqlerrcode);

#endif							/* UJOBS_CORE_ERROR_H */
