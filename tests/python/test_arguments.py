"""Arguments that are wrong: which error, and that it names the argument, the value and the reason."""
import asyncio
import json
import math
import unittest

import numpy as np
from common_python import BART, MODELS, WHISPER, LlmCase, noise

import transept
from transept._model import Vocabulary
from transept import AsyncLLM, BatchedInferencePipeline, BeamSearchParams, EngineArgs, InvalidArgumentError, LLM, SamplingParams, Translator, UnsupportedError, WhisperModel

GREEDY = SamplingParams(temperature=0, max_tokens=2)
BYTES = (b"hello", bytearray(b"hello"), memoryview(b"hello"))


def holds_itself():
    whole = {}
    whole["x"] = whole
    return whole


class Wrong(unittest.TestCase):
    def refused(self, error, words, call, *arguments, **more):
        """`words`: what the message has."""
        with self.assertRaises(error, msg=f"{arguments} {more}") as caught:
            call(*arguments, **more)
        for word in (words,) if isinstance(words, str) else words:
            self.assertIn(word, str(caught.exception))
        self.assertIsNot(type(caught.exception), RecursionError)
        return caught.exception


class OfLlm(Wrong, LlmCase):
    def test_bytes_are_no_ids(self):
        for data in BYTES:
            kind = type(data).__name__
            self.refused(TypeError, ("prompts", kind), self.llm.generate, data, GREEDY)
            self.refused(TypeError, ("prompts", kind), self.llm.encode, data)
            self.refused(TypeError, ("prompt", kind), self.llm.generate, ["a", data], GREEDY)
            self.refused(TypeError, ("prompt_token_ids", kind), self.llm.generate, {"prompt_token_ids": data}, GREEDY)
            self.refused(TypeError, ("prompt", kind), self.llm.generate, {"prompt": data}, GREEDY)
            self.refused(TypeError, ("decoder_prompt", kind), self.llm.generate, {"encoder_prompt": "a", "decoder_prompt": data}, GREEDY)
            self.refused(TypeError, ("decoder_prompts", kind), self.llm.score, "a", data)
            self.refused(TypeError, ("decoder_prompt", kind), self.llm.score, ["a"], [data])
            self.refused(TypeError, ("token_ids", kind), self.llm.get_tokenizer().decode, data)
            self.refused(TypeError, ("token_ids", kind), self.llm.get_tokenizer().convert_ids_to_tokens, data)
            self.refused(TypeError, ("text", kind), self.llm.get_tokenizer().encode, data)
        self.assertTrue(self.llm.generate(np.array([0, 5, 6, 2], np.uint16), GREEDY)[0].finished)

    def test_what_is_no_prompt_is_named(self):
        for prompts in (None, 5, 1.5, {"a"}, np.array(5), (text for text in ("a", "b"))):
            kind = str(prompts) if prompts is None or isinstance(prompts, (int, float)) else type(prompts).__name__
            self.refused(TypeError, ("prompts must be", kind), self.llm.generate, prompts, GREEDY)
        for prompt in (None, 1.5, {"a"}, ["a"], [True, False], [1, "a"], [[1]], [1.5], np.array([1.5]), np.array([True])):
            self.refused(TypeError, "prompt", self.llm.generate, ["a", prompt], GREEDY)
        self.refused(TypeError, ("prompt_token_ids", "the str 'ab'"), self.llm.generate, {"prompt_token_ids": "ab"}, GREEDY)
        self.refused(TypeError, ("multi_modal_data", "list"), self.llm.generate, {"prompt": "a", "multi_modal_data": [1]}, GREEDY)
        self.refused(TypeError, "decoder_prompts must be", self.llm.score, "a", 7)

    def test_what_holds_itself_is_named(self):
        whole = {}
        whole["encoder_prompt"] = whole
        self.refused(InvalidArgumentError, "encoder_prompt", self.llm.generate, whole, GREEDY)
        self.refused(InvalidArgumentError, "'x'", self.llm.generate, holds_itself(), GREEDY)
        self.refused(InvalidArgumentError, "multi_modal_data holds itself", self.llm.generate, {"multi_modal_data": holds_itself()}, GREEDY)
        ids = []
        ids.append(ids)
        for value in (ids, holds_itself()):
            self.refused(InvalidArgumentError, "stop_token_ids holds itself", self.llm.generate, "a", SamplingParams(stop_token_ids=value))
            self.refused(TypeError, "dtype must be a str, not the", LLM, BART, dtype=value)

    def test_numbers_that_are_none_name_their_field(self):
        floats = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "length_penalty", "top_k", "max_tokens")
        for name in floats:
            for value in (math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf")):
                error = self.refused(InvalidArgumentError, (name, str(value)), self.llm.generate, "a", SamplingParams(**{name: value}))
                self.assertEqual(error.field, name)
        for name, value in (("logit_bias", {1: math.nan}), ("stop_token_ids", [1, math.inf]), ("stop_token_ids", np.array([math.nan]))):
            error = self.refused(InvalidArgumentError, (name, "nan" if "nan" in str(value) else "inf"), self.llm.generate, ["a"], SamplingParams(**{name: value}))
            self.assertEqual(error.field, name)
        self.refused(TypeError, "stop ", self.llm.generate, "a", SamplingParams(stop=b"x"))
        self.refused(TypeError, "temperature", self.llm.generate, "a", SamplingParams(temperature=1j))
        wanted = self.llm.generate("a", SamplingParams(temperature=0.0, max_tokens=2))[0].outputs[0].token_ids
        self.assertEqual(self.llm.generate("a", GREEDY)[0].outputs[0].token_ids, wanted)

    def test_sampling_params_are_of_their_class(self):
        for params in ({"temperature": 0}, "x", 5, BeamSearchParams(2), (p for p in [GREEDY])):
            words = ("sampling_params must be a SamplingParams", type(params).__name__ if params != 5 else "5")
            self.refused(TypeError, words, self.llm.generate, "a", params)
            self.refused(TypeError, words, self.llm.generate, ["a"], params)
            self.refused(TypeError, words, self.llm.score, ["a"], ["b"], params)
            self.refused(TypeError, words, self.llm.encode, "a", params)
        self.refused(TypeError, "sampling_params[1] must be a SamplingParams, not the dict", self.llm.generate, ["a", "b"], [GREEDY, {"n": 1}])
        self.refused(InvalidArgumentError, "sampling_params has 1 items for 2 prompts", self.llm.generate, ["a", "b"], [GREEDY])
        self.refused(InvalidArgumentError, "decoder_prompts has 1 items for 2 prompts", self.llm.score, ["a", "b"], ["c"])
        self.refused(TypeError, "params must be a BeamSearchParams, not the dict", self.llm.beam_search, "a", {"beam_width": 2})
        self.refused(InvalidArgumentError, ("beam_width", "0"), self.llm.beam_search, "a", BeamSearchParams(0))
        self.refused(InvalidArgumentError, ("length_penalty", "nan"), self.llm.beam_search, "a", BeamSearchParams(2, length_penalty=math.nan))

    def test_a_class_of_the_callers_says_its_own_fields(self):
        class Two(SamplingParams):
            def to_json(self):
                return '{"max_tokens": 2}'

        for prompts in ("a", ["a"]):
            self.assertEqual(len(self.llm.generate(prompts, Two(max_tokens=5, ignore_eos=True))[0].outputs[0].token_ids), 2)

    def test_text_is_unicode(self):
        for lone in ("\ud800", ["x", "\udfff"]):
            self.refused(InvalidArgumentError, ("stop", "half of a surrogate pair"), self.llm.generate, "a", SamplingParams(stop=lone))
        self.assertEqual(len(self.llm.generate("a", SamplingParams(stop="\U0001F600", max_tokens=1))), 1)
        self.refused(InvalidArgumentError, ("dtype", "half of a surrogate pair"), LLM, BART, dtype="\ud800")
        lone, both = "a\ud800", ("half of a surrogate pair", "'a\\ud800'")
        for call, arguments, field in (
            (self.llm.generate, (lone, GREEDY), "prompt"), (self.llm.generate, (["b", lone], GREEDY), "prompt"),
            (self.llm.generate, ({"prompt": lone}, GREEDY), "prompt"), (self.llm.encode, (lone,), "prompt"),
            (self.llm.generate, ({"encoder_prompt": "b", "decoder_prompt": lone}, GREEDY), "decoder_prompt"),
            (self.llm.score, ("b", lone), "decoder_prompt"), (self.llm.get_tokenizer().encode, (lone,), "text"),
        ):
            error = self.refused(InvalidArgumentError, (field, *both), call, *arguments)
            self.assertEqual(error.field, field)
        self.refused(InvalidArgumentError, ("model", "must be UTF-8"), LLM, "/tmp/mod\udce8le")

    def test_numbers_of_numpy_are_numbers(self):
        llm = LLM(BART, threads=np.int64(1), max_num_seqs=np.int32(2), enable_prefix_caching=np.bool_(True), device=None)
        self.assertEqual(llm.info["threads"], 1)
        llm.shutdown()

    def test_numbers_that_python_does_not_write(self):
        for params in (SamplingParams(max_tokens=1 << 50000), [SamplingParams(max_tokens=1 << 50000)]):
            with self.assertRaisesRegex(InvalidArgumentError, "^max_tokens must be a number of 64 bits, not a number of 50001 bits$"):
                self.llm.generate("a", params)
        self.refused(InvalidArgumentError, "max_tokens", self.llm.generate, "a", SamplingParams(max_tokens=10**400))

    def test_ids_have_32_bits(self):
        tokenizer = self.llm.get_tokenizer()
        for wrong in (2**31, -(2**40), np.int64(2**31)):
            for call in (tokenizer.decode, tokenizer.convert_ids_to_tokens):
                error = self.refused(InvalidArgumentError, ("token_ids", "up to 2147483647"), call, [5, wrong])
                self.assertEqual(error.field, "token_ids")
            self.refused(InvalidArgumentError, "token_ids", tokenizer.decode, wrong)
            self.refused(InvalidArgumentError, "prompt", self.llm.generate, [[5, wrong]], GREEDY)
        self.refused(InvalidArgumentError, "2147483647", tokenizer.decode, [2**31 - 1])
        self.assertEqual(tokenizer.decode(np.int64(5)), tokenizer.decode([5]))

    def test_of_the_tokenizer(self):
        """None reaches the extension module, whose own words are a list of C++'s overloads."""
        tokenizer = self.llm.get_tokenizer()
        for value in (1, None, "yes"):
            for name, call, given in (("add_special_tokens", tokenizer.encode, "a"), ("decoder_side", tokenizer.encode, "a"),
                                      ("skip_special_tokens", tokenizer.decode, [5]), ("decoder_side", tokenizer.convert_ids_to_tokens, [5]),
                                      ("decoder_side", tokenizer.convert_tokens_to_ids, ["a"])):
                self.refused(TypeError, (f"{name} must be True or False, not", str(value)), call, given, **{name: value})
        for name in ("source_lang", "target_lang"):
            self.refused(TypeError, f"{name} must be a str, not 5", tokenizer.encode, "a", **{name: 5})
            self.refused(InvalidArgumentError, (name, "half of a surrogate pair"), tokenizer.encode, "a", **{name: "\ud800"})
            self.assertEqual(self.refused(InvalidArgumentError, f"{name}: this model has no languages", tokenizer.encode, "a", **{name: "xx"}).field, name)
        self.assertEqual(tokenizer.encode("a", np.bool_(False)), tokenizer.encode("a", False))
        for call in (tokenizer.decode, tokenizer.convert_ids_to_tokens):
            error = self.refused(InvalidArgumentError, "token_ids[0]: -1 is outside the vocabulary", call, [-1])
            self.assertEqual(error.field, "token_ids")

    def test_tokens_that_a_vocabulary_lacks(self):
        vocabulary = Vocabulary(self.llm._model, True)
        vocabulary._ids = {"a": 5}  # without <unk>
        self.assertEqual(vocabulary.ids("target", ["a", "a"]), [5, 5])
        error = self.refused(InvalidArgumentError, "target: the vocabulary has no token 'b', and none for unknown ones", vocabulary.ids, "target", ["a", "b"])
        self.assertEqual(error.field, "target")

    def test_arguments_of_vllm_that_mean_nothing_at_their_default(self):
        wanted = self.llm.generate("a", GREEDY)[0].outputs[0].token_ids
        defaults = {"lora_request": None, "priority": None, "tokenization_kwargs": None}
        self.assertEqual(self.llm.generate("a", GREEDY, **defaults)[0].outputs[0].token_ids, wanted)
        for name, value in (("lora_request", object()), ("priority", [1]), ("tokenization_kwargs", {"a": 1})):
            error = self.refused(UnsupportedError, ("LLM.generate", name), self.llm.generate, "a", GREEDY, **{name: value})
            self.assertEqual(error.field, name)
        beams = self.llm.beam_search(["a"], BeamSearchParams(2, max_tokens=2), lora_request=None, use_tqdm=False)
        self.assertEqual(len(beams[0].sequences), 2)
        self.refused(UnsupportedError, "lora_request", self.llm.beam_search, "a", BeamSearchParams(2), lora_request=1)

    def test_ranges_of_parameters_that_vllm_does_not_have(self):
        """docs/python.md has the list."""
        for name, value in (("temperature", 2.1), ("n", 17), ("stop", ["a"] * 5), ("logprobs", -1), ("logprobs", 21), ("prompt_logprobs", -1), ("bad_words", ["a"] * 129),
                            ("logit_bias", {5: 101}), ("logit_bias", dict.fromkeys(range(1025), 1)), ("truncate_prompt_tokens", -1), ("presence_penalty", 2.1)):
            error = self.refused(InvalidArgumentError, name, self.llm.generate, "a", SamplingParams(**{"max_tokens": 1, name: value}))
            self.assertEqual(error.field, name)
        for name, value in (("temperature", 2), ("n", 16), ("stop", ["a"] * 4), ("logprobs", 20), ("logit_bias", {5: 100}), ("bad_words", ["b"] * 128)):
            self.llm.generate("a", SamplingParams(**{"max_tokens": 1, name: value}))

    def test_bars_are_flags_or_classes(self):
        for value in (5, "yes", [1]):
            self.refused(TypeError, ("use_tqdm must be True, False or a class", str(value)), self.llm.generate, ["a"], GREEDY, use_tqdm=value)
            self.refused(TypeError, "use_tqdm", self.llm.generate, "a", GREEDY, use_tqdm=value)

    def test_keys_of_numpy_are_keys(self):
        wanted = self.llm.generate("a", SamplingParams(temperature=0, max_tokens=3, logit_bias={7: 100.0}))[0].outputs[0].token_ids
        self.assertIn(7, wanted)
        for key in (np.int64(7), np.int32(7), np.uint8(7)):
            for prompts in ("a", ["a"]):
                bias = SamplingParams(temperature=0, max_tokens=3, logit_bias={key: np.float32(100)})
                self.assertEqual(self.llm.generate(prompts, bias)[0].outputs[0].token_ids, wanted)

    def test_attributes_of_any_name_are_no_other_fields(self):
        """The engine warns of those that it does not know."""
        for name in ("max_token", 'a": 1, "max_tokens', "b\\", "\u00e4", "line\nbreak"):
            params = SamplingParams(temperature=0, max_tokens=2, ignore_eos=True)
            setattr(params, name, 3)
            self.assertEqual(json.loads(params.to_json())[name], 3)
            for prompts in ("a", ["a"]):
                self.assertEqual(len(self.llm.generate(prompts, params)[0].outputs[0].token_ids), 2, name)

    def test_seconds(self):
        for prompts in ("a", ["a"]):
            for error, value in ((TypeError, "3"), (TypeError, None), (ValueError, math.nan), (ValueError, math.inf), (ValueError, -1), (ValueError, 10**7)):
                self.refused(error, ("timeout", str(value)), self.llm.generate, prompts, GREEDY, timeout=value)

    def test_rates_of_audio(self):
        samples = np.zeros(100, np.float32)
        for error, rate in ((TypeError, None), (TypeError, "16000"), (ValueError, math.nan), (ValueError, math.inf), (ValueError, 1e12), (ValueError, 0), (ValueError, 1.5)):
            self.refused(error, str(rate).split("e")[0][:3], self.llm.generate, {"multi_modal_data": {"audio": (samples, rate)}}, GREEDY)

    def test_of_a_loop(self):
        llm = AsyncLLM(EngineArgs(BART, threads=1))

        async def ask(prompt, params=GREEDY):
            async for _ in llm.generate(prompt, params):
                pass

        for error, words, arguments in (
            (TypeError, ("prompt", "bytes"), (b"hello",)), (TypeError, ("prompt", "None"), (None,)),
            (TypeError, ("sampling_params", "dict"), ("a", {"n": 1})), (InvalidArgumentError, ("temperature", "nan"), ("a", SamplingParams(temperature=math.nan))),
            (InvalidArgumentError, "'x'", (holds_itself(),)),
        ):
            self.refused(error, words, lambda given=arguments: asyncio.run(ask(*given)))
        llm.shutdown()
        self.refused(TypeError, "threads", AsyncLLM, EngineArgs(BART), threads=1)


class OfLoading(Wrong):
    def test_names_of_types_and_zeros_of_other_libraries(self):
        for dtype, wanted in (("half", "float16"), ("float", "float32"), ("auto", "auto")):
            with LLM(BART, dtype=dtype, threads=0) as llm:
                self.assertEqual(llm.info["dtype"], wanted)
        error = self.refused(InvalidArgumentError, "float7", LLM, BART, dtype="float7")
        self.assertEqual((str(error), error.field), ("dtype float7: unknown; this version has auto, float32, bfloat16, float16", "dtype"))
        self.assertEqual(self.refused(ValueError, "kv_cache_dtype x", LLM, BART, kv_cache_dtype="x").field, "kv_cache_dtype")

    def test_compute_types_are_those_of_the_command_line(self):
        wanted = {"default": ("auto", "none"), "auto": None, "float32": ("float32", "none"), "float16": ("float16", "none")}
        wanted |= {"bfloat16": ("bfloat16", "none"), "int8": ("auto", "int8"), "INT8_FLOAT16": ("float16", "int8")}
        wanted |= {f"int8_{dtype}": (dtype, "int8") for dtype in ("float32", "float16", "bfloat16")}
        for name, types in wanted.items():
            for model in (Translator(MODELS / "marian-two-vocabularies", compute_type=name, intra_threads=1), WhisperModel(WHISPER, compute_type=name, cpu_threads=1)):
                info = model._model.info
                if types is not None:  # auto: what the machine has
                    self.assertEqual((info["dtype"], info["quantization"]), types, name)
                model.shutdown()
        for face, path in ((Translator, BART), (WhisperModel, WHISPER)):
            known = "default, auto, float32, float16, bfloat16, int8, int8_float32, int8_float16, int8_bfloat16"
            self.refused(UnsupportedError, ("'int4'", known), face, path, compute_type="int4")
            self.refused(UnsupportedError, ("'int16'", "float16 is as small"), face, path, compute_type="int16")
            self.refused(TypeError, ("compute_type", "dict"), face, path, compute_type={"cpu": "int8"})

    def test_paths_and_names(self):
        faces = ((LLM, "model"), (AsyncLLM, "model"), (Translator, "model_path"), (WhisperModel, "model_size_or_path"))
        for face, name in faces:
            self.refused(InvalidArgumentError, (name, "NUL"), face, f"{BART}\0x")
            self.refused(TypeError, (name, "bytes"), face, b"model")
            self.refused(TypeError, (name, "None"), face, None)
        self.refused(InvalidArgumentError, ("revision", "NUL"), LLM, BART, revision="a\0b")
        for face, name, model in ((LLM, "download_dir", BART), (AsyncLLM, "download_dir", BART), (WhisperModel, "download_root", WHISPER)):
            error = self.refused(InvalidArgumentError, f"{name} must be the name of a folder, not the str ''", face, model, **{name: ""})
            self.assertEqual(error.field, name)
            self.refused(TypeError, f"{name} must be a name or a path, not 5", face, model, **{name: 5})
        whisper = WhisperModel(WHISPER, cpu_threads=1)
        self.refused(InvalidArgumentError, ("audio", "NUL"), whisper.transcribe, "a.wav\0x")
        self.refused(InvalidArgumentError, ("temperature", "nan"), whisper.transcribe, np.zeros(100, np.float32), temperature=math.nan)
        self.refused(InvalidArgumentError, ("no_speech_threshold", "nan"), whisper.transcribe, np.zeros(100, np.float32), no_speech_threshold=math.nan)
        self.refused(TypeError, "suppress_tokens", whisper.transcribe, np.zeros(100, np.float32), suppress_tokens="-1")
        whisper.shutdown()
        self.refused(InvalidArgumentError, ("input_file", "NUL"), transept.decode_audio, "a.wav\0x")

    def test_numbers(self):
        for name, value in (("swap_space", math.nan), ("swap_space", -1), ("watermark", math.inf), ("kv_cache_memory_bytes", -1), ("max_queued_requests", -1)):
            self.refused(InvalidArgumentError, (name, str(value)), LLM, BART, **{name: value})
        for name in ("swap_space", "kv_cache_memory_bytes", "max_queued_requests"):
            self.refused(TypeError, (name, "'4'"), LLM, BART, **{name: "4"})
        self.refused(InvalidArgumentError, ("cpu_threads", "-1"), WhisperModel, WHISPER, cpu_threads=-1)
        self.refused(InvalidArgumentError, ("intra_threads", "-1"), Translator, BART, intra_threads=-1)
        self.refused(InvalidArgumentError, ("inter_threads", "0"), Translator, BART, inter_threads=0)

    def test_types(self):
        texts = ("attention_backend", "cpu_affinity", "dtype", "encode_slice", "hf_token", "isa", "kv_cache_dtype", "preemption_mode", "quantization", "revision")
        whole = ("block_size", "max_model_len", "max_num_batched_tokens", "max_num_encoder_tokens", "max_num_seqs", "replicas", "seed", "threads")
        kinds = {**dict.fromkeys(texts, "a str"), **dict.fromkeys(whole, "a whole number"), "watermark": "a number", "share_identical_inputs": "True or False",
                 "mllama_strict_mask": "True or False"}
        for name, words in {**kinds, "header_font": "a name or a path", "shortlist": "a name or a path"}.items():
            self.refused(TypeError, f"{name} must be {words}, not the list [5]", LLM, BART, **{name: [5]})
            wrong, shown = (5, "5") if "str" in words or "path" in words else ("4", "the str '4'")
            self.refused(TypeError, f"{name} must be {words}, not {shown}", LLM, BART, **{name: wrong})
        self.refused(TypeError, "threads must be a whole number, not True", LLM, BART, threads=True)
        self.refused(TypeError, "max_num_seqs must be a whole number, not the str '2'", WhisperModel, WHISPER, max_num_seqs="2")
        self.refused(TypeError, "local_files_only must be True or False, not the str 'x'", WhisperModel, WHISPER, local_files_only="x")
        with LLM(BART, threads=1, max_num_seqs=4.0, share_identical_inputs=1, watermark=np.float32(0.5), seed=2**40) as llm:
            self.assertEqual(llm.info["threads"], 1)
        WhisperModel(WHISPER, cpu_threads=1, local_files_only=1).shutdown()

    def test_levels_of_the_log(self):
        error = self.refused(InvalidArgumentError, ("level must be one of error, warning, info", "'x'"), transept.set_log_level, "x")
        self.assertEqual((error.field, error.code), ("level", "invalid_argument"))
        for level in (2, None, ["info"]):
            self.refused(TypeError, "level must be a str, not", transept.set_log_level, level)

    def test_a_bundled_name_says_where_bundled_models_are(self):
        error = self.refused(transept.NotFoundError, "g2p", LLM, "g2p")
        if "bundled: " not in str(error):  # TRANSEPT_MODELS, or a build in a clone
            self.assertIn("none is bundled here: a clone, the tarball and the .deb", str(error))
            self.assertIn("TRANSEPT_MODELS", str(error))


class OfWhisper(Wrong):
    @classmethod
    def setUpClass(cls):
        cls.model = WhisperModel(WHISPER, cpu_threads=1)

    @classmethod
    def tearDownClass(cls):
        cls.model.shutdown()

    def refused_field(self, field, words, **options):
        for face in (self.model, BatchedInferencePipeline(self.model)):
            if face is not self.model and "vad_filter" in options:
                continue
            error = self.refused(InvalidArgumentError, (field, words), face.transcribe, noise(1), language="en", **options)
            self.assertEqual(error.field, field)

    def test_errors_name_arguments_of_the_face(self):
        self.refused_field("beam_size", "0", beam_size=0)
        self.refused_field("beam_size", "2.5", beam_size=2.5)
        self.assertEqual(self.refused(InvalidArgumentError, "log_prob_threshold must be", self.model.transcribe, noise(1), language="en", log_prob_threshold=math.nan).field,
                         "log_prob_threshold")
        error = self.refused(InvalidArgumentError, "max_num_seqs", WhisperModel, WHISPER, max_num_seqs=-1)
        self.assertEqual(error.field, "max_num_seqs")

    def test_types(self):
        whole = dict.fromkeys(("beam_size", "best_of"), ("a whole number", ("5", [5], True)))
        thresholds = ("patience", "compression_ratio_threshold", "log_prob_threshold", "no_speech_threshold", "hallucination_silence_threshold")
        numbers = dict.fromkeys(thresholds, ("a number", ("2", [2], True, b"2")))
        texts = dict.fromkeys(("prefix", "hotwords", "prepend_punctuations", "append_punctuations"), ("a str", (5, ["a", "b"], True, b"a")))
        flags = dict.fromkeys(("vad_filter", "word_timestamps", "without_timestamps", "condition_on_previous_text"), ("True or False", ("yes", 2, 1.0, [1])))
        batched = BatchedInferencePipeline(self.model)
        for name, (words, values) in {**whole, **numbers, **texts, **flags, "initial_prompt": ("a str", (5, b"a", {"a": 1}))}.items():
            for value in values:
                shown = f"{name} must be {words}, not {value}" if isinstance(value, (bool, int, float)) else f"{name} must be {words}, not the {type(value).__name__} "
                for face in (self.model, batched):
                    self.refused(TypeError, shown, face.transcribe, noise(1), language="en", **{name: value})
        self.refused(TypeError, "batch_size must be a whole number, not the str '8'", batched.transcribe, noise(1), language="en", batch_size="8")
        self.refused(TypeError, "vad_filter must be True or False, not the str 'yes'", self.model.detect_language, noise(1), vad_filter="yes")

    def test_flags_may_be_numbers(self):
        flags = {"vad_filter": False, "word_timestamps": True, "condition_on_previous_text": False, "without_timestamps": False, "suppress_blank": True, "multilingual": False}
        wanted = None
        for of in (bool, int, np.bool_, np.int64):
            segments, info = self.model.transcribe(noise(2), language="en", temperature=0, beam_size=1, **{name: of(value) for name, value in flags.items()})
            got = [(s.text, s.start, s.end, [w.word for w in s.words]) for s in segments]
            wanted = got if wanted is None else wanted
            self.assertEqual(got, wanted)
            self.assertIs(info.transcription_options.word_timestamps, True)
        for value in (1, np.bool_(True)):
            self.assertEqual(len(self.model.detect_language(noise(1), vad_filter=value)), 3)
            BatchedInferencePipeline(self.model).transcribe(noise(1), language="en", vad_filter=value)[0].close()

    def test_clips(self):
        self.refused(TypeError, ("clip_timestamps must be a str or a list", "5"), self.model.transcribe, noise(1), clip_timestamps=5)
        self.refused(TypeError, ("clip_timestamps must be a str or a list", "bytes"), self.model.transcribe, noise(1), clip_timestamps=b"5")
        error = self.refused(InvalidArgumentError, "a clip has start and end", BatchedInferencePipeline(self.model).transcribe, noise(1), clip_timestamps=[{"start": 0}])
        self.assertEqual(error.field, "clip_timestamps")
        self.refused(TypeError, "clip_timestamps", self.model.transcribe, noise(1), clip_timestamps=["a"])
        error = self.refused(InvalidArgumentError, "clip_timestamps: 'x' is not a number of seconds", self.model.transcribe, noise(1), language="en", clip_timestamps="x")
        self.assertEqual(error.field, "clip_timestamps")

    def test_a_pipeline_has_a_model(self):
        for model in ("x", None, WHISPER):
            self.refused(TypeError, "model must be a WhisperModel, not", BatchedInferencePipeline, model)


class OfTranslator(Wrong):
    @classmethod
    def setUpClass(cls):
        cls.translator = Translator(MODELS / "marian-two-vocabularies", intra_threads=1)
        tokenizer = cls.translator.get_tokenizer()
        cls.source = tokenizer.convert_ids_to_tokens(tokenizer.encode("The ship"), decoder_side=False)

    @classmethod
    def tearDownClass(cls):
        cls.translator.shutdown()

    def test_errors_name_arguments_of_the_face(self):
        batch, one = self.translator.translate_batch, self.translator.generate_tokens
        for field, arguments in (("num_hypotheses", {"num_hypotheses": 3, "beam_size": 2}), ("sampling_temperature", {"sampling_temperature": -1, "sampling_topk": 0, "beam_size": 1}),
                                 ("sampling_topp", {"sampling_topp": 2, "sampling_topk": 0, "beam_size": 1}), ("beam_size", {"beam_size": 10**6})):
            error = self.refused(InvalidArgumentError, field, batch, [self.source], **arguments)
            self.assertEqual(error.field, field)
            self.assertNotRegex(str(error), r"num_beams|max_tokens|top_k|top_p|\bn\b")
        error = self.refused(InvalidArgumentError, "sampling_temperature", lambda: list(one(self.source, sampling_topk=0, sampling_temperature=-1)))
        self.assertEqual(error.field, "sampling_temperature")
        most = self.translator._model.info["max_encoder_len"]
        long, words = ["a"] * (most + 1), f"source has {most + 1} tokens, more than the {most} positions of the encoder; max_input_length={most} keeps the first so many"
        for call in (lambda: batch([self.source, long]), lambda: list(one(long)), lambda: self.translator.score_batch([long], [["a"]])):
            error = self.refused(transept.OutOfRangeError, words, call)
            self.assertEqual((str(error), error.field), (words, "source"))
        self.assertEqual(len(batch([long], max_input_length=most, max_decoding_length=2)), 1)

    def test_tokens_are_lists_of_str(self):
        batch, score, one = self.translator.translate_batch, self.translator.score_batch, self.translator.generate_tokens
        for source in ("hello", b"hello", 5, None):
            self.refused(TypeError, "source must be a list of lists of tokens, not", batch, source)
            self.refused(TypeError, "source must be a list of lists of tokens, not", score, source, source)
        for tokens in ("hello", *BYTES, 5, None):
            self.refused(TypeError, "source[0] must be a list of tokens, such as", batch, [tokens])
            self.refused(TypeError, "source[1] must be a list of tokens, such as", score, [self.source, tokens], [self.source] * 2)
            self.refused(TypeError, "target[0] must be a list of tokens, such as", score, [self.source], [tokens])
            self.refused(TypeError, "source must be a list of tokens", lambda given=tokens: list(one(given)))
            self.refused(TypeError, "suppress_sequences[0] must be", batch, [self.source], suppress_sequences=[tokens])
            if tokens is not None:
                self.refused(TypeError, "target_prefix[0] must be", batch, [self.source], target_prefix=[tokens])
                self.refused(TypeError, "target_prefix must be", lambda given=tokens: list(one(self.source, given)))
            self.refused(TypeError, "tokens must be", self.translator.get_tokenizer().convert_tokens_to_ids, tokens)
        for token in (b"a", 5, None, ["a"]):
            self.refused(TypeError, "source[0][1]: a token is a str, not", batch, [["a", token]])
            self.refused(TypeError, "target_prefix[0][0]: a token is a str, not", batch, [self.source], [[token]])
        self.refused(TypeError, "source must be an iterable", lambda: list(self.translator.translate_iterable("hello")))
        self.refused(TypeError, "target must be an iterable", lambda: list(self.translator.score_iterable([self.source], "hello")))
        self.refused(TypeError, "source[0] must be", lambda: list(self.translator.translate_iterable(["hello"])))
        wanted = batch([self.source], max_decoding_length=4)[0].hypotheses
        for same in (tuple(self.source), np.array(self.source)):
            self.assertEqual(batch((same,), [None], max_decoding_length=4)[0].hypotheses, wanted)

    def test_numbers(self):
        for name, values in {"beam_size": (0, -1), "num_hypotheses": (0,), "max_decoding_length": (0,), "min_decoding_length": (-1,), "max_batch_size": (-1,),
                             "max_input_length": (-1,), "no_repeat_ngram_size": (-1,), "sampling_topk": (-1,)}.items():
            for value in values:
                error = self.refused(ValueError, (name, str(value)), self.translator.translate_batch, [self.source], **{name: value})
                self.assertEqual(error.field, name)
            for value in ("2", 2.5, None, True, b"2"):
                self.refused(TypeError, (name, "whole number"), self.translator.translate_batch, [self.source], **{name: value})
        for name in ("length_penalty", "repetition_penalty", "sampling_topp", "sampling_temperature"):
            self.refused(ValueError, (name, "nan"), self.translator.translate_batch, [self.source], **{name: math.nan})
        self.refused(ValueError, ("batch_type", "'words'"), self.translator.translate_batch, [self.source], batch_type="words")
        self.refused(ValueError, ("max_batch_size", "-1"), self.translator.score_batch, [self.source], [self.source], max_batch_size=-1)
        self.refused(ValueError, ("max_decoding_length", "0"), lambda: list(self.translator.generate_tokens(self.source, max_decoding_length=0)))


if __name__ == "__main__":
    unittest.main()
