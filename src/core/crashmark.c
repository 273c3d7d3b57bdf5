/*
 * crashmark.c: the mapped file $PGDATA/pg_stat_tmp/ujobs.running.
 *
 * pg_stat_tmp is left out of base backups, so a copy of the cluster starts
 * without crashed jobs.  Written by executors (their own entry) and by
 * dispatchers (crashed jobs of their own database); recovered by the process that makes
 * the shared memory, under AddinShmemInitLock.
 *
 * A new postmaster finds entries after an immediate stop or a power cut, which
 * no job may have caused: such a crashed job is never taken for the sure cause.
 * It runs alone once all the same, because a server with restart_after_crash
 * off meets its own crashes in this way.
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#include "core/crashmark.h"
#include "core/area.h"

#define MARK_FILE "pg_stat_tmp/ujobs.running"
#define MARK_MAGIC 0x756a6f32

typedef struct Running
{
	Oid			database;
	int64		job_id;
} Running;

typedef struct Mark
{
	uint32		magic;
	int32		postmaster_pid; /* with its start time: which postmaster wrote this */
	int64		postmaster_start;
	Running		running[UJOBS_MAX_SLOTS];
	UjobsCrashedJob crashed[UJOBS_MAX_CRASHED_JOBS];
} Mark;

static Mark *mark = NULL;
static bool unavailable = false;
static volatile sig_atomic_t lost = false;

/* ---- the file ---- */

static void
report_without(const char *what)
{
	ereport(LOG,
			(errcode_for_file_access(), errmsg("could not %s \"%s\": %m", what, MARK_FILE),
			 errdetail("The engine goes on; a job that crashes the server will not be recognized.")));
}

/* What the last postmaster left there; zeros if it is not there, or not ours. */
static void
file_read(int fd, Mark *m)
{
	ssize_t		n = pg_pread(fd, m, sizeof(*m), 0);

	if (n != sizeof(*m) || m->magic != MARK_MAGIC)
	{
		memset(m, 0, sizeof(*m));
		m->magic = MARK_MAGIC;
	}
}

/* All of it, so that every page has its place on disk before it is mapped. */
static bool
file_write(int fd, const Mark *m)
{
	ssize_t		n;

	errno = 0;
	n = pg_pwrite(fd, m, sizeof(*m), 0);
	if (n >= 0 && n != sizeof(*m) && errno == 0)
		errno = ENOSPC;
	return n == sizeof(*m);
}

/*
 * A page of the file cannot be had any more: it was cut off, or its disk is
 * full after all.  Memory of this process alone takes its place.
 */
static void
on_bus_error(int signal_number, siginfo_t *info, void *context)
{
	char	   *at = info->si_addr;

	if (mark != NULL && at >= (char *) mark && at < (char *) mark + sizeof(Mark) &&
		mmap(mark, sizeof(Mark), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			 -1, 0) != MAP_FAILED)
		lost = true;
	else
		signal(signal_number, SIG_DFL); /* it comes again, as the crash that it is */
}

static void
catch_bus_error(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigemptyset(&action.sa_mask);
	(void) sigaction(SIGBUS, &action, NULL);
}

/* NULL: the process that made the shared memory could not write it, and said so. */
static Mark *
file_map(void)
{
	int			fd = BasicOpenFile(MARK_FILE, O_RDWR | PG_BINARY);
	struct stat facts;
	void	   *address = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &facts) == 0 && facts.st_size >= (off_t) sizeof(Mark))
		address = mmap(NULL, sizeof(Mark), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return address == MAP_FAILED ? NULL : address;
}

static Mark *
mark_map(void)
{
	if (mark == NULL && !unavailable)
	{
		catch_bus_error();
		mark = file_map();
		unavailable = mark == NULL;
	}
	return mark;
}

/* Once in a process. */
static void
report_lost(void)
{
	static bool said = false;

	if (!lost || said)
		return;
	said = true;
	ereport(LOG,
			(errmsg("\"%s\" was changed, or its disk is full", MARK_FILE),
			 errdetail("The engine goes on; until the next restart a job that crashes the server will not be recognized.")));
}

/* ---- crashed jobs ---- */

static UjobsCrashedJob *
crashed_find(Mark *m, Oid database, int64 job_id)
{
	for (int i = 0; m != NULL && i < UJOBS_MAX_CRASHED_JOBS; i++)
	{
		if (m->crashed[i].job_id == job_id && m->crashed[i].database == database)
			return &m->crashed[i];
	}
	return NULL;
}

