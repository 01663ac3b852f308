"""The sandbox's processes: one that is primed and forks, and those it forks, which evaluate.

Started by `sandbox.py` with an empty environment. Never imported by the bot itself beyond its constants.

The fork server reads commands of five bytes from its control socket: `N` with a descriptor starts an evaluator that
serves it, `K` with a process id ends that one and is answered with id and exit status. Its end is theirs.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import socket
import struct
import sys

COMMAND = struct.Struct("!cI")
STATUS = struct.Struct("!Ii")
LENGTH = struct.Struct("!I")

OUT_OF_MEMORY = "memory"
"""The answer of an evaluator that could not get enough memory; it has ended then."""


def serve(control_fd: int, memory_bytes: int) -> None:
    """The fork server's loop; returns when the control socket is closed."""
    from bot.runtime import cel_engine, jq_engine

    cel_engine.prime()
    jq_engine.run("map(.x)", [{"x": 1}], {})
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=control_fd)
    children: set[int] = set()
    while True:
        message, fds, _, _ = socket.recv_fds(control, COMMAND.size, 1)
        if len(message) < COMMAND.size:
            break
        what, pid = COMMAND.unpack(message)
        if what == b"N":
            child = os.fork()
            if not child:
                control.close()
                _evaluate(fds[0], memory_bytes)
                os._exit(0)
            children.add(child)
            os.close(fds[0])
        elif pid in children:
            children.discard(pid)
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            control.sendall(STATUS.pack(pid, os.waitstatus_to_exitcode(status)))
        else:
            control.sendall(STATUS.pack(pid, 0))
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _evaluate(fd: int, memory_bytes: int) -> None:
    """One evaluator: requests come one at a time, until the other side closes."""
    from bot.domain import values
    from bot.domain.errors import OpError
    from bot.runtime import cel_engine, jq_engine

    link = socket.socket(fileno=fd)
    for limit, value in (
        (resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0),
    ):  # fmt: skip
        resource.setrlimit(limit, (value, value))
    sys.setrecursionlimit(6000)
    link.sendall(LENGTH.pack(os.getpid()))
    while True:
        try:
            head = _exactly(link, LENGTH.size)
            if not head:
                return
            request = values.load(_exactly(link, LENGTH.unpack(head)[0]).decode("utf-8", "surrogatepass"))
            if request["kind"] == "cel":
                value = cel_engine.evaluate(request["text"], request["names"])
            else:
                value = jq_engine.run(request["text"], request["value"], request["names"])
            reply = values.dump({"value": value})
        except OpError as said:
            reply = values.dump({"error": str(said)})
        except RecursionError:
            reply = values.dump({"error": "the value nests too deep"})
        except MemoryError:
            _send(link, values.dump({OUT_OF_MEMORY: True}))
            return
        except Exception as said:
            reply = values.dump({"error": f"the evaluation broke off ({type(said).__name__})"})
        _send(link, reply)


def _send(link: socket.socket, reply: str) -> None:
    body = reply.encode("utf-8", "surrogatepass")
    link.sendall(LENGTH.pack(len(body)) + body)


def _exactly(link: socket.socket, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = link.recv(min(count, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
