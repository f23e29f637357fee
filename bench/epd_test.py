import unittest

import epd_figures as figures
from epd_client import Stream


def stream(sent, times, num_tokens=0):
    return Stream(sent, [], list(times), [True] * len(times), num_tokens or len(times))


class Figures(unittest.TestCase):
    def test_quantiles_are_interpolated(self):
        self.assertEqual([figures.quantile([4, 1, 3, 2, 5], share) for share in (0, 0.5, 0.625, 1)], [1, 3, 3.5, 5])
        self.assertEqual(figures.quantile([7], 0.99), 7)

    def test_added_latency_is_request_by_request(self):
        found = figures.added([0.011, 0.012, 0.113], [0.010, 0.010, 0.110])
        self.assertAlmostEqual(found["p50_ms"], 2)
        self.assertAlmostEqual(found["p99_ms"], 2.98)
        with self.assertRaises(ValueError):
            figures.added([1, 2], [1])

    def test_a_request_is_good_if_its_gaps_are_even_and_its_first_token_is_early(self):
        even = stream(0, [1 + 0.01 * i for i in range(101)])
        late = stream(0, [2.5 + 0.01 * i for i in range(101)])
        uneven = stream(0, [1 + 0.01 * i for i in range(50)] + [1.6 + 0.05 * i for i in range(10)])
        found = figures.load_figures([even, late, uneven], 0, 10)
        self.assertAlmostEqual(found["good_share"], 1 / 3)
        self.assertAlmostEqual(found["goodput_per_s"], 0.1)
        self.assertAlmostEqual(found["itl_p50_ms"], 10)
        self.assertAlmostEqual(found["tokens_per_s"], 26.2)

    def test_gaps_before_texts_of_several_tokens_do_not_count(self):
        one = Stream(0, [], [1, 1.1, 1.4, 1.5], [True, True, False, True], 6)
        self.assertEqual([round(gap, 3) for gap in figures.gaps(one)], [0.1, 0.1])
        self.assertEqual([round(gap, 3) for gap in figures.gaps(one, 1.2)], [0.1])

    def test_only_what_ended_in_the_time_counts(self):
        inside, outside = stream(0, [1, 1.1, 1.2]), stream(0, [1, 1.1, 9])
        self.assertAlmostEqual(figures.load_figures([inside, outside], 0, 5)["requests_per_s"], 0.2)
        self.assertEqual(figures.load_figures([outside], 0, 5), {})

    def test_medians_leave_out_rounds_without_figures(self):
        self.assertEqual(figures.median_of([{"a": 1}, {}, {"a": 5}, {"a": 2}]), {"a": 2})
        self.assertEqual(figures.median_of([{}]), {})

    def test_the_load_that_is_just_held(self):
        by_load = {1: {"good_share": 1.0}, 2: {"good_share": 0.9}, 4: {"good_share": 0.89}, 8: {"good_share": 0.2}}
        self.assertEqual(figures.held_load(by_load), 2)
        self.assertIsNone(figures.held_load({2: {"good_share": 0.1}, 1: {"good_share": 0.2}}))

    def test_recovery_is_when_answers_come_as_before(self):
        steady = [i / 100 for i in range(500)]
        later = [6 + i / 100 for i in range(500)]
        self.assertAlmostEqual(figures.recovery(steady + later, 5), 1.45, delta=0.06)  # from 6 s on; a window of which 0.45 s are full is as before
        self.assertAlmostEqual(figures.recovery(steady + [5 + i / 100 for i in range(300)], 5), 0.5, delta=0.06)
        self.assertIsNone(figures.recovery(steady + [6 + i / 10 for i in range(50)], 5))
        self.assertIsNone(figures.recovery([9.0], 5))  # nothing came before: nothing is known

    def test_rates_of_transports_that_ran(self):
        report = {"benchmarks": [{"name": "bulk_zmq_ipc/4/min_time:2.000/real_time", "bytes_per_second": 2.5e9},
                                 {"name": "bulk_ucx/4/min_time:2.000/real_time", "error_occurred": True, "error_message": "has no UCX"}]}
        self.assertEqual(figures.rates(report), {"zmq_ipc 4": 2.5})

    def test_targets_that_are_missed_are_said(self):
        lines = figures.target_rows([("a", "<= 5 ms", 5.0, 5, False), ("b", ">= 2", 1.9, 2, True), ("c", "<= 1", None, 1, False),
                                     ("d", "<= 1", 0.5, None, False)])
        self.assertEqual(lines[2:], ["| a | <= 5 ms | 5 | met |", "| b | >= 2 | 1.9 | missed |", "| c | <= 1 | - | not shown |",
                                     "| d | <= 1 | 0.5 | too few requests |"])


class Client(unittest.TestCase):
    HEAD = b"HTTP/1.1 200 OK\r\n\r\n"

    @staticmethod
    def event(text):
        return b'data: {"choices": [{"text": "%s"}]}\n\n' % text

    def test_pieces_with_text_are_timed(self):
        one = Stream(0.0, [(1.0, self.HEAD), (2.0, self.event(b"a")), (2.5, self.event(b"")), (3.0, self.event(b"b") + self.event(b"")),
                           (3.5, b'data: {"choices": [], "usage": {"completion_tokens": 17, "x": 1}}\n\n'), (4.0, b"data: [DONE]\n\n0\r\n\r\n")]).read()
        self.assertEqual((one.times, one.num_tokens), ([2.0, 3.0], 17))

    def test_how_many_tokens_a_piece_is_of(self):
        event = lambda listed: b'data: {"choices": [{"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": [%s], "top_logprobs": []}}]}' % listed
        one = Stream(0.0, [(1.0, self.HEAD + event(b"-0.5")), (2.0, event(b"-0.5, null")), (3.0, event(b"-1") + event(b"-1, -2")), (4.0, self.event(b"a")),
                           (4.5, b'"completion_tokens": 7, data: [DONE]')]).read()
        self.assertEqual((one.times, one.are_steps), ([1.0, 2.0, 3.0, 4.0], [True, False, True, True]))

    def test_an_answer_that_is_no_whole_stream_is_an_error(self):
        for pieces in ([(1.0, self.HEAD + self.event(b"a"))], [(1.0, b"HTTP/1.1 503 no\r\n\r\ndata: [DONE]\n\n")]):
            with self.assertRaises(RuntimeError):
                Stream(0.0, pieces).read()


if __name__ == "__main__":
    unittest.main()
