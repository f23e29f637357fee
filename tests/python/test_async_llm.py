"""AsyncLLM: streams, aborts, loops, threads that there are not."""
import asyncio
import threading
import time
import unittest

from common_python import MODELS

import transept
from transept import AsyncEngineArgs, AsyncLLM, RequestOutputKind, SamplingParams

T5 = MODELS / "t5-float32"
LONG = dict(max_tokens=1500, ignore_eos=True, temperature=0)


class Async(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = AsyncLLM.from_engine_args(AsyncEngineArgs(model=T5, threads=1))
        (cls.whole,) = transept.LLM(T5, threads=1).generate("a b c", SamplingParams(**LONG))

    @classmethod
    def tearDownClass(cls):
        cls.llm.shutdown()

    async def outputs(self, prompt="a b c", request_id=None, **params):
        return [o async for o in self.llm.generate(prompt, SamplingParams(**{**LONG, **params}), request_id)]

    def test_kinds(self):
        wanted = self.whole.outputs[0]

        async def main():
            cumulative = await self.outputs()
            self.assertGreater(len(cumulative), 1)
            for before, after in zip(cumulative, cumulative[1:]):
                self.assertTrue(after.outputs[0].text.startswith(before.outputs[0].text))
            self.assertEqual((cumulative[-1].outputs[0].text, cumulative[-1].outputs[0].token_ids), (wanted.text, wanted.token_ids))
            self.assertEqual([o.finished for o in cumulative], [False] * (len(cumulative) - 1) + [True])
            deltas = await self.outputs(output_kind=RequestOutputKind.DELTA)
            self.assertEqual("".join(o.outputs[0].text for o in deltas), wanted.text)
            self.assertEqual(sum((o.outputs[0].token_ids for o in deltas), []), wanted.token_ids)
            final = await self.outputs(output_kind=RequestOutputKind.FINAL_ONLY)
            self.assertEqual([o.outputs[0].text for o in final], [wanted.text])
            scored = await self.outputs(logprobs=1)
            self.assertEqual([t for t, e in zip(wanted.token_ids, scored[-1].outputs[0].logprobs) if t not in e], [])
            self.assertEqual(len(scored[-1].outputs[0].logprobs), len(wanted.token_ids))

        asyncio.run(main())

    def test_many_at_once_without_threads(self):
        async def main():
            before = threading.active_count()
            tasks = [asyncio.create_task(self.outputs(f"a b {i}", max_tokens=12)) for i in range(100)]
            await asyncio.sleep(0.01)
            self.assertEqual(threading.active_count(), before)
            answers = await asyncio.gather(*tasks)
            self.assertTrue(all(len(a[-1].outputs[0].token_ids) == 12 for a in answers))
            several = await self.outputs(n=3, temperature=1.0, seed=3, max_tokens=10)
            self.assertEqual(sorted(o.index for o in several[-1].outputs)[-1], 2)

        asyncio.run(main())

    def test_abort_by_name_by_leaving_and_by_cancelling(self):
        async def main():
            reasons = []
            async for output in self.llm.generate("a", SamplingParams(**LONG), "mine"):
                reasons.append(output.outputs[0].finish_reason)
                await self.llm.abort("mine")
            self.assertEqual(reasons[-1], "abort")
            await self.llm.abort("unknown")
            left = self.llm.generate("a", SamplingParams(**LONG))
            await left.__anext__()
            await left.aclose()
            task = asyncio.create_task(self.outputs("z"))
            await asyncio.sleep(0)  # it has begun; after a longer sleep a late wake-up would find the answer whole
            self.assertFalse(task.done())
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            for _ in range(200):
                if self.llm.stats()["num_running"] == 0:
                    break
                await asyncio.sleep(0.01)
            self.assertEqual(self.llm.stats()["num_running"], 0)

        asyncio.run(main())

    def test_abort_of_several(self):
        async def run(name):
            return [o.outputs[0].finish_reason async for o in self.llm.generate("a", SamplingParams(**LONG), name)][-1]

        async def main():
            tasks = [asyncio.create_task(run(name)) for name in "xyz"]
            while len(self.llm._running) < 3:
                await asyncio.sleep(0)
            await self.llm.abort(name for name in ("x", "unknown"))
            await self.llm.abort(["y", "z"])
            self.assertEqual(await asyncio.gather(*tasks), ["abort"] * 3)
            for wrong in (5, None, b"x", {"x": 1}, ["x", 5]):
                with self.assertRaisesRegex(TypeError, "request_id"):
                    await self.llm.abort(wrong)

        asyncio.run(main())

    def test_requests_wait_in_a_queue_without_an_end(self):
        """As vLLM's do, unless max_queued_requests gives it one. The first prompt's encode lets the others pile up."""
        async def ask(llm, count):
            async def one(i):
                prompt = [5] * 8000 if i == 0 else [5 + i % 40]
                return [o async for o in llm.generate([*prompt, 1], SamplingParams(max_tokens=1, temperature=0))][-1].finished

            return await asyncio.gather(*map(one, range(count)), return_exceptions=True)

        llm = AsyncLLM(AsyncEngineArgs(T5, threads=1))
        self.assertEqual([answer for answer in asyncio.run(ask(llm, 1500)) if answer is not True], [])
        llm.shutdown()
        llm = AsyncLLM(AsyncEngineArgs(T5, threads=1, max_queued_requests=4))
        full = [answer for answer in asyncio.run(ask(llm, 200)) if answer is not True]
        self.assertGreater(len(full), 100)
        self.assertEqual({type(error) for error in full}, {transept.ResourceExhaustedError})
        llm.shutdown()

    def test_arguments_of_vllm_that_mean_nothing_at_their_default(self):
        async def ask(**given):
            return [o async for o in self.llm.generate("a", SamplingParams(**{**LONG, "max_tokens": 2}), **given)][-1]

        self.assertTrue(asyncio.run(ask(lora_request=None, priority=0, tokenization_kwargs=None, trace_headers={"a": "b"})).finished)
        self.assertTrue(asyncio.run(ask(priority=None)).finished)
        for name, value in (("lora_request", 1), ("priority", 1), ("tokenization_kwargs", {"a": 1})):
            with self.assertRaisesRegex(transept.UnsupportedError, f"AsyncLLM.generate: {name}") as caught:
                asyncio.run(ask(**{name: value}))
            self.assertEqual(caught.exception.field, name)

    def test_a_slow_consumer_does_not_hold_the_loop(self):
        async def main():
            ticks, pieces = 0, 0

            async def tick():
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0)

            other = asyncio.create_task(tick())
            async for _ in self.llm.generate("a", SamplingParams(**LONG)):
                pieces += 1
                time.sleep(0.002)  # the engine is ahead by the next piece
            other.cancel()
            self.assertGreater(pieces, 5)
            self.assertGreaterEqual(ticks, pieces - 1)

        asyncio.run(main())

    def test_kinds_are_of_their_class(self):
        async def main():
            for kind in (2, 0, None, "FINAL_ONLY"):
                with self.assertRaisesRegex(TypeError, "output_kind must be a RequestOutputKind, not "):
                    await self.outputs(output_kind=kind)

        asyncio.run(main())

    def test_names_are_unique_while_they_run(self):
        async def main():
            first = self.llm.generate("a", SamplingParams(**LONG), "same")
            await first.__anext__()
            with self.assertRaisesRegex(transept.InvalidArgumentError, "request_id must be of no running request, as the str 'same' is") as caught:
                await self.outputs(request_id="same")
            self.assertEqual(caught.exception.field, "request_id")
            self.assertIsInstance(caught.exception, ValueError)
            for wrong in (5, ["same"], b"same"):
                with self.assertRaisesRegex(TypeError, "request_id must be a str, not "):
                    await self.outputs(request_id=wrong)
            await first.aclose()
            await self.outputs(request_id="same", max_tokens=2)

        asyncio.run(main())

    def test_errors(self):
        async def main():
            with self.assertRaises(transept.InvalidArgumentError):
                await self.outputs(max_tokens=-1)
            with self.assertRaises(transept.DeadlineExceededError):
                async for _ in self.llm.generate("a", SamplingParams(**LONG), timeout=1e-6):
                    pass
            await self.outputs(max_tokens=2)  # and goes on

        asyncio.run(main())

    def test_loops_of_several_threads(self):
        answers = {}

        def run(i):
            answers[i] = asyncio.run(self.outputs(max_tokens=1500))[-1].outputs[0].text

        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(answers.values()), {self.whole.outputs[0].text})

    def test_shutdown_ends_requests(self):
        async def main():
            llm = AsyncLLM(T5, threads=1)
            self.assertTrue(llm.is_running)
            stream = llm.generate("a", SamplingParams(**LONG))
            await stream.__anext__()
            llm.shutdown()
            with self.assertRaises(transept.UnavailableError):
                async for _ in stream:
                    pass
            with self.assertRaises(transept.UnavailableError):
                await llm.check_health()
            self.assertEqual((await llm.get_tokenizer()).decode([], True), "")

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
