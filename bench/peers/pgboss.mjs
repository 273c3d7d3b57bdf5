// pgboss.mjs: pg-boss.
//
// Its jobs are fetched and completed 1000 at a time, and the next fetch follows
// at once as long as batches are full.  For latency its queue notifies, and
// four workers listen; polling every half second, the shortest it allows, is
// what remains without that.  A queue that notifies is otherwise polled every
// half minute, so jobs that wait for an instant are in one that does not.
//
// It has no function in SQL that enqueues: the statement is the one that its
// send() runs.

import { PgBoss } from 'pg-boss';
import { insertJobs } from './node_modules/pg-boss/dist/plans.js';
import { connection, count, pool, run } from './runner.mjs';

const configs = {
	best: { batchSize: 1000, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
	latency: { batchSize: 50, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, localConcurrency: 4 },
};

// Without its own housekeeping, which would fall into some rounds and not into others.
async function started(options)
{
	const boss = new PgBoss({ ...connection, max: 10, supervise: false, schedule: false, ...options });

	boss.on('error', (error) => {
		console.error(error);
		process.exit(1);
	});
	return boss.start();
}

const notifies = (queue) => ['latency', 'load_noop', 'load_account'].includes(queue);

// The statement of its send() and insert(), with the jobs by an expression.
async function statement(task, jobs)
{
	const { rows } = await pool.query('select table_name from pgboss.queue where name = $1', [task]);

	return insertJobs('pgboss', { table: rows[0].table_name, name: task, notify: notifies(task) }).replace('$1', jobs);
}

run({
	async setup()
	{
		const boss = await started();

		await boss.createQueue('noop');
		await boss.createQueue('account');
		await boss.createQueue('latency', { notify: true });
		await boss.createQueue('load_noop', { notify: true });
		await boss.createQueue('load_account', { notify: true });
		await boss.createQueue('load_later');
		await boss.createQueue('load_retry', { retryLimit: 3, retryDelay: 1 });
	},

	reset: () => pool.query('truncate pgboss.job cascade'),

	sql: (task) => statement(task, `json_build_array(json_build_object('data', json_build_object('userId', $1::bigint)))`),

	bulk: (task) => statement(task, `(select json_agg(json_build_object('data', bench.input(n))) from generate_series(1, $1::int) n)`),

	async enqueue(jobs, task)
	{
		const boss = await started();
		const { rows } = await pool.query('select bench.first_number($1::int) as first', [jobs]);

		for (let done = 0; done < jobs; done += 10_000) {
			const many = Math.min(10_000, jobs - done);

			await boss.insert(task, Array.from({ length: many },
				(_, i) => ({ data: { userId: 10_000_001 + rows[0].first + done + i } })));
		}
	},

	async start(task, handle, config)
	{
		const boss = await started({ useListenNotify: notifies(task) });

		await boss.work(task, configs[config], (jobs) => Promise.all(jobs.map((job) => handle(job.data))));
	},

	// Under a steady load jobs of a batch are reported one by one, for some fail.
	async startAll(handlers)
	{
		const boss = await started({ useListenNotify: true });

		for (const [task, handle] of Object.entries(handlers))
			await boss.work(`load_${task}`, { ...configs.latency, perJobResults: true }, (jobs) => Promise.all(jobs.map((job) =>
				handle(job.data).then(() => ({ id: job.id, status: 'completed' }), () => ({ id: job.id, status: 'failed' })))));
	},

	unfinished: () => count(`select count(*) from pgboss.job where state <> 'completed'`),
});
