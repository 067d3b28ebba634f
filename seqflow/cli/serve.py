"""`seqflow serve JOB`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqflow.cli import job_options
from seqflow.cli.exit_codes import Stopped
from seqflow.cli.printing import say
from seqflow.cli.progress_line import progress_line
from seqflow.progress import Stage, stage

if TYPE_CHECKING:
    from seqflow.job import Job
    from seqflow.serving import BatchServer

SECONDS_BETWEEN_LINES = 60.0


def serve(
    job: job_options.JobPath,
    port: Annotated[
        int | None, typer.Option(help="Port to listen at; 0: one that the system chooses.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that clients must send.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="File of the certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="File of its key (PEM).")] = None,
    memory: Annotated[
        str | None, typer.Option(help='Most bytes of batches that are kept, such as "2 GiB".')
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes, each with a port of its own.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let other machines in without token and TLS.")
    ] = False,
    input: job_options.JobInput = None,
    set_: job_options.JobSettings = None,
) -> None:
    """Serve the batches of a job to trainers: sf.served.

    Any number of servers of one job share the work, and any of them may end at any time. One line of JSON is printed
    when the server is ready, and one each minute. At SIGTERM it ends after the current batches, and clients go on
    with the other servers.
    """
    given = {
        "port": port, "host": host, "token_file": token_file, "tls_cert": tls_cert, "tls_key": tls_key,
        "memory": memory, "processes": processes,
    }  # fmt: skip
    overrides = job_options.overrides_of(set_, input)
    overrides |= {
        f"serve.{key}": str(value) if isinstance(value, Path) else value
        for key, value in given.items()
        if value is not None
    }
    description = job_options.read_job(job, overrides)
    others = [_begin(description, number) for number in range(1, description.serve.processes)]
    try:
        server = _server(description, insecure=insecure)
        print(json.dumps(_ready(str(job), server)), flush=True)
        for one in others:
            threading.Thread(target=_pass_on, args=(one,), daemon=True).start()
        _watch(server)
    except Stopped as stopped:
        for one in others:
            one.terminate()
        if not server.close():
            os._exit(0)  # a client that has stopped reading holds a thread
        if stopped.number != signal.SIGTERM:
            raise
    finally:
        for one in others:
            one.terminate()
            one.wait()


def _server(job: Job, *, insecure: bool) -> BatchServer:
    from seqflow.errors import JobError
    from seqflow.job.opening import open_batches, read_token
    from seqflow.serving import serve as begin

    settings = job.serve
    token = read_token("serve.token_file", settings.token_file)
    if job.source.served is not None:
        raise JobError(
            "source.served: the batches are made by servers already, expected a job that reads rows"
        )
    with progress_line():
        loader: Any = open_batches(job)
        return begin(
            loader, host=settings.host, port=settings.port, token=token, tls_cert=settings.tls_cert,
            tls_key=settings.tls_key, memory=settings.memory, insecure=insecure,
        )  # fmt: skip


def _begin(job: Job, number: int) -> subprocess.Popen[str]:
    """Begin another process with the arguments of this one, at a port of its own."""
    port = job.serve.port + number if job.serve.port else 0
    command = [sys.executable, "-m", "seqflow", *sys.argv[1:], "--port", str(port), "--processes", "1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _pass_on(process: subprocess.Popen[str]) -> None:
    """Print the lines of another process."""
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)


def _ready(job: str, server: BatchServer) -> dict[str, Any]:
    return {"event": "ready", "job": job, "url": server.url, "port": server.port, "identity": server.identity}


def _watch(server: BatchServer) -> None:
    """Print the counts of a server each minute, and show them on a terminal, until a signal comes."""
    waiting = threading.Event()
    with progress_line(), stage(Stage("batches", name="serving")) as shown:
        shown.note = lambda: f"{server.counts()['streams']} streams"
        since = 0.0
        while not waiting.wait(0.5):
            since += 0.5
            counts = server.counts()
            shown.done = counts["sent"]
            if since >= SECONDS_BETWEEN_LINES:
                say(json.dumps({"event": "progress", "port": server.port, **counts}))
                since = 0.0
