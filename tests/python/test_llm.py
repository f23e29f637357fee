"""LLM: forms of prompts, results, errors, threads."""
import copy
import gc
import json
import pickle
import subprocess
import threading
import unittest
from collections import UserList

import numpy as np
from common_python import BART, BINARY, MODELS, ROOT, WHISPER, LlmCase, noise

import transept
from transept import LLM, SamplingParams
from transept.engine_args import HARMLESS, REFUSED

GREEDY = SamplingParams(temperature=0, max_tokens=8)


def binary_lines(model, requests, *flags):
    """What the binary says to requests: the oracle."""
    text = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([str(BINARY), "generate", str(model), "--input", "-", "--output", "-", *flags], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Llm(LlmCase):
    def text(self, prompt, params=GREEDY, **more):
        (output,) = self.llm.generate(prompt, params, **more)
        return output.outputs[0].text

    def test_answers_in_order_as_the_binary_does(self):
        prompts = [f"The ship leaves {i}" for i in range(300)]  # more than are in flight
        wanted = binary_lines(BART, [{"id": i, "prompt": p, "max_tokens": 8, "temperature": 0} for i, p in enumerate(prompts)])
        outputs = self.llm.generate(prompts, GREEDY)
        self.assertEqual([o.outputs[0].token_ids for o in outputs], [w["outputs"][0]["token_ids"] for w in wanted])
        self.assertEqual([o.outputs[0].text for o in outputs], [w["outputs"][0]["text"] for w in wanted])
        self.assertEqual([o.encoder_prompt for o in outputs], prompts)
        self.assertEqual(outputs[0].prompt_token_ids, wanted[0]["prompt_token_ids"])
        self.assertAlmostEqual(outputs[0].outputs[0].cumulative_logprob, wanted[0]["outputs"][0]["cumulative_logprob"], 3)
        self.assertTrue(all(o.finished and o.outputs[0].finished() for o in outputs))

    def test_every_form_of_a_prompt_is_the_same_prompt(self):
        text = "Nobody is overtaken"
        ids = self.llm.get_tokenizer().encode(text)
        wanted = self.text(text)
        forms = [{"prompt": text}, ids, tuple(ids), np.array(ids, np.int32), np.array(ids, np.int64), np.array(ids)[::1], UserList(ids)]
        forms += [{"prompt_token_ids": ids}, {"prompt_tokens": np.array(ids)}, {"encoder_prompt": text}]
        forms += [{"encoder_prompt": {"prompt": text}, "decoder_prompt": None}, transept.TextPrompt(prompt=text)]
        for form in forms:
            self.assertEqual(self.text(form), wanted, form)
        strided = np.repeat(np.array(ids, np.int32), 2)[::2]
        self.assertEqual(self.text(strided), wanted)

    def test_decoder_prompts_continue(self):
        (output,) = self.llm.generate({"encoder_prompt": "a b c", "decoder_prompt": "The"}, GREEDY)
        (wanted,) = binary_lines(BART, [{"id": 1, "prompt": "a b c", "decoder_prompt": "The", "max_tokens": 8, "temperature": 0}])
        self.assertEqual(output.outputs[0].token_ids, wanted["outputs"][0]["token_ids"])
        self.assertEqual(output.prompt, "The")
        self.assertEqual(output.prompt_token_ids, wanted["prompt_token_ids"])

    def test_forms_that_are_none(self):
        bad = [({}, ValueError), ({"decoder_prompt": "a"}, ValueError), ({"promt": "a"}, ValueError), ([], ValueError), ({"prompt": 3}, TypeError), ([4.5, 2], TypeError), (["a", 2], TypeError)]
        bad += [({"encoder_prompt": "a", "decoder_prompt": {"multi_modal_data": {}}}, ValueError), (np.zeros((2, 2), np.int32), Exception)]
        for prompt, error in bad:
            with self.assertRaises(error, msg=repr(prompt)):
                self.llm.generate([prompt], GREEDY)
        with self.assertRaises(transept.UnsupportedError):
            self.llm.generate([{"prompt": "a", "cache_salt": "x"}], GREEDY)
        with self.assertRaises(transept.InvalidArgumentError):
            self.llm.generate([[5, 10**9]], GREEDY)
        with self.assertRaises((OverflowError, TypeError, transept.InvalidArgumentError)):
            self.llm.generate([[5, 2**40]], GREEDY)

    def test_logprobs_beams_and_samples(self):
        (output,) = self.llm.generate("a b", SamplingParams(temperature=0, max_tokens=4, logprobs=2, prompt_logprobs=1))
        answer = output.outputs[0]
        for token, entry in zip(answer.token_ids, answer.logprobs):
            self.assertIsInstance(entry[token], transept.Logprob)
            self.assertLessEqual(entry[token].logprob, 0)
        self.assertAlmostEqual(sum(e[t].logprob for t, e in zip(answer.token_ids, answer.logprobs)), answer.cumulative_logprob, 3)
        self.assertIsNone(output.prompt_logprobs[0])
        (beams,) = self.llm.generate("a b", SamplingParams(num_beams=3, n=3, max_tokens=6))
        self.assertEqual([a.index for a in beams.outputs], [0, 1, 2])
        self.assertEqual(sorted((a.beam_score for a in beams.outputs), reverse=True), [a.beam_score for a in beams.outputs])
        (searched,) = self.llm.beam_search("a b", transept.BeamSearchParams(beam_width=3, max_tokens=6))
        self.assertEqual([s.tokens for s in searched.sequences], [a.token_ids for a in beams.outputs])
        drawn = [self.text("a b", SamplingParams(temperature=1.0, seed=5, max_tokens=8)) for _ in range(2)]
        self.assertEqual(*drawn)

    def test_stop_reasons(self):
        text = self.text("a b c", SamplingParams(temperature=0, max_tokens=8))
        (output,) = self.llm.generate("a b c", SamplingParams(temperature=0, max_tokens=8, stop=text[3:5]))
        self.assertEqual(output.outputs[0].finish_reason, "stop")
        self.assertEqual(output.outputs[0].stop_reason, text[3:5])

    def test_one_list_of_params(self):
        outputs = self.llm.generate(["a", "b"], [SamplingParams(max_tokens=2, ignore_eos=True), SamplingParams(max_tokens=3, ignore_eos=True)])
        self.assertEqual([len(o.outputs[0].token_ids) for o in outputs], [2, 3])
        with self.assertRaises(ValueError):
            self.llm.generate(["a", "b"], [GREEDY])

    def test_params_that_change_are_seen(self):
        params = SamplingParams(temperature=0, max_tokens=2, ignore_eos=True, suppress_tokens=[5])
        first = params.to_json()
        params.suppress_tokens.append(7)
        self.assertNotEqual(params.to_json(), first)
        params.suppress_tokens, params.max_tokens = None, 3
        self.assertEqual(len(self.llm.generate("a", params)[0].outputs[0].token_ids), 3)
        params.max_tokens = 4
        self.assertEqual(len(self.llm.generate("a", params)[0].outputs[0].token_ids), 4)
        self.assertEqual(params.clone(), params)

    def test_one_text_and_a_list_of_one_are_the_same(self):
        """The first has a way of its own: parameters and outputs are written in src/python."""
        given = [{}, {"n": 2, "temperature": 1.5, "seed": 2**40}, {"temperature": 1e-7}, {"temperature": 0.1 + 0.2, "top_p": 1 / 3}, {"num_beams": 3, "n": 3}]
        given += [{"logprobs": 2}, {"stop": ["a", "s"]}, {"ignore_eos": True, "skip_special_tokens": False}, {"bad_words": ["\u00e4\""]}]
        given += [{"temperature": np.float32(0.5)}, {"min_tokens": np.int64(2)}, {"logit_bias": {5: -3.5}}, {"output_kind": transept.RequestOutputKind.DELTA}]
        for fields in given:
            params = SamplingParams(**{"temperature": 0, "max_tokens": 8, "seed": 7, **fields})
            ((alone,), (listed,)) = (self.llm.generate(prompt, params) for prompt in ("The ship", ["The ship"]))
            self.assertEqual([vars(o) | {"_result": 0, "_beam_score": o.beam_score} for o in alone.outputs],
                             [vars(o) | {"_result": 0, "_beam_score": o.beam_score} for o in listed.outputs], fields)
            self.assertEqual(alone.outputs[0].logprobs, listed.outputs[0].logprobs)
        for wrong in ({"temperature": 10**400}, {"top_k": 2**70}, {"max_tokens": 1.5}, {"n": "1"}):
            said = []
            for prompt in ("a", ["a"]):
                with self.assertRaises(ValueError) as caught:
                    self.llm.generate(prompt, SamplingParams(**wrong))
                said.append(str(caught.exception))
            self.assertEqual(said[0], said[1])

    def test_outputs_have_the_attributes_of_their_class(self):
        (made,) = self.llm.generate("a", GREEDY)[0].outputs
        values = (made.index, made.text, made.token_ids, made.cumulative_logprob, made._beam_score, made.finish_reason, made._result)
        self.assertEqual(list(vars(made)), list(vars(transept.CompletionOutput(*values))))
        self.assertIs(type(made), transept.CompletionOutput)

    def test_unknown_and_refused_arguments(self):
        with self.assertRaises(TypeError):
            SamplingParams(max_token=3)
        with self.assertRaises(transept.UnsupportedError) as caught:
            SamplingParams(structured_outputs={"json": {}})
        self.assertEqual(caught.exception.field, "structured_outputs")
        SamplingParams(structured_outputs=None, detokenize=True)
        with self.assertRaises(TypeError):
            LLM(BART, thread=1)
        with self.assertRaises(transept.UnsupportedError):
            LLM(BART, tensor_parallel_size=2)
        with self.assertRaises(transept.UnsupportedError):
            LLM(BART, device="cuda")
        LLM(BART, threads=1, enforce_eager=True, tensor_parallel_size=1, gpu_memory_utilization=0.5).shutdown()

    def test_arguments_of_vllm_s_engine(self):
        """All are known: some change no answer, the others are refused unless they have vLLM's default."""
        of_vllm = """runner convert allowed_media_domains chat_template pooler_config override_pooler_config structured_outputs_config served_model_name
            generation_config num_gpu_blocks_override max_num_partial_prefills long_prefill_token_threshold distributed_executor_backend num_scheduler_steps
            max_parallel_loading_workers scheduling_policy disable_sliding_window max_logprobs disable_mm_preprocessor_cache mm_processor_cache_gb
            interleave_mm_strings ignore_patterns scheduler_cls calculate_kv_scales enable_sleep_mode model_impl additional_config rope_scaling rope_theta
            use_tqdm_on_load disable_cascade_attn worker_cls model_loader_extra_config code_revision max_loras max_lora_rank enable_expert_parallel
            show_hidden_metrics_for_version otlp_traces_endpoint reasoning_parser disable_async_output_proc disable_hybrid_kv_cache_manager logprobs_mode
            optimization_level performance_mode mm_encoder_tp_mode language_model_only""".split()
        self.assertEqual([name for name in of_vllm if name not in HARMLESS and name not in REFUSED], [])
        self.assertEqual(HARMLESS & REFUSED.keys(), frozenset())
        with LLM(BART, threads=1, **dict.fromkeys(HARMLESS, "other"), **REFUSED) as llm:
            self.assertEqual(llm.generate("a", GREEDY)[0].outputs[0].token_ids, self.llm.generate("a", GREEDY)[0].outputs[0].token_ids)
        for name in REFUSED:
            with self.assertRaises(transept.UnsupportedError) as caught:
                LLM(BART, **{name: "other"})
            self.assertEqual(caught.exception.field, name)
        page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        accepted, refused = (page.split(f"* **{head}")[1].split("\n\n")[0].split("\n* ")[0] for head in ("Accepted by `LLM`", "Refused by `LLM`"))
        self.assertEqual([name for name in HARMLESS if f"`{name}`" not in accepted] + [name for name in REFUSED if f"`{name}`" not in refused], [])

    def test_errors_are_typed_and_name_their_field(self):
        with self.assertRaises(transept.InvalidArgumentError) as caught:
            self.llm.generate("a", SamplingParams(max_tokens=-1))
        self.assertEqual(caught.exception.field, "max_tokens")
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(FileNotFoundError) as caught:
            LLM("/no/such/model")
        self.assertIn("/no/such/model", str(caught.exception))
        with self.assertRaises(TimeoutError):
            self.llm.generate("a", SamplingParams(max_tokens=90, ignore_eos=True), timeout=1e-6)

    def test_score_is_the_sum(self):
        (score,) = self.llm.score("a b c", "The block")
        self.assertAlmostEqual(score.score, sum(e[t].logprob for t, e in zip(score.prompt_token_ids[1:], score.prompt_logprobs[1:])), 3)
        (same,) = self.llm.score({"encoder_prompt": "a b c", "decoder_prompt": "The block"})
        self.assertEqual(same.score, score.score)
        with self.assertRaises(ValueError):
            self.llm.score(["a", "b"], ["c"])

    def test_a_score_needs_a_prompt_of_the_decoder(self):
        forms = [("a", 0), ({"encoder_prompt": "a"}, 0), ([{"encoder_prompt": "a", "decoder_prompt": "b"}, {"encoder_prompt": "a", "decoder_prompt": None}], 1)]
        for prompts, position in forms:
            with self.assertRaises(transept.InvalidArgumentError) as caught:
                self.llm.score(prompts)
            self.assertEqual(str(caught.exception), f"decoder_prompts: there is none for prompts[{position}]: give the text or the ids to score")
            self.assertEqual(caught.exception.field, "decoder_prompts")

    def test_outputs_are_copied_and_pickled(self):
        params = SamplingParams(num_beams=2, n=2, max_tokens=5, logprobs=1, prompt_logprobs=1)
        (beams,) = self.llm.generate("a b", params, encoder_output=True)
        (plain,) = self.llm.generate("a b", GREEDY)
        (score,) = self.llm.score("a b", "c")
        for copied in (copy.deepcopy, copy.copy, lambda value: pickle.loads(pickle.dumps(value))):
            for output in (beams, plain):
                same = copied(output)
                self.assertIs(type(same), transept.RequestOutput)
                self.assertEqual(repr(same), repr(output))
                for name in ("prompt_logprobs", "metrics", "finished", "encoder_prompt", "encoder_prompt_token_ids"):
                    self.assertEqual(getattr(same, name), getattr(output, name), name)
                self.assertTrue(np.array_equal(same.encoder_output, output.encoder_output) if output is beams else same.encoder_output is None)
                for mine, theirs in zip(same.outputs, output.outputs):
                    self.assertEqual(repr(mine), repr(theirs))
                    self.assertEqual(repr(copied(theirs)), repr(theirs))
                    self.assertEqual((mine.beam_score, mine.alignments, mine.token_ids_array.tolist()), (theirs.beam_score, theirs.alignments, theirs.token_ids))
                    self.assertFalse(mine.token_ids_array.flags.writeable)
                self.assertEqual(repr(copied(same)), repr(output))
            self.assertEqual((copied(score).score, copied(score).prompt_logprobs), (score.score, score.prompt_logprobs))

    def test_handles_are_encoded_once(self):
        # Counters are told after a step, an answer within it: with several tokens those of its first step are.
        several = SamplingParams(temperature=0, max_tokens=8, min_tokens=4)
        self.text("x", several)
        before = self.llm.stats()["encoder_runs"]
        (handle,) = self.llm.encode("Some long text that is encoded once")
        self.assertGreater(handle.num_positions, 5)
        for decoder in (None, "The", [2, 0, 5]):
            self.llm.generate({"encoder_prompt": handle, "decoder_prompt": decoder}, several)
        self.assertEqual(self.llm.stats()["encoder_runs"], before + 1)
        self.assertGreater(self.llm.stats()["pinned_blocks"], 0)
        self.assertEqual(self.text(handle), self.text("Some long text that is encoded once"))
        del handle
        gc.collect()
        self.text("x", several)
        self.assertEqual(self.llm.stats()["pinned_blocks"], 0)

    def test_pictures_within_the_prompt_are_encoded_once(self):
        with LLM(MODELS / "qwen2-vl-float32", threads=1) as llm:
            requests = [json.loads(line) for line in (MODELS / "qwen2-vl-float32" / "requests.jsonl").read_text().splitlines()]
            wanted = [json.loads(line) for line in (MODELS / "qwen2-vl-float32" / "expected.jsonl").read_text().splitlines()]
            for request, answer in list(zip(requests, wanted))[:2]:  # of one picture, and of two
                media, ids = request["prompt"]["multi_modal_data"], request["prompt"]["prompt_token_ids"]
                params = SamplingParams(temperature=0, max_tokens=request["max_tokens"], ignore_eos=request.get("ignore_eos", False))
                (handle,) = llm.encode({"multi_modal_data": media})
                runs = []
                for _ in range(2):
                    (output,) = llm.generate({"encoder_prompt": handle, "decoder_prompt": ids}, params)
                    self.assertEqual(output.outputs[0].token_ids, answer["outputs"][0]["token_ids"])
                    self.assertEqual(output.prompt_token_ids, answer["prompt_token_ids"])
                    runs.append(llm.stats()["encoder_runs"])
                self.assertEqual(runs[0], runs[1])
                with self.assertRaisesRegex(transept.InvalidArgumentError, "has 0 "):
                    llm.generate({"encoder_prompt": handle, "decoder_prompt": [5, 6]}, params)

    def test_views_outlive_their_result(self):
        (output,) = self.llm.generate("a view of rows", GREEDY, encoder_output=True)
        ids, rows = output.outputs[0].token_ids_array, output.encoder_output
        wanted = output.outputs[0].token_ids
        self.assertEqual(rows.shape, (len(output.encoder_prompt_token_ids), self.llm.info["encoder_width"]))
        self.assertFalse(ids.flags.writeable)
        total = float(rows.sum())
        del output
        gc.collect()
        self.assertEqual(ids.tolist(), wanted)
        self.assertEqual(float(rows.sum()), total)

    def test_threads_share_the_batch(self):
        wanted = [self.text(f"thread {i}") for i in range(8)]
        got = [None] * 8

        def run(i):
            got[i] = self.text(f"thread {i}")

        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, wanted)

    def test_other_threads_run_during_steps(self):
        """A thread that counts is not held up by a call of many steps."""
        count = 0
        params = SamplingParams(max_tokens=90, ignore_eos=True, temperature=0)
        runner = threading.Thread(target=lambda: self.llm.generate(["x"] * 60, params))
        runner.start()
        while runner.is_alive():
            count += 1
        runner.join()
        self.assertGreater(count, 1000)

    def test_tokenizer(self):
        tokenizer = self.llm.get_tokenizer()
        ids = tokenizer.encode("The ship leaves")
        self.assertEqual(tokenizer.decode(ids, skip_special_tokens=True), "The ship leaves")
        tokens = tokenizer.convert_ids_to_tokens(ids)
        self.assertEqual(tokenizer.convert_tokens_to_ids(tokens), ids)
        self.assertEqual(len(tokenizer), self.llm.info["vocab_size"])
        self.assertEqual(tokenizer.encode("a", add_special_tokens=False), tokenizer.encode("a")[1:-1])

    def test_after_shutdown(self):
        llm = LLM(BART, threads=1)
        llm.shutdown()
        with self.assertRaises(transept.UnavailableError):
            llm.generate("a")
        self.assertTrue(llm.get_tokenizer().encode("a"))

    def test_audio_prompts(self):
        with LLM(WHISPER, threads=1) as llm:
            samples = noise(2)
            params = SamplingParams(max_tokens=6, temperature=0, language="en")
            forms = [(samples, 16000), samples, [(samples, 16000)], samples.astype(np.float64), np.repeat(samples, 2)[::2]]
            answers = [llm.generate({"multi_modal_data": {"audio": audio}}, params)[0].outputs[0].token_ids for audio in forms]
            self.assertTrue(all(answer == answers[0] for answer in answers), answers)
            plain = {"samples": [float(s) for s in samples], "sampling_rate": 16000}
            (same,) = llm.generate({"multi_modal_data": {"audio": plain}}, params)
            self.assertEqual(same.outputs[0].token_ids, answers[0])
            for wrong in ((samples, 16000.5), np.zeros(8, np.int16), np.zeros((2, 8), np.float32), object()):
                with self.assertRaises((TypeError, ValueError)):
                    llm.generate({"multi_modal_data": {"audio": wrong}}, params)
            with self.assertRaises(transept.InvalidArgumentError):
                llm.generate("text for a speech model", params)

    def test_bundled_model(self):
        with LLM(ROOT / "models" / "g2p", threads=1) as llm:
            self.assertTrue(llm.generate("transept")[0].outputs[0].text)


if __name__ == "__main__":
    unittest.main()
