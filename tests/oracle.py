"""The reference's answers: transformers' models in double precision, decoded greedily by computing the whole prefix anew for
every token, without a cache. Runs in a virtual environment with torch, transformers, tokenizers and safetensors.

What a request means stands in docs/api.md. Score processors are transformers' own classes where it has them.
"""
import json
import math

import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoConfig, GenerationConfig
from transformers.generation import logits_process as processors

import families
import shortlist
import t5_family

EDGE = 2e-3  # least gap between the two best scores of a step: below it two right engines may differ


def load_state(folder):
    """All tensors of a checkpoint, widened, named as transformers names them."""
    state = {}
    for path in sorted(folder.glob("*.safetensors")):
        state.update(load_file(path))
    return {name: tensor.double() for name, tensor in state.items()}


def load_model(folder):
    raw = json.loads((folder / "config.json").read_text())
    if t5_family.is_t5(raw):
        model = t5_family.load_model(folder, load_state(folder), raw)
        model.generation_config = GenerationConfig.from_pretrained(folder)
        return model
    config = AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0])(config).double().eval()
    model.generation_config = GenerationConfig.from_pretrained(folder)
    heads = ("model.", "lm_head.", "final_logits_bias")
    state = {name if name.startswith(heads) else f"model.{name}": tensor for name, tensor in load_state(folder).items()}
    if "model.shared.weight" in state:
        for name in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"):
            state.setdefault(name, state["model.shared.weight"])
    state.setdefault("lm_head.weight", state["model.decoder.embed_tokens.weight"])
    missing, unexpected = model.load_state_dict(state, strict=False)
    computed = {f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")} if has_computed_positions(config) else set()
    assert not unexpected and set(missing) <= {"final_logits_bias", *computed}, (missing, unexpected)
    if not config.tie_word_embeddings:  # loading must not have tied what the files keep apart
        assert not torch.equal(model.lm_head.weight, model.model.decoder.embed_tokens.weight)
    if config.model_type == "blenderbot-small" and config.scale_embedding:
        # transformers 4 scales on both sides, as the published model was trained; 5 has lost it in the decoder.
        scaled = state["model.shared.weight"] * math.sqrt(config.d_model)
        model.model.decoder.embed_tokens = torch.nn.Embedding.from_pretrained(scaled)
    return model


def has_computed_positions(config):
    return families.LAYOUTS[config.model_type].offset is None


class Unfit(Exception):
    """A request about whose answer the rules say nothing."""


class Oracle:
    def __init__(self, folder, tokenizer_file):
        self.model = load_model(folder)
        self.tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self.config = json.loads((folder / "config.json").read_text())
        self.defaults = json.loads((folder / "generation_config.json").read_text())
        self.start, self.bos, self.eos = (self.defaults[f"{key}_token_id"] for key in ("decoder_start", "bos", "eos"))
        self.vocab_size = self.config["vocab_size"]  # the encoder's
        self.bias = self.model.final_logits_bias.clone() if (folder / shortlist.NAME).exists() else None
        self.shortlist = None if self.bias is None else shortlist.Shortlist(folder / shortlist.NAME, self.config["share_encoder_decoder_embeddings"])

    # ---- prompts

    def ids_of_text(self, text, special=True):
        return self.tokenizer.encode(text, add_special_tokens=special).ids

    def text_of_ids(self, ids, skip_special=True):
        return self.tokenizer.decode(ids, skip_special_tokens=skip_special)

    def singleton(self, prompt, special):
        """(text or None, ids) of any singleton form."""
        if isinstance(prompt, dict):
            prompt = next(prompt[key] for key in ("prompt_token_ids", "prompt_tokens", "prompt") if key in prompt)
        return (prompt, self.ids_of_text(prompt, special)) if isinstance(prompt, str) else (None, list(prompt))

    def prompts(self, request):
        """((encoder text, ids), (decoder text, ids)) of a request."""
        special = request.get("add_special_tokens", True)
        prompt, decoder = request["prompt"], request.get("decoder_prompt")
        if isinstance(prompt, dict) and "encoder_prompt" in prompt:
            prompt, decoder = prompt["encoder_prompt"], prompt.get("decoder_prompt")
        encoder_text, encoder_ids = self.singleton(prompt, special)
        if "truncate_prompt_tokens" in request:
            encoder_ids = encoder_ids[-request["truncate_prompt_tokens"]:]
        if decoder is None:
            return (encoder_text, encoder_ids), (None, self.default_prompt())
        decoder_text, decoder_ids = self.singleton(decoder, True)
        if decoder_text is not None and decoder_ids[-1:] == [self.eos]:
            decoder_ids = decoder_ids[:-1]
        if decoder_ids[:1] != [self.start]:
            decoder_ids = [self.start] + decoder_ids
        return (encoder_text, encoder_ids), (decoder_text, decoder_ids)

    def default_kind(self):
        return "start" if t5_family.is_t5(self.config) else families.LAYOUTS[self.config["model_type"]].default

    def longest(self):
        """The longest encoder input that a request may have; of T5, that these cases have."""
        return self.config.get("max_position_embeddings", t5_family.LONGEST)

    def default_prompt(self):
        second = {"start": None, "bos": self.bos, "language": self.defaults.get("forced_bos_token_id")}[self.default_kind()]
        return [self.start] + ([second] if second not in (None, self.start) else [])

    def names_language(self, request):
        """The default prompt holds the target language, be it the start token itself: it is not forced again."""
        return self.default_kind() == "language" and self.has_default_prompt(request) and "forced_bos_token_id" in self.defaults

    def has_default_prompt(self, request):
        prompt = request["prompt"]
        explicit = prompt.get("decoder_prompt") if isinstance(prompt, dict) else None
        return request.get("decoder_prompt") is None and explicit is None

    # ---- scores

    def restrict(self, encoder_ids, decoder_ids):
        """From here on the model's logits are -inf but for what a shortlist beside it allows: by their final bias, so that
        transformers' own generate obeys it, too. Generated tokens are in the set, but for forced ones, which no case lets be
        outside; so what stands behind the start token may as well be the prompt's."""
        if self.shortlist is not None:
            allowed = self.shortlist.ids(encoder_ids, [self.eos, *decoder_ids[1:]])
            self.model.final_logits_bias = torch.full_like(self.bias, -math.inf)
            self.model.final_logits_bias[0, allowed] = self.bias[0, allowed]

    @torch.inference_mode()
    def logits(self, encoder_ids, decoder_ids):
        """[len(decoder_ids), vocab_size], the final bias included."""
        self.restrict(encoder_ids, decoder_ids)
        ids = torch.tensor([encoder_ids])
        out = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), decoder_input_ids=torch.tensor([decoder_ids]),
                         use_cache=False)
        return out.logits[0]

    def edited(self, request, scores, encoder_ids, prompt_ids, generated, max_tokens):
        """Scores of the next token after everything that the request and the model's files ask for. [vocab_size]."""
        setting = lambda name, default=None: request.get(name, self.defaults.get(name, default))
        scores, prefix = scores[None].clone(), torch.tensor([prompt_ids + generated])
        for token, bias in request.get("logit_bias", {}).items():
            scores[0, int(token)] += bias if bias > -100 else -math.inf
        if setting("repetition_penalty", 1.0) != 1.0:
            scores = processors.RepetitionPenaltyLogitsProcessor(setting("repetition_penalty"))(prefix, scores)
        for token in set(generated):
            scores[0, token] -= request.get("frequency_penalty", 0) * generated.count(token)
            scores[0, token] -= request.get("presence_penalty", 0)
        if setting("no_repeat_ngram_size", 0):
            scores = processors.NoRepeatNGramLogitsProcessor(setting("no_repeat_ngram_size"))(prefix, scores)
        if setting("encoder_no_repeat_ngram_size", 0):
            processor = processors.EncoderNoRepeatNGramLogitsProcessor(setting("encoder_no_repeat_ngram_size"), torch.tensor([encoder_ids]))
            scores = processor(prefix, scores)
        banned = self.banned_words(request)
        if banned:
            tail = torch.tensor([generated], dtype=torch.long)  # only generated tokens may begin a banned word
            scores = processors.NoBadWordsLogitsProcessor(banned, eos_token_id=None)(tail, scores)
        if len(generated) < request.get("min_tokens", self.defaults.get("min_length", 0) - len(prompt_ids)):
            scores[0, self.eos] = -math.inf
        if len(generated) < request.get("min_tokens", 0):  # the files' min_length says nothing about a request's own ends
            scores[0, request.get("stop_token_ids", [])] = -math.inf
        forces_bos = setting("forced_bos_token_id") is not None and not self.names_language(request)
        if forces_bos and len(prompt_ids) == 1 and not generated:
            scores = self.only(setting("forced_bos_token_id"))
        if setting("forced_eos_token_id") is not None and len(generated) == max_tokens - 1:
            scores = self.only(setting("forced_eos_token_id"))
        if setting("suppress_tokens"):
            scores[0, setting("suppress_tokens")] = -math.inf
        if setting("begin_suppress_tokens") and not generated:
            scores[0, setting("begin_suppress_tokens")] = -math.inf
        return torch.log_softmax(scores[0], -1) if self.defaults.get("renormalize_logits") else scores[0]

    def only(self, token):
        scores = torch.full((1, self.model.lm_head.out_features), -math.inf, dtype=torch.double)
        scores[0, token] = 0
        return scores

    def banned_words(self, request):
        """Words are tokenized bare and with a space before; the second counts if it has as many ids and another first."""
        banned = [list(ids) for ids in request.get("bad_words_ids", []) + (self.defaults.get("bad_words_ids") or [])]
        for word in request.get("bad_words", []):
            bare, spaced = self.ids_of_text(word, False), self.ids_of_text(" " + word, False)
            banned.append(bare)
            if len(spaced) == len(bare) and spaced[0] != bare[0]:
                banned.append(spaced)
        return banned

    # ---- answers

    def max_tokens(self, request, prompt_ids):
        if "max_tokens" in request:
            return request["max_tokens"]
        return self.defaults.get("max_length", self.longest()) - len(prompt_ids)

    def generate(self, request):
        """(expected result, least gap between the two best scores of a step)."""
        (encoder_text, encoder_ids), (prompt_text, prompt_ids) = self.prompts(request)
        max_tokens, gap = self.max_tokens(request, prompt_ids), math.inf
        generated, entries, total, finish, stop_reason, text = [], [], 0.0, None, None, ""
        while finish is None:
            raw = self.logits(encoder_ids, prompt_ids + generated)[-1]
            scores = self.edited(request, raw, encoder_ids, prompt_ids, generated, max_tokens)
            best = torch.topk(scores, 2)
            gap = min(gap, float(best.values[0] - best.values[1]))
            token = int(best.indices[0])
            generated.append(token)
            logprobs = torch.log_softmax(scores, -1)
            total += float(logprobs[token])
            entries.append(entry(logprobs, token, request.get("logprobs") or 0))
            finish, stop_reason, text = self.finish(request, prompt_ids, generated, max_tokens)
        output = {"index": 0, "text": text, "token_ids": generated, "cumulative_logprob": round(total, 6),
                  "logprobs": entries if request.get("logprobs") is not None else None, "finish_reason": finish,
                  "stop_reason": stop_reason}
        result = {"id": request["id"], "encoder_prompt": encoder_text, "encoder_prompt_token_ids": encoder_ids,
                  "prompt": prompt_text, "prompt_token_ids": prompt_ids, "outputs": [output]}
        if request.get("prompt_logprobs") is not None:
            result["prompt_logprobs"] = self.prompt_logprobs(encoder_ids, prompt_ids, request["prompt_logprobs"])
        return result, gap

    @torch.inference_mode()
    def check_against_generate(self, request, expected):
        """Where transformers' own generate can express a request, it must give the same tokens."""
        known = {"id", "prompt", "decoder_prompt", "max_tokens", "temperature", "num_beams", "logprobs", "add_special_tokens",
                 "repetition_penalty", "no_repeat_ngram_size", "suppress_tokens", "min_tokens"}
        if not set(request) <= known or request["temperature"] != 0 or self.names_language(request):
            return 0
        wanted = expected["outputs"][0]["token_ids"]
        options = {k: request[k] for k in ("repetition_penalty", "no_repeat_ngram_size", "suppress_tokens") if k in request}
        if "min_tokens" in request:
            options["min_new_tokens"] = request["min_tokens"]
        if "max_tokens" in request:
            options["max_new_tokens"] = request["max_tokens"]
        else:
            options["max_length"] = len(expected["prompt_token_ids"]) + self.max_tokens(request, expected["prompt_token_ids"])
        ids = torch.tensor([expected["encoder_prompt_token_ids"]])
        self.restrict(expected["encoder_prompt_token_ids"], expected["prompt_token_ids"])
        got = self.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), num_beams=1, do_sample=False,
                                  decoder_input_ids=torch.tensor([expected["prompt_token_ids"]]), early_stopping=False, **options)
        got = got[0, len(expected["prompt_token_ids"]):].tolist()
        assert got == wanted, (request, got, wanted)
        return 1

    def finish(self, request, prompt_ids, generated, max_tokens):
        """(finish_reason or None, stop_reason, text so far)."""
        token, included = generated[-1], request.get("include_stop_str_in_output", False)
        forced = request.get("forced_eos_token_id", self.defaults.get("forced_eos_token_id")) == token and len(generated) == max_tokens
        ended = token == self.eos and not request.get("ignore_eos", False) and not forced
        by_id = token in request.get("stop_token_ids", []) and len(generated) > request.get("min_tokens", 0)
        shown = generated[:-1] if (ended or by_id) and not included else generated
        text = self.continuation(prompt_ids, shown, request.get("skip_special_tokens", True))
        if ended or by_id:
            return "stop", (token if by_id and not ended else None), text
        if len(generated) > request.get("min_tokens", 0):
            for stop in request.get("stop", []):
                if stop in text:
                    return "stop", stop, text[:text.index(stop) + (len(stop) if included else 0)]
        return ("length" if len(generated) >= max_tokens else None), None, text

    def continuation(self, prompt_ids, generated, skip_special):
        before = self.text_of_ids(prompt_ids, skip_special)
        whole = self.text_of_ids(prompt_ids + generated, skip_special)
        if not whole.startswith(before):
            raise Unfit("a prompt that ends inside a character")
        return whole[len(before):]

    def score(self, request):
        (encoder_text, encoder_ids), (prompt_text, prompt_ids) = self.prompts(request)
        entries = self.prompt_logprobs(encoder_ids, prompt_ids, request.get("prompt_logprobs", 0))
        chosen = [entries[i][str(token)]["logprob"] for i, token in enumerate(prompt_ids) if i > 0]
        return {"id": request["id"], "encoder_prompt": encoder_text, "encoder_prompt_token_ids": encoder_ids,
                "prompt": prompt_text, "prompt_token_ids": prompt_ids, "prompt_logprobs": entries,
                "score": round(sum(chosen), 6)}

    def prompt_logprobs(self, encoder_ids, prompt_ids, k):
        logprobs = torch.log_softmax(self.logits(encoder_ids, prompt_ids), -1)
        return [None] + [entry(logprobs[i - 1], prompt_ids[i], k) for i in range(1, len(prompt_ids))]


def entry(logprobs, chosen, k):
    """The k best and the chosen token of one position. logprobs: [vocab_size]."""
    tokens = [int(t) for t in torch.topk(logprobs, k).indices] if k else []
    tokens = [t for t in tokens if math.isfinite(logprobs[t])]
    tokens += [chosen] if chosen not in tokens else []
    return {str(t): {"logprob": round(float(logprobs[t]), 6), "rank": int((logprobs > logprobs[t]).sum()) + 1} for t in tokens}
