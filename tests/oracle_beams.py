"""The reference's beam search: every beam's whole prefix is computed anew for every token, by the rules of transformers'
GenerationMixin._beam_search. What generate of transformers itself can express is compared with it, token by token."""
import math

import torch

from oracle import Unfit

EDGE = 1e-4  # least gap in score of any decision: below it two right engines may differ


def settings(oracle, request):
    value = lambda name, default: request.get(name, oracle.defaults.get(name, default))
    beams = request.get("num_beams") or (request.get("n", 1) if request.get("use_beam_search") else oracle.defaults["num_beams"])
    return {"beams": beams, "n": request.get("n", request.get("num_return_sequences", 1)), "penalty": value("length_penalty", 1.0),
            "early": value("early_stopping", False)}


def generate(oracle, request):
    """(expected result, least gap of a decision)."""
    (encoder_text, encoder_ids), (prompt_text, prompt_ids) = oracle.prompts(request)
    # A bos or language that the default prompt supplied counts as generated: transformers generates it by force.
    supplied = len(oracle.default_prompt()) - 1 if oracle.has_default_prompt(request) else 0
    found, gap = search(oracle, request, encoder_ids, prompt_ids, supplied)
    outputs = []
    for index, (_, total, tokens) in enumerate(found[:settings(oracle, request)["n"]]):
        max_tokens = oracle.max_tokens(request, prompt_ids)
        finish, stop_reason, text = oracle.finish(request, prompt_ids, tokens, max_tokens)
        outputs.append({"index": index, "text": text, "token_ids": tokens, "cumulative_logprob": round(total, 6), "logprobs": None,
                        "finish_reason": finish, "stop_reason": stop_reason})
    return {"id": request["id"], "encoder_prompt": encoder_text, "encoder_prompt_token_ids": encoder_ids, "prompt": prompt_text,
            "prompt_token_ids": prompt_ids, "outputs": outputs}, gap


def search(oracle, request, encoder_ids, prompt_ids, supplied):
    """([(score, sum, tokens)] best first, least gap)."""
    chosen, max_tokens = settings(oracle, request), oracle.max_tokens(request, prompt_ids)
    beams, penalty = chosen["beams"], chosen["penalty"]
    running, hypotheses, gap, length = [(0.0, [])], [], math.inf, 0
    while running:
        ways = continuations(oracle, request, encoder_ids, prompt_ids, running, max_tokens, beams)
        length += 1
        ends = lambda tokens: oracle.finish(request, prompt_ids, tokens, max_tokens)[0] is not None
        going, ended, rank = [], [], 0
        for rank, way in enumerate(ways):
            if ends(way[1]):
                ended += [way] if rank < beams else []
            elif len(going) < beams:
                going.append(way)
        gap = min(gap, decision_gap(ways, beams, ends))
        running = going
        norm = lambda total, tokens: total / (tokens + supplied) ** penalty
        hypotheses = sorted(hypotheses + [(norm(total, length), total, tokens) for total, tokens in ended], key=lambda h: -h[0])
        gap = min([gap, *(a[0] - b[0] for a, b in zip(hypotheses, hypotheses[1:beams + 1]))])
        hypotheses = hypotheses[:beams]
        if len(hypotheses) < beams or not running:
            continue
        if chosen["early"] is True:
            break
        best = norm(running[0][0], max_tokens if chosen["early"] == "never" and penalty > 0 else length)
        gap = min(gap, abs(best - hypotheses[-1][0]))
        if best <= hypotheses[-1][0]:
            break
    if len(hypotheses) < chosen["n"]:
        raise Unfit("fewer answers than asked for")
    return hypotheses, gap


def continuations(oracle, request, encoder_ids, prompt_ids, running, max_tokens, beams):
    """[(sum, tokens)] best first: enough of them for a step."""
    ways = []
    for total, tokens in running:
        raw = oracle.logits(encoder_ids, prompt_ids + tokens)[-1]
        scores = oracle.edited(request, torch.log_softmax(raw, -1), encoder_ids, prompt_ids, tokens, max_tokens)
        best = torch.topk(scores, min(3 * beams + 8, len(scores)))
        ways += [(total + value, tokens + [token]) for value, token in zip(best.values.tolist(), best.indices.tolist())
                 if math.isfinite(value)]
    return sorted(ways, key=lambda way: -way[0])


def decision_gap(ways, beams, ends):
    """How clearly the step's choices were made: between the last that counted and the first that did not."""
    gap, going = math.inf, [way[0] for way in ways if not ends(way[1])]
    for scores in ([way[0] for way in ways], going):
        gap = min([gap, *(a - b for a, b in zip(scores[:beams], scores[1:beams + 1]))])
    return gap


def alignments(oracle, encoder_ids, decoder_ids):
    """[encoder index of decoder_ids[i]'s largest attention, i from 1], least gap: the step that gives a token, mean over the
    heads of the last layer's cross-attention."""
    ids = torch.tensor([encoder_ids])
    oracle.model.set_attn_implementation("eager")
    with torch.inference_mode():
        out = oracle.model(input_ids=ids, attention_mask=torch.ones_like(ids), decoder_input_ids=torch.tensor([decoder_ids]),
                           use_cache=False, output_attentions=True)
    oracle.model.set_attn_implementation("sdpa")
    mean = out.cross_attentions[-1][0].mean(0)[:-1]
    best = torch.topk(mean, min(2, mean.shape[1]), dim=1).values
    gap = float((best[:, 0] - best[:, -1]).min()) if mean.shape[1] > 1 else math.inf
    return mean.argmax(1).tolist(), gap


@torch.inference_mode()
def check_against_generate(oracle, request, expected):
    """Where transformers' own generate can express a request, it must give the same tokens."""
    known = {"id", "prompt", "decoder_prompt", "max_tokens", "temperature", "num_beams", "n", "num_return_sequences", "length_penalty",
             "early_stopping", "add_special_tokens", "repetition_penalty", "no_repeat_ngram_size", "suppress_tokens", "use_beam_search"}
    has_two = len(expected["prompt_token_ids"]) > 1 and oracle.has_default_prompt(request)
    if not set(request) <= known or has_two or oracle.names_language(request):
        return 0
    chosen, prompt = settings(oracle, request), expected["prompt_token_ids"]
    options = {k: request[k] for k in ("repetition_penalty", "no_repeat_ngram_size", "suppress_tokens") if k in request}
    ids = torch.tensor([expected["encoder_prompt_token_ids"]])
    oracle.restrict(expected["encoder_prompt_token_ids"], prompt)
    got = oracle.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, num_beams=chosen["beams"],
                                num_return_sequences=chosen["n"], length_penalty=chosen["penalty"], early_stopping=chosen["early"],
                                decoder_input_ids=torch.tensor([prompt]), max_length=len(prompt) + oracle.max_tokens(request, prompt), **options)
    for row, output in zip(got, expected["outputs"], strict=True):
        row = row[len(prompt):].tolist()
        assert row[:len(output["token_ids"])] == output["token_ids"], (request, row, output["token_ids"])
        assert set(row[len(output["token_ids"]):]) <= {1}, (request, row)  # padding
    return 1
