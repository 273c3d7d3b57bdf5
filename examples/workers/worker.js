#!/usr/bin/env node
// A worker for external jobs, with node-postgres: worker.js QUEUE...
//
// It connects as libpq's environment says (PGHOST, PGDATABASE, ...).  See README.md.
'use strict';
const os = require('os');
const { Client } = require('pg');

const lease = Number(process.env.LEASE_SECONDS || 30);
const name = `node ${os.hostname()}:${process.pid}`;
const queues = process.argv.length > 2 ? process.argv.slice(2) : ['default'];
let stopping = false;

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

// The work itself; what is done in a step is not done again by a later attempt.
async function work(job, step) {
  // run_id is the same in every attempt: the payment service can recognise a repeated call by it.
  const { receipt } = await step('charge', async () => ({ receipt: `${job.input.order}-${job.run_id}` }));
  await pause(job.input.seconds || 0);
  return { receipt, worker: 'node' };
}

async function oneJob(db, job) {
  const call = async (name, types, ...args) =>
    (await db.query(`select ujobs.${name}($1, $2${types}) as answer`, [job.id, job.lease, ...args])).rows[0].answer;
  const step = async (name, action) => {
    let done = await call('step_get', ', $3', name);
    if (done === null) {
      done = await action();
      await call('step_put', ', $3, $4', name, JSON.stringify(done));
    }
    return done;
  };
  const heart = setInterval(() => call('heartbeat', ', make_interval(secs => $3)', lease).catch(console.error),
    1000 * lease / 3);

  try {
    await call('ack', ', $3', JSON.stringify(await work(job, step)));
  } catch (error) {
    // UJ019: the job was cancelled, or the lease ran out.  It is nobody's business here any more.
    console.error(`${name}: job ${job.id}: ${error.code || ''} ${error.message}`);
    if (error.code !== 'UJ019') await call('nack', ', $3', error.message);
  } finally {
    clearInterval(heart);
  }
}

async function main() {
  const db = new Client();

  process.on('SIGTERM', () => { stopping = true; });
  process.on('SIGINT', () => { stopping = true; });
  await db.connect();
  while (!stopping) {
    // A short wait, so that a SIGTERM is noticed soon; the job at hand is finished first.
    const { rows } = await db.query(
      "select * from ujobs.claim($1, $2, 1, make_interval(secs => $3), '2 seconds')", [name, queues, lease]);
    for (const job of rows) await oneJob(db, job);
  }
  await db.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
