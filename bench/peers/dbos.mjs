// dbos.mjs: DBOS, for durable workflows alone.
//
// Workflows wait in a queue, which is looked at every 20 ms (its default is a
// second); 24 run at a time.  They are enqueued by its client, one by one, many
// at once: it has no other way.

import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk';
import { concurrency, connection, count, pool, run } from './runner.mjs';

const systemDatabaseUrl = `postgresql://postgres@localhost/bench?host=${encodeURIComponent(connection.host)}`;
const silent = { debug() {}, info() {}, warn() {}, error: console.error };
const steps = ['one', 'two', 'three'];

DBOS.setConfig({ name: 'bench', systemDatabaseUrl, systemDatabasePoolSize: concurrency, logger: silent });

run({
	setup: () => DBOS.migrate(systemDatabaseUrl),

	reset: () => pool.query('truncate dbos.workflow_status, dbos.operation_outputs cascade'),

	sql()
	{
		throw new Error('DBOS enqueues by its client');
	},

	async enqueue(jobs, task)
	{
		const client = await DBOSClient.create({ systemDatabaseUrl, systemDatabasePoolSize: concurrency });
		const { rows } = await pool.query('select bench.first_number($1::int) as first', [jobs]);

		for (let done = 0; done < jobs; done += 100)
			await Promise.all(Array.from({ length: Math.min(100, jobs - done) }, (_, i) => client.enqueue(
				{ queueName: 'bench', workflowName: task }, { userId: 10_000_001 + rows[0].first + done + i })));
		await client.destroy();
	},

	async start(task, handle)
	{
		DBOS.registerWorkflow(async (payload) => {
			await handle(payload);
			if (task === 'steps')
				for (const step of steps)
					await DBOS.runStep(async () => 1, { name: step });
		}, { name: task });
		await DBOS.launch();
		await DBOS.registerQueue('bench', { workerConcurrency: concurrency, minPollingIntervalMs: 20 });
	},

	unfinished: () => count(`select count(*) from dbos.workflow_status where status <> 'SUCCESS'`),
});
