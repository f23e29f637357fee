"""Ports for servers of tests are no other's."""
import socket
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

import ports


class PortsTest(unittest.TestCase):
    def only(self, port):
        return mock.patch.multiple(ports, FIRST=port, LAST=port + 1)

    def test_it_can_be_listened_on_and_lies_below_those_of_connections(self):
        port = ports.free_port()
        self.assertLess(port, int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))
        for _ in range(2):
            socket.create_server(("127.0.0.1", port)).close()

    def test_no_port_is_given_twice(self):
        port = ports.free_port()
        with self.only(port), self.assertRaisesRegex(OSError, "no free port"):
            ports.free_port()
        again = f"import ports; ports.FIRST, ports.LAST = {port}, {port + 1}; ports.free_port()"
        other = subprocess.run([sys.executable, "-c", again], cwd=Path(__file__).parent, capture_output=True, text=True)
        self.assertIn("no free port", other.stderr)

    def test_what_another_listens_on_is_left_to_it(self):
        port = ports.free_port()
        ports._held.pop().close()
        with socket.create_server(("127.0.0.1", port)), self.only(port), self.assertRaisesRegex(OSError, "no free port"):
            ports.free_port()
        with self.only(port):
            self.assertEqual(ports.free_port(), port)


if __name__ == "__main__":
    unittest.main()
