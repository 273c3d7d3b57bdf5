// absurd.mjs: absurd, by its SDK.
//
// Its SQL is no part of the npm package: absurd.sql beside this file is a copy
// of the one that UJOBS_BENCH_ABSURD_SQL names.  24 tasks at a time, claimed
// together; an empty queue is polled every 20 ms.

import { readFileSync } from 'node:fs';
import { Absurd } from 'absurd-sdk';
import { concurrency, count, pool, run } from './runner.mjs';

const absurd = new Absurd({ db: pool, queueName: 'bench' });
const steps = ['one', 'two', 'three'];

run({
	async setup()
	{
		await pool.query(readFileSync(new URL('absurd.sql', import.meta.url), 'utf8'));
		await absurd.createQueue('bench');
	},

	async reset()
	{
		await absurd.dropQueue('bench');
		await absurd.createQueue('bench');
	},

	sql: (task) => `select absurd.spawn_task('bench', '${task}', jsonb_build_object('userId', $1::bigint), '{}'::jsonb)`,

	enqueue: (jobs, task) => pool.query(
		`select count(*)
		   from bench.first_number($1::int) first, generate_series(1, $1::int) n,
		        absurd.spawn_task('bench', $2::text, bench.input(first + n), '{}'::jsonb)`, [jobs, task]),

	start(task, handle)
	{
		absurd.registerTask({ name: task }, async (payload, context) => {
			await handle(payload);
			if (task === 'steps')
				for (const step of steps)
					await context.step(step, async () => 1);
		});
		return absurd.startWorker({ concurrency, batchSize: concurrency, pollInterval: 0.02 });
	},

	unfinished: () => count(`select count(*) from absurd.t_bench where state <> 'completed'`),
});
