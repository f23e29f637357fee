"""The simulation beside closed forms of queueing theory, and what must be kept in any run."""
import math
import subprocess
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

import epd_sim
from epd_sim_fleet import Costs, Fleet, Processors, summary
from epd_sim_queues import Change, Load, TicketFleet, push_waits, quantile, ticket_waits


def mean(values):
    return sum(values) / len(values)


def erlang_c(servers, utilisation):
    """Mean wait of M/M/c in mean service times."""
    offered = servers * utilisation
    busy = offered ** servers / math.factorial(servers) / (1 - utilisation)
    waits = busy / (sum(offered ** i / math.factorial(i) for i in range(servers)) + busy)
    return waits / (servers * (1 - utilisation))


class Queues(unittest.TestCase):
    def test_one_instance_waits_as_m_m_1(self):
        for share in (0.5, 0.8):
            load = Load(num_instances=1, mean=1, utilisation=share, is_exponential=True)
            for waits in (push_waits(load, "random", 1, 400_000), ticket_waits(load, 1, 400_000, ticket=0)):
                self.assertAlmostEqual(mean(waits) / (share / (1 - share)), 1, delta=0.06)
                self.assertAlmostEqual(sum(wait > 0 for wait in waits) / len(waits), share, delta=0.02)

    def test_tickets_wait_as_m_m_c(self):
        for servers, share in ((2, 0.8), (10, 0.9)):
            load = Load(num_instances=servers, mean=1, utilisation=share, is_exponential=True)
            self.assertAlmostEqual(mean(ticket_waits(load, 3, 400_000, ticket=0)) / erlang_c(servers, share), 1, delta=0.08)

    def test_random_waits_as_m_g_1(self):
        """Pollaczek and Khinchin: rho / (1 - rho) x (1 + cv^2) / 2 mean services."""
        load = Load(num_instances=20, mean=1)
        self.assertAlmostEqual(mean(push_waits(load, "random", 5, 400_000)) / (4 * (1 + 0.7 ** 2) / 2), 1, delta=0.06)

    def test_fixed_times_wait_half(self):
        load = Load(num_instances=1, mean=1, cv=0, utilisation=0.7)
        self.assertAlmostEqual(mean(ticket_waits(load, 2, 200_000, ticket=0)) / (0.7 / 0.3 / 2), 1, delta=0.05)

    def test_the_same_seed_gives_the_same(self):
        for policy, age in (("two choices", 1), ("least of 8", 0.2), ("round robin", 0)):
            load = Load(num_instances=10)
            self.assertEqual(push_waits(load, policy, 4, 2000, age), push_waits(load, policy, 4, 2000, age))
            self.assertNotEqual(push_waits(load, policy, 4, 2000, age), push_waits(load, policy, 5, 2000, age))

    def test_older_records_wait_longer_and_tickets_least(self):
        load = Load(num_instances=100)
        by_age = [mean(push_waits(load, "least of 8", 1, 60_000, age)) for age in (0, 0.2, 1, 5)]
        self.assertEqual(by_age, sorted(by_age))
        self.assertGreater(mean(push_waits(load, "random", 1, 60_000)), mean(push_waits(load, "two choices", 1, 60_000)))
        self.assertLess(mean(ticket_waits(load, 1, 60_000)), by_age[0])

    def test_quantiles(self):
        self.assertEqual([quantile([4, 1, 3, 2, 5], share) for share in (0, 0.5, 0.625, 1)], [1, 3, 3.5, 5])


class Changes(unittest.TestCase):
    def kept(self, fleet):
        """Each that came is done, in work, waits, or is on its way to another instance."""
        on_their_way = sum(act == fleet.claim for _, _, act, _ in fleet.events)
        self.assertEqual(fleet.num_arrived, len(fleet.waits) + len(fleet.in_work) + len(fleet.queue) + on_their_way)

    def test_without_a_change_it_waits_as_tickets_do(self):
        load = Load(num_instances=4, mean=0.1, utilisation=0.8, is_exponential=True)
        fleet = TicketFleet(load, Change(), 1, 5000).run()
        self.assertAlmostEqual(mean([wait for _, wait in fleet.waits]) / (0.1 * erlang_c(4, 0.8)), 1, delta=0.1)
        self.kept(fleet)

    def test_a_loss_loses_nothing(self):
        fleet = TicketFleet(Load(num_instances=50), Change(lost_at=5, lost_share=0.2), 2, 12).run()
        self.kept(fleet)
        self.assertEqual(fleet.num_busy + fleet.num_free, 40)
        again = [wait for arrival, wait in fleet.waits if arrival < 5 and wait > 1.9]
        self.assertTrue(4 <= len(again) <= 10, again)  # a fifth of some 40 in work
        self.assertFalse(fleet.dead)
        back = TicketFleet(Load(num_instances=50), Change(lost_at=5, lost_share=0.2, replaced_after=3), 2, 12).run()
        self.assertEqual(back.num_busy + back.num_free, 50)

    def test_instances_come_when_the_load_steps_up(self):
        change = Change(step_at=20, scales=True, start_up=10)
        fleet = TicketFleet(Load(num_instances=40), change, 3, 150).run()
        self.kept(fleet)
        self.assertGreaterEqual(fleet.num_busy + fleet.num_free, 48)
        self.assertLess(max(wait for arrival, wait in fleet.waits if arrival > 120), 0.5)


