// graphile.mjs: graphile-worker.
//
// Configurations of `drain`: best is what its documentation offers for
// throughput, a local queue (500 jobs fetched at once) and completions sent
// together; local is the local queue alone; plain has its defaults.  All run
// 24 jobs at a time.  For latency the defaults are the best it can: a fetch
// for each notification, no local queue in between.

import { Logger, WorkerPreset, run as runWorker, runMigrations } from 'graphile-worker';
import { concurrency, count, pool, run } from './runner.mjs';

const logger = new Logger(() => () => {});
const configs = {
	best: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
	local: { localQueue: { size: 500 } },
	plain: {},
	latency: {},
};

const many = (task, jobs) => `select count(*) from graphile_worker.add_jobs(array(
	select row('${task}', bench.input(first + n)::json, null, null, null, null, null, null)::graphile_worker.job_spec
	  from bench.first_number(${jobs}) first, generate_series(1, ${jobs}) n))`;

const start = (taskList, config) => runWorker({
	preset: { extends: [WorkerPreset], worker: { concurrentJobs: concurrency, logger, ...configs[config] } },
	pgPool: pool,
	taskList,
	parsedCronItems: [],
	noHandleSignals: true,
});

run({
	setup: () => runMigrations({ pgPool: pool, logger }),

	reset: () => pool.query('truncate graphile_worker._private_jobs'),

	sql: (task) => `select graphile_worker.add_job('${task}', json_build_object('userId', $1::bigint))`,

	bulk: (task) => many(task, '$1::int'),

	enqueue: (jobs, task) => pool.query(many(task, jobs)),

	start: (task, handle, config) => start({ [task]: handle }, config),

	// All kinds of jobs in one worker, as one would have it.
	startAll: (handlers) => start(handlers, 'best'),

	unfinished: () => count('select count(*) from graphile_worker._private_jobs'),
});
