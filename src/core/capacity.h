/*
 * capacity.h: background workers for an engine, when max_worker_processes is short.
 *
 * An engine needs two, its dispatcher and its scheduler, and there is no use in
 * one if no executor can be started any more: so one process of the cluster is
 * always left for executors.  More than one executor is a luxury; those give
 * way to another database's engine.
 */
#ifndef UJOBS_CORE_CAPACITY_H
#define UJOBS_CORE_CAPACITY_H

typedef enum UjobsCapacity
{
	UJOBS_CAPACITY_THERE,
	UJOBS_CAPACITY_COMING,			/* an executor was asked to leave: ask again soon */
	UJOBS_CAPACITY_NONE
} UjobsCapacity;

#define UJOBS_CAPACITY_ENGINE 2		/* what a new engine needs */

/*
 * Could so many processes be started now, with an executor left?  May be
 * called under control->lock.
 */
extern bool ujobs_capacity_is_there(int wanted);

/*
 * The same, and what is missing is asked for: executors leave after their
 * jobs, and for a moment no others come in their place.  Takes control->lock.
 */
extern UjobsCapacity ujobs_capacity_ask(int wanted);

/*
 * An executor that can be spared, or -1: of the role with the most executors; when
 * every role has one only, the one that did most, so that roles and databases
 * are served one after the other.
 */
extern int	ujobs_capacity_surplus(uint32 *generation);

#endif							/* UJOBS_CORE_CAPACITY_H */
