"""Installs pgmq from the SQL that its Python client carries, and creates the queue."""

import os

import psycopg
from pgmq import PGMQueue
from pgmq.install import install_pgmq_from_sql

dsn = os.environ["DATABASE_URL"]
with psycopg.connect(dsn) as connection:
    install_pgmq_from_sql(conn=connection)
queue = PGMQueue(conn_string=dsn, init_extension=False)
queue.create_queue("jobs")
queue.close()