class Shared(unittest.TestCase):
    def test_tasks_share_processors(self):
        cpu, ends = Processors(2), []
        for seconds in (1, 1, 1, 3):
            cpu.spend(seconds, lambda: ends.append(cpu.now))
        cpu.run(100)
        for got, want in zip(ends, (2, 2, 2, 4)):  # half the speed while there are four, then alone
            self.assertAlmostEqual(got, want)
        self.assertAlmostEqual(cpu.busy_seconds, 6)

    def test_one_client_waits_for_nothing(self):
        costs = Costs(before=0.01, encode=0.1, fetch=0.02, projection=0.005, step=[(1, 0.002)], token=0.0, network=0.001)
        fleet = Fleet(costs, 2, 2, 1, processors=2, tokens=(11, 11)).run(20)
        for reply in fleet.replies:
            self.assertAlmostEqual(reply.first - reply.sent, 0.01 + 0.001 + 0.12 + 0.001 + 0.005 + 0.002)
            self.assertAlmostEqual(reply.end - reply.first, 10 * 0.002)

    def test_requests_are_kept_and_work_is_what_was_asked(self):
        costs = Costs(step=[(1, 0.002), (3, 0.004)])
        for processors in (1, 2, math.inf):
            fleet = Fleet(costs, 2, 2, 8, processors=processors).run(30)
            self.assertEqual(fleet.num_started, len(fleet.replies) + 8)
            self.assertEqual(sum(fleet.promised) > 0, True)
            self.assertTrue(all(reply.sent <= reply.offered <= reply.begun <= reply.first <= reply.end for reply in fleet.replies))
            if processors != math.inf:  # a full machine gives what its processors have
                self.assertLessEqual(fleet.cpu.busy_seconds, processors * 30 + 1e-6)
        self.assertGreater(summary(fleet, 30)["requests_per_s"], 0)

    def test_little(self):
        """Clients are as many as requests/s times latency."""
        for clients in (2, 8):
            seen = summary(Fleet(Costs(), 2, 2, clients, processors=2).run(120), 120)
            self.assertAlmostEqual(seen["requests_per_s"] * seen["latency_s"] / clients, 1, delta=0.03)

    def test_steps_are_interpolated(self):
        costs = Costs(step=[(1, 1.0), (3, 2.0)])
        self.assertEqual([costs.step_seconds(n) for n in (1, 2, 3, 5)], [1.0, 1.5, 2.0, 3.0])


class Answers(unittest.TestCase):
    def test_the_ratio_is_that_of_the_work(self):
        model = {"encode": 0.08, "projection": 0.01, "step": 0.008, "tokens": 50}
        share, rate = epd_sim.encoders_a_decoder(model, batch=8, utilisation=0.8)
        self.assertAlmostEqual(rate, 1 / 0.06)
        self.assertAlmostEqual(share, 0.1 * rate)

    def test_operations_are_those_of_the_design(self):
        """whisper-tiny: its projection is 3.5 GFLOP, a tenth of its encode."""
        found = epd_sim.computed("whisper-tiny", 1500, 50)
        self.assertAlmostEqual(found["projection"] * epd_sim.ENCODE_RATE / 1e9, 3.54, delta=0.05)
        self.assertAlmostEqual(found["projection"] / found["encode"], 0.10, delta=0.02)

    def test_redis_is_as_much_as_its_requests(self):
        rows = epd_sim.redis(SimpleNamespace(costs={"redis": {"commands": 10, "bytes": 100}}))
        self.assertEqual(rows[1][:2], (1000, 10_000))

    def test_the_command(self):
        command = [sys.executable, "epd_sim.py", "sizes", "redis", "--jobs", "5000"]
        first, again = (subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent).stdout for _ in range(2))
        self.assertEqual(first, again)
        self.assertIn("1000", first)
        self.assertEqual(subprocess.run([*command, "none"], capture_output=True, cwd=Path(__file__).parent).returncode, 2)


if __name__ == "__main__":
    unittest.main()
