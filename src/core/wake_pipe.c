/*
 * wake_pipe.c: a pipe beside the latch.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"

#include "core/wake_pipe.h"
#include "core/compat.h"

static bool
prepare_end(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

void
ujobs_wake_pipe_open(UjobsWakePipe *wake_pipe)
{
	int			ends[2];

	if (pipe(ends) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not create a pipe: %m")));
	wake_pipe->read_end = ends[0];
	wake_pipe->write_end = ends[1];
	ReserveExternalFD();
	ReserveExternalFD();
	if (prepare_end(ends[0]) && prepare_end(ends[1]))
		return;
	ujobs_wake_pipe_close(wake_pipe);
	ereport(ERROR, (errcode_for_file_access(), errmsg("could not prepare a pipe: %m")));
}

void
ujobs_wake_pipe_close(UjobsWakePipe *wake_pipe)
{
	int			save_errno = errno;

	(void) close(wake_pipe->read_end);
	(void) close(wake_pipe->write_end);
	ReleaseExternalFD();
	ReleaseExternalFD();
	errno = save_errno;
}

/* A full pipe wakes the process anyway. */
void
ujobs_wake_pipe_write(int write_end)
{
	ssize_t		written;

	do
		written = write(write_end, "", 1);
	while (written < 0 && errno == EINTR);
}

void
ujobs_wake_pipe_wait(UjobsWakePipe *wake_pipe, long timeout_ms)
{
	static uint32 event = 0;
	int			wake = WL_LATCH_SET | WL_SOCKET_READABLE | WL_EXIT_ON_PM_DEATH;
	char		bytes[256];

	if (event == 0)
		event = UJOBS_COMPAT_WAIT_EVENT("UjobsSink");
	if (timeout_ms >= 0)
		wake |= WL_TIMEOUT;
	(void) WaitLatchOrSocket(MyLatch, wake, wake_pipe->read_end, timeout_ms, event);
	ResetLatch(MyLatch);
	while (read(wake_pipe->read_end, bytes, sizeof(bytes)) > 0)
		;
}
