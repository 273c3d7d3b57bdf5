// runner.mjs: what the runners of all peers have in common: the commands, the
// work of a job, the clocks, and the proof that every job was done.
//
//     node PEER.mjs setup                       its schema, its queues
//     node PEER.mjs reset                       no jobs, as after setup
//     node PEER.mjs sql TASK                    the statement that enqueues one job; $1 is its number
//     node PEER.mjs bulk TASK                   the statement that enqueues many; $1 is how many
//     node PEER.mjs enqueue JOBS TASK           many at once, by the peer's own way for that
//     node PEER.mjs drain JOBS TASK CONFIG      prints jobs a second, first start to last completion, and its
//                                               seconds of processor time meanwhile
//     node PEER.mjs part JOBS TASK CONFIG       so many of more: prints jobs a second until the last handler returned
//     node PEER.mjs load FILE TASK...           works until bench.sent has a row and no job is left, then writes a line for each job:
//                                               task, number, when it was sent, when it ended
//     node PEER.mjs latency JOBS PER_SECOND     prints p50 p95 p99 in ms; 0 per second: idle between jobs
//
// A peer is an object with the functions setup, reset, sql, bulk, enqueue, start,
// startAll and unfinished; start(task, handle, config) starts its workers, each of which
// calls handle(payload) for a job.
//
// BENCH_BACKLOG says that there are jobs of another kind, which latency leaves alone.
// BENCH_WAITS names a file to which latency adds each of its waits.
//
// An exit status other than zero says that the figure is not there: a job was
// lost, failed, or ran twice.

import { appendFileSync, writeFileSync } from 'node:fs';
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';

export const connection = { host: process.env.PGHOST, user: 'postgres', database: 'bench' };
export const concurrency = 24;
export const pool = new pg.Pool({ ...connection, max: concurrency + 2 });
pool.on('error', fail);
pool.on('connect', (client) => client.on('error', fail));

function fail(error)
{
	console.error(error);
	process.exit(1);
}

const patience = Number(process.env.BENCH_PATIENCE ?? 600_000);    // ms without an end until the run is given up

const failed = new Set();

// The work of a job: nothing, one row of the table that all sides update, or success at the second attempt.
const work = {
	noop: () => undefined,
	steps: () => undefined,
	later: () => undefined,
	retry: ({ userId }) => {
		if (failed.has(userId))
			return;
		failed.add(userId);
		throw new Error('not at the first attempt');
	},
	account: ({ userId }) => pool.query({
		name: 'account',
		text: 'update bench.account set balance = balance + 1 where id = $1',
		values: [1 + userId % 1000],
	}),
};

// Wall clock in ms, finer than Date.now(); the server reads the same clock of the same machine.
const now = () => performance.timeOrigin + performance.now();

async function until(what, happened)
{
	const giveUp = now() + patience;

	while (!await happened()) {
		if (now() > giveUp)
			throw new Error(`${what} did not happen`);
		await sleep(2);
	}
}

const finished = (peer) => async () => await peer.unfinished() === 0;

// One connection each way is open before the clock starts.
async function warm()
{
	const clients = await Promise.all(Array.from({ length: concurrency }, () => pool.connect()));

	clients.forEach((client) => client.release());
}

async function drain(peer, jobs, task, config)
{
	let calls = 0;
	let done = 0;
	let first;

	await warm();
	if (await peer.unfinished() !== jobs)
		throw new Error(`there are ${await peer.unfinished()} jobs instead of ${jobs}`);
	const idle = process.cpuUsage();
	await peer.start(task, async (payload) => {
		first ??= now();
		calls++;
		await work[task](payload);
		done++;
	}, config);
	await until(`the start of ${jobs} jobs`, () => done >= jobs);
	await until('the completion of the last job', finished(peer));
	const seconds = (now() - first) / 1000;
	if (calls !== jobs)
		throw new Error(`${jobs} jobs, but ${calls} calls of the handler`);
	const { user, system } = process.cpuUsage(idle);
	console.log(Math.round(jobs / seconds), ((user + system) / 1e6).toFixed(3));
}

