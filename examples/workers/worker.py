#!/usr/bin/env python3
"""A worker for external jobs, with psycopg 3: worker.py QUEUE...

It connects as libpq's environment says (PGHOST, PGDATABASE, ...).  See README.md.
"""
import os
import signal
import socket
import sys
import threading
import time

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

LEASE = int(os.environ.get("LEASE_SECONDS", "30"))
NAME = f"python {socket.gethostname()}:{os.getpid()}"
stopping = threading.Event()


def work(job, step):
    """The work itself; what is done in a step is not done again by a later attempt."""
    order = job.input["order"]
    # run_id is the same in every attempt: the payment service can recognise a repeated call by it.
    receipt = step("charge", lambda: {"receipt": f"{order}-{job.run_id}"})
    time.sleep(job.input.get("seconds", 0))
    return {"receipt": receipt["receipt"], "worker": "python"}


def one_job(db, job):
    mine = (job.id, job.lease)
    over = threading.Event()

    def heartbeats():
        while not over.wait(LEASE / 3):
            db.execute("select ujobs.heartbeat(%s, %s, make_interval(secs => %s))", (*mine, LEASE))

    def step(name, action):
        done = db.execute("select ujobs.step_get(%s, %s, %s)", (*mine, name)).fetchone()[0]
        if done is None:
            done = action()
            db.execute("select ujobs.step_put(%s, %s, %s, %s)", (*mine, name, Jsonb(done)))
        return done

    heart = threading.Thread(target=heartbeats)
    heart.start()
    try:
        result = work(job, step)
    except psycopg.errors.Error as error:
        # UJ019: the job was cancelled, or the lease ran out.  It is nobody's business here any more.
        print(f"{NAME}: job {job.id}: {error.sqlstate} {error}", file=sys.stderr)
        if error.sqlstate != "UJ019":
            raise
    except Exception as error:
        db.execute("select ujobs.nack(%s, %s, %s)", (*mine, str(error)))
    else:
        db.execute("select ujobs.ack(%s, %s, %s)", (*mine, Jsonb(result)))
    finally:
        over.set()
        heart.join()


def main(queues):
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    # No prepared statements: they would not survive a transaction pooler.
    with psycopg.connect(autocommit=True, prepare_threshold=None, row_factory=namedtuple_row) as db:
        while not stopping.is_set():
            # A short wait, so that a SIGTERM is noticed soon; the job at hand is finished first.
            for job in db.execute("select * from ujobs.claim(%s, %s, 1, make_interval(secs => %s), '2 seconds')",
                                  (NAME, queues, LEASE)).fetchall():
                one_job(db, job)


main(sys.argv[1:] or ["default"])
