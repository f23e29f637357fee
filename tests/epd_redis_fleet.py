"""A fleet over a Redis server seen from outside, as epd_fleet's of one machine: instances and a proxy by hand, each of which reaches Redis through a
network of its own. Standard library only."""
import contextlib
import signal
from concurrent.futures import ThreadPoolExecutor

import epd_fleet
from epd_by_hand import Network, Proxy, Redis, instance
from epd_fleet import names_of, num_descriptors, resident_bytes

import wire

PROXY = "proxy"
ROLES = {"e": "encode", "p": "decode"}


class RedisFleet:
    """In `with`; its port is the proxy's. `redis`, `networks`, `servers`: by name. An instance that is killed is started again, with its name."""

    def __init__(self, binary, model, shape, *flags, password=""):
        self.password = password
        self.binary, self.model, self.flags, self.names = binary, model, flags, names_of(shape)
        self.stack, self.networks, self.servers = contextlib.ExitStack(), {}, {}
        self.starts = dict.fromkeys(self.names, 0)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.redis = stack.enter_context(Redis(password=self.password))
            self.networks = {name: stack.enter_context(Network(self.redis.port, password=self.password)) for name in (*self.names, PROXY)}
            stack.callback(self.end)
            for name in self.names:
                self.start(name)
            for name in self.names:
                self.servers[name].wait_until_ready()
            self.proxy = stack.enter_context(Proxy(self.binary, self.networks[PROXY].url))
            self.port, self.at_start = self.proxy.port, self.held()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self.stack.__exit__(*error)

    def end(self):
        """Also those of whom one did not start; a sanitizer's words in a log are an error."""
        with contextlib.ExitStack() as all_of_them:
            for server in self.servers.values():
                all_of_them.push(server)

    def start(self, name):
        self.servers[name] = instance(self.binary, self.model, ROLES[name[0]], self.networks[name].url, "--instance-name", name, *self.flags, wait=False,
                                      env=self.environment_of(name))
        self.starts[name] += 1

    def environment_of(self, name):
        """What is set for an instance in addition."""
        return {}

    # ---- Faults

    def send(self, name, number):
        """A signal; also to the server `redis`."""
        process = {PROXY: self.proxy, "redis": self.redis}.get(name, self.servers.get(name)).process
        process.send_signal(number)

    def kill(self, name):
        """Returns a function that waits until the instance is there again."""
        server = self.servers[name]
        server.process.kill()
        server.__exit__(None)
        self.start(name)
        return self.servers[name].wait_until_ready

    def stop_for(self, name, seconds):
        epd_fleet.stop_for(self, name, seconds)

    def cut(self, names, seconds):
        """Their connections to Redis, all at once."""
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(lambda name: self.networks[name].cut(seconds), names))

    # ---- What there is

    def num_starts(self, name):
        return self.starts[name]

    def state_of(self, name):
        return wire.ask(self.servers[name].port, wire.get("/debug/state"), timeout=20).json()

    def busy(self):
        return epd_fleet.busy(self)

    def pids(self):
        return {**{name: server.process.pid for name, server in self.servers.items()}, PROXY: self.proxy.process.pid}

    def held(self):
        """name -> (resident bytes, descriptors)"""
        return {name: (resident_bytes(pid), num_descriptors(pid)) for name, pid in self.pids().items()}

    def words(self):
        return "\n".join(f"{name} | {line}" for name, server in self.servers.items() for line in server.log().splitlines()[-8:])

    log = words

    def stop(self):
        """SIGTERM to all, in the order that a launcher has: the proxy, decode instances, encode instances. The first exit code that is not 0, or 0."""
        self.proxy.process.send_signal(signal.SIGTERM)
        codes = [self.proxy.process.wait(60), *(self.servers[name].stop() for name in reversed(self.names))]
        return next(filter(None, codes), 0)