// The jobs that are claimed then stay as they are: the process ends, and the caller empties the queue.
async function part(peer, jobs, task, config)
{
	let done = 0;
	let first;
	let last;

	await warm();
	await peer.start(task, async (payload) => {
		first ??= now();
		await work[task](payload);
		if (++done === jobs)
			last = now();
	}, config);
	await until(`the end of ${jobs} jobs`, () => last);
	console.log(Math.round(jobs / (last - first) * 1000));
}

// The value below which this part of the sorted values lies, as percentile_disc says it.
const percentile = (sorted, part) => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];

async function latency(peer, jobs, perSecond)
{
	const started = new Map();

	await warm();
	await peer.start('latency', async ({ userId }) => {
		if (started.has(userId))
			throw new Error(`job ${userId} ran twice`);
		started.set(userId, now());
	}, 'latency');
	await sleep(1000);                  // its listeners listen
	await pool.query('call bench.send($1, $2, $3)', [await peer.sql('latency'), jobs, perSecond]);
	await until(`the start of ${jobs} jobs`, () => started.size >= jobs);
	if (!process.env.BENCH_BACKLOG)
		await until('the completion of the last job', finished(peer));
	const { rows } = await pool.query('select n::text, extract(epoch from at)::float8 * 1000 as at from bench.sent');
	const waits = rows.map(({ n, at }) => started.get(Number(n)) - at).sort((a, b) => a - b);
	if (rows.length !== jobs || waits.some(Number.isNaN))
		throw new Error(`${jobs} jobs, ${rows.length} sent, ${started.size} started`);
	if (process.env.BENCH_WAITS)
		appendFileSync(process.env.BENCH_WAITS, waits.map((wait) => `${wait.toFixed(4)}\n`).join(''));
	console.log([0.5, 0.95, 0.99].map((part) => percentile(waits, part).toFixed(3)).join(' '));
}

async function load(peer, file, tasks)
{
	const lines = [];
	const handlers = {};

	for (const task of tasks)
		handlers[task] = async (payload) => {
			await work[task](payload);
			lines.push(`${task}\t${payload.userId}\t${payload.at}\t${now() / 1000}\n`);
		};
	await warm();
	await peer.startAll(handlers);
	console.log('ready');
	await until('the end of the load', async () => {
		await sleep(200);
		return await count('select count(*) from bench.sent') > 0 && await peer.unfinished() === 0;
	});
	writeFileSync(file, lines.join(''));
}

const commands = {
	setup: (peer) => peer.setup(),
	reset: (peer) => peer.reset(),
	sql: async (peer, task) => console.log(await peer.sql(task)),
	bulk: async (peer, task) => console.log(await peer.bulk(task)),
	enqueue: (peer, jobs, task) => peer.enqueue(Number(jobs), task),
	drain: (peer, jobs, task, config) => drain(peer, Number(jobs), task, config),
	part: (peer, jobs, task, config) => part(peer, Number(jobs), task, config),
	load: (peer, file, ...tasks) => load(peer, file, tasks),
	latency: (peer, jobs, perSecond) => latency(peer, Number(jobs), Number(perSecond)),
};

export async function run(peer)
{
	const [command, ...rest] = process.argv.slice(2);

	if (!(command in commands)) {
		console.error(`usage: ${process.argv[1]} ${Object.keys(commands).join('|')} ...`);
		process.exit(2);
	}
	try {
		await commands[command](peer, ...rest);
		process.exit(0);                // workers and pools would keep the process
	} catch (error) {
		fail(error);
	}
}

// A number that SQL counted.
export async function count(sql, values)
{
	const { rows } = await pool.query(sql, values);

	return Number(rows[0].count);
}