static void
crashed_add(Mark *m, const Running *r, bool alone)
{
	UjobsCrashedJob *s = crashed_find(m, r->database, r->job_id);

	for (int i = 0; s == NULL && i < UJOBS_MAX_CRASHED_JOBS; i++)
	{
		if (m->crashed[i].job_id != 0)
			continue;
		s = &m->crashed[i];
		memset(s, 0, sizeof(*s));
		s->database = r->database;
		s->job_id = r->job_id;
	}
	if (s == NULL)
		return;
	s->crashes++;
	s->alone = alone;
	s->was_trusted |= s->trusted;
	s->trusted = false;
}

/*
 * Who was running?  When one was on probation and all others trusted, or when it
 * was the only one, that one did it and the others are out of it.
 */
static void
find_crashed(Mark *m, bool same_postmaster)
{
	int			running = 0;
	int			on_probation = 0;
	int			trusted = 0;
	bool		sure;

	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		const Running *r = &m->running[i];
		const UjobsCrashedJob *s = r->job_id == 0 ? NULL : crashed_find(m, r->database, r->job_id);

		running += r->job_id != 0;
		on_probation += s != NULL && s->on_probation;
		trusted += s != NULL && s->trusted;
	}
	sure = same_postmaster &&
		   (running == 1 || (on_probation == 1 && on_probation + trusted == running));
	for (int i = 0; i < UJOBS_MAX_SLOTS; i++)
	{
		Running    *r = &m->running[i];
		const UjobsCrashedJob *s = r->job_id == 0 ? NULL : crashed_find(m, r->database, r->job_id);

		if (r->job_id != 0 && (!sure || running == 1 || (s != NULL && s->on_probation)))
			crashed_add(m, r, sure);
		r->job_id = 0;
	}
	for (int i = 0; i < UJOBS_MAX_CRASHED_JOBS; i++)
		m->crashed[i].on_probation = false;
}

static void
recover(Mark *m)
{
	bool		same_postmaster;

	/* A postmaster that only just starts does not know its start time yet. */
	same_postmaster = PgStartTime != 0 && m->postmaster_pid == PostmasterPid &&
		(m->postmaster_start == 0 || m->postmaster_start == (int64) PgStartTime);
	m->postmaster_pid = PostmasterPid;
	m->postmaster_start = (int64) PgStartTime;
	find_crashed(m, same_postmaster);
}

/* By read and write: this may be the postmaster, which no page that is missing may end. */
void
ujobs_crashmark_recover(void)
{
	Mark		m;
	int			fd = BasicOpenFile(MARK_FILE, O_RDWR | O_CREAT | PG_BINARY);

	if (fd < 0)
	{
		report_without("open");
		return;
	}
	file_read(fd, &m);
	recover(&m);
	if (!file_write(fd, &m))
	{
		report_without("write");
		unlink(MARK_FILE);		/* then no process maps it */
	}
	close(fd);
}

void
ujobs_crashmark_attach(void)
{
	(void) mark_map();
	report_lost();
}

void
ujobs_crashmark_set(int slot, Oid database, int64 job_id)
{
	Mark	   *m = mark_map();

	Assert(slot >= 0 && slot < UJOBS_MAX_SLOTS);
	if (m == NULL)
		return;
	m->running[slot].database = database;
	m->running[slot].job_id = job_id;
}

int
ujobs_crashmark_jobs(Oid database, UjobsCrashedJob *out, int max)
{
	Mark	   *m = mark_map();
	int			n = 0;

	report_lost();

	for (int i = 0; m != NULL && i < UJOBS_MAX_CRASHED_JOBS && n < max; i++)
	{
		if (m->crashed[i].job_id != 0 && m->crashed[i].database == database)
			out[n++] = m->crashed[i];
	}
	return n;
}

void
ujobs_crashmark_clear(Oid database, int64 job_id)
{
	UjobsCrashedJob *s = crashed_find(mark_map(), database, job_id);

	if (s != NULL)
		s->job_id = 0;
}

void
ujobs_crashmark_try(Oid database, int64 job_id)
{
	UjobsCrashedJob *s = crashed_find(mark_map(), database, job_id);

	if (s != NULL)
		s->on_probation = true;
}

void
ujobs_crashmark_trust(Oid database, int64 job_id)
{
	UjobsCrashedJob *s = crashed_find(mark_map(), database, job_id);

	if (s == NULL)
		return;
	s->on_probation = false;
	s->trusted = true;
}

void
ujobs_crashmark_keep(Oid database, int64 job_id)
{
	UjobsCrashedJob *s = crashed_find(mark_map(), database, job_id);

	if (s == NULL)
		return;
	s->crashes = 1;
	s->alone = s->on_probation = s->trusted = s->was_trusted = false;
}

void
ujobs_crashmark_forget(Oid database)
{
	Mark	   *m = mark_map();

	for (int i = 0; m != NULL && i < UJOBS_MAX_CRASHED_JOBS; i++)
	{
		if (m->crashed[i].database == database)
			m->crashed[i].job_id = 0;
	}
}
