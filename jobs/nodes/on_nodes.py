"""Runs on a machine, read from standard input by its own Python (3.7 or newer, nothing installed): how the machines of one job reach each other.

    python3 - interfaces
    python3 - meet '{"rank": 0, "peers": [["10.0.0.4"], ["10.0.0.5"]], "port": 29500, "token": "…", "wait_seconds": 20, "send_seconds": 2}'

`meet` runs on all of them at once: each listens at the port that the job will use, greets every other at each of its addresses, and sends to the one after
it as fast as it can, over a port that the system chooses: NCCL and gloo use such ports too. It answers in lines of name=value.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import struct
import sys
import threading
import time
from typing import Any

STREAMS = 4
PIECE_BYTES = 1 << 20
# Others begin a little earlier or later; an address that leads nowhere costs no more than this.
CONNECT_SECONDS = 3.0
AGAIN_SECONDS = 0.2
# How long the other addresses of machines get, once each machine was reached by one.
GRACE_SECONDS = 1.0
LINE_BYTES = 200


def say(name: str, value: object) -> None:
    sys.stdout.write(f"{name}={value}\n")


def interfaces() -> None:
    for _number, name in socket.if_nameindex():
        if name != "lo":
            for address, prefix in [*_ipv4(name), *_ipv6(name)]:
                say("interface", f"{name} {address} {prefix} {_speed_mbit(name)}")


def _ipv4(name: str) -> list[tuple[str, int]]:
    import fcntl

    asked = struct.pack("256s", name.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # SIOCGIFADDR and SIOCGIFNETMASK.
            address, mask = (fcntl.ioctl(probe, act, asked)[20:24] for act in (0x8915, 0x891B))
        except OSError:
            return []
    return [(socket.inet_ntoa(address), ipaddress.ip_network(f"0.0.0.0/{socket.inet_ntoa(mask)}").prefixlen)]


def _ipv6(name: str) -> list[tuple[str, int]]:
    """Of global scope: others cannot be written without an interface of the reader."""
    try:
        with open("/proc/net/if_inet6") as table:
            rows = [line.split() for line in table]
    except OSError:
        return []
    return [
        (socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0])), int(row[2], 16))
        for row in rows
        if row[5] == name and row[3] == "00"
    ]


def _speed_mbit(name: str) -> int:
    """-1: it does not say, as virtual ones."""
    try:
        with open(f"/sys/class/net/{name}/speed") as said:
            return int(said.read())
    except (OSError, ValueError):
        return -1


def _line(connection: socket.socket) -> str:
    taken = b""
    while not taken.endswith(b"\n") and len(taken) < LINE_BYTES:
        part = connection.recv(1)
        if not part:
            break
        taken += part
    return taken.decode("utf-8", "replace").strip()


class Meeting:
    def __init__(self, order: dict[str, Any]) -> None:
        self.rank: int = order["rank"]
        self.peers: list[list[str]] = order["peers"]
        self.port: int = order["port"]
        self.token: str = order["token"]
        self.send_seconds: float = order["send_seconds"]
        self.until = time.monotonic() + order["wait_seconds"]
        self.others = [rank for rank in range(len(self.peers)) if rank != self.rank]
        self.reach: dict[tuple[int, int], str] = {}
        self.done = {rank: threading.Event() for rank in self.others}
        self.enough = threading.Event()

    def hold(self) -> None:
        family = socket.AF_INET6 if any(":" in each for peer in self.peers for each in peer) else socket.AF_INET
        try:
            listener = _listening(family, self.port)
        except OSError as error:
            say("port", error.strerror or "refused")
            return
        with listener:
            threading.Thread(target=self._serve, args=(listener, family), daemon=True).start()
            self._greet_all()
            self._send_on()
            self._say_done()
        for (rank, place), said in sorted(self.reach.items()):
            say(f"reach.{rank}.{place}", said)

    def _serve(self, listener: socket.socket, family: int) -> None:
        while True:
            try:
                connection, _peer = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection, family), daemon=True).start()

    def _answer(self, connection: socket.socket, family: int) -> None:
        with connection:
            connection.settimeout(max(1.0, self.until - time.monotonic()))
            try:
                token, rank, act = [*_line(connection).split(" "), "", ""][:3]
                if token != self.token:
                    return
                if act == "data":
                    self._receive(connection, family)
                elif act == "done":
                    self.done[int(rank)].set()
                else:
                    connection.sendall(f"{self.token} {self.rank}\n".encode())
                # Who asked closes first, so that the job finds this port free of what lingers after a close.
                connection.recv(1)
            except (OSError, ValueError, KeyError):
                return

    def _receive(self, connection: socket.socket, family: int) -> None:
        """Tells the port, and how much came over how many seconds."""
        counts = [0] * STREAMS
        with _listening(family, 0) as inlet:
            inlet.settimeout(CONNECT_SECONDS + 1)
            connection.sendall(f"{inlet.getsockname()[1]}\n".encode())
            streams = [inlet.accept()[0] for _stream in range(STREAMS)]
        began = time.monotonic()
        threads = [threading.Thread(target=_drain, args=(each, counts, n)) for n, each in enumerate(streams)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        connection.sendall(f"{sum(counts)} {time.monotonic() - began:.6f}\n".encode())

    def _greet_all(self) -> None:
        threads = [
            threading.Thread(target=self._greet, args=(rank, place, address), daemon=True)
            for rank in self.others
            for place, address in enumerate(self.peers[rank])
        ]
        for thread in threads:
            thread.start()
        while time.monotonic() < self.until and not all(self._way_to(rank) for rank in self.others):
            time.sleep(0.05)
        grace = time.monotonic() + GRACE_SECONDS
        for thread in threads:
            thread.join(max(0.0, grace - time.monotonic()))
        self.enough.set()

    def _greet(self, rank: int, place: int, address: str) -> None:
        while not self.enough.is_set():
            self.reach[rank, place] = said = self._greeted(rank, address)
            if said in {"ok", "stranger"}:
                return
            time.sleep(AGAIN_SECONDS)

    def _greeted(self, rank: int, address: str) -> str:
        try:
            with socket.create_connection((address, self.port), CONNECT_SECONDS) as connection:
                connection.sendall(f"{self.token} {self.rank} hello\n".encode())
                return "ok" if _line(connection) == f"{self.token} {rank}" else "stranger"
        except ConnectionRefusedError:
            return "refused"
        except OSError:
            # No answer, or no route: for whoever reads it, both are a closed way.
            return "timeout"

    def _way_to(self, rank: int) -> str:
        places = enumerate(self.peers[rank])
        return next((address for place, address in places if self.reach.get((rank, place)) == "ok"), "")

    def _send_on(self) -> None:
        following = (self.rank + 1) % len(self.peers)
        address = self._way_to(following)
        if not address:
            return
        try:
            with socket.create_connection((address, self.port), CONNECT_SECONDS) as connection:
                connection.settimeout(self.send_seconds + CONNECT_SECONDS * 3)
                connection.sendall(f"{self.token} {self.rank} data\n".encode())
                self._send(address, int(_line(connection)))
                sent, took = _line(connection).split(" ")
            say("sent", int(sent))
            say("took", float(took))
        except (OSError, ValueError) as error:
            say("closed", type(error).__name__)

    def _send(self, address: str, port: int) -> None:
        streams = [socket.create_connection((address, port), CONNECT_SECONDS) for _stream in range(STREAMS)]
        until = time.monotonic() + self.send_seconds
        threads = [threading.Thread(target=_pour, args=(each, until)) for each in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _say_done(self) -> None:
        """Stays until the others have said so too: they may still be sending to us."""
        for rank in self.others:
            if address := self._way_to(rank):
                try:
                    with socket.create_connection((address, self.port), CONNECT_SECONDS) as connection:
                        connection.sendall(f"{self.token} {self.rank} done\n".encode())
                except OSError:
                    continue
        for event in self.done.values():
            event.wait(max(0.0, self.until - time.monotonic()))


def _listening(family: int, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("", port))
        listener.listen(64)
    except OSError:
        listener.close()
        raise
    return listener


def _drain(stream: socket.socket, counts: list[int], place: int) -> None:
    room = memoryview(bytearray(PIECE_BYTES))
    with stream:
        while True:
            try:
                taken = stream.recv_into(room)
            except OSError:
                return
            if not taken:
                return
            counts[place] += taken


def _pour(stream: socket.socket, until: float) -> None:
    piece = bytes(PIECE_BYTES)
    with stream:
        while time.monotonic() < until:
            try:
                stream.sendall(piece)
            except OSError:
                return


if __name__ == "__main__":
    if sys.argv[1] == "interfaces":
        interfaces()
    else:
        Meeting(json.loads(sys.argv[2])).hold()
