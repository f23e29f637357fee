"""Is an answer the expected one? Each function yields (field, expected, got) for what differs.

Ids, texts, token ids and reasons must be equal. Log-probabilities may differ by TOLERANCE, sums by a little more; among the
k best, tokens that tie with the last place within the tolerance may be exchanged.
"""
import math

TOLERANCE = 1e-3
PROMPTS = ("encoder_prompt", "encoder_prompt_token_ids", "prompt", "prompt_token_ids")
EXACT = {"tokenize": ("token_ids", "tokens"), "detokenize": ("text",)}


def compare(file, wanted, got):
    """Differences of one answer. file: "requests", "score", ...; got: an object, or None where no line came."""
    if not isinstance(got, dict) or got.get("id") != wanted["id"]:
        yield "line", {"id": wanted["id"]}, got
    elif "error" in wanted:
        yield from compare_error(wanted["error"], got)
    elif got.get("error"):
        yield "error", None, got["error"]
    else:
        yield from compare_fields(EXACT.get(file, PROMPTS), wanted, got)
        if "score" in wanted:
            yield from compare_number("score", wanted["score"], got.get("score"), sum_tolerance(wanted["prompt_token_ids"]))
        if "prompt_alignments" in wanted:
            yield from compare_fields(("prompt_alignments",), wanted, got)
        if "prompt_logprobs" in wanted:
            yield from compare_positions("prompt_logprobs", wanted["prompt_logprobs"], got.get("prompt_logprobs"), wanted["prompt_token_ids"])
        if "outputs" in wanted:
            yield from compare_outputs(wanted["outputs"], got.get("outputs"))


def compare_error(wanted, got):
    error = got.get("error")
    if not isinstance(error, dict) or set(error) != {"message", "type", "param", "code"} or not error["message"]:
        yield "error", "an object of message, type, param, code", error
    elif error["param"] not in wanted["param"]:
        yield "error.param", wanted["param"], error["param"]


def compare_fields(names, wanted, got):
    for name in names:
        if name in wanted and (name not in got or got[name] != wanted[name]):
            yield name, wanted[name], got.get(name)


def compare_outputs(wanted, got):
    if not isinstance(got, list) or len(got) != len(wanted):
        yield "outputs", f"{len(wanted)} outputs", got
        return
    for w, g in zip(wanted, got):
        yield from compare_fields(("index", "token_ids", "text", "finish_reason", "stop_reason"), w, g)
        yield from compare_number("cumulative_logprob", w["cumulative_logprob"], g.get("cumulative_logprob"), sum_tolerance(w["token_ids"]))
        if "alignments" in w:
            yield from compare_fields(("alignments",), w, g)
        yield from compare_positions("logprobs", w["logprobs"], g.get("logprobs"), w["token_ids"])


def compare_number(name, wanted, got, tolerance):
    if isinstance(got, bool) or not isinstance(got, (int, float)) or not math.isclose(wanted, got, rel_tol=0, abs_tol=tolerance):
        yield name, wanted, got


def sum_tolerance(tokens):
    return TOLERANCE * (1 + len(tokens) / 8)


def compare_positions(name, wanted, got, chosen):
    """Lists of {token: {logprob, rank}}, one a token; null where nothing was asked for, and at a prompt's first token."""
    if wanted is None or got is None or len(wanted) != len(got):
        if wanted is not None or got is not None:
            yield name, wanted, got
        return
    for at, (w, g) in enumerate(zip(wanted, got)):
        if w is None or g is None:
            if w is not g:
                yield f"{name}[{at}]", w, g
        else:
            yield from compare_position(f"{name}[{at}]", w, g, str(chosen[at]))


def compare_position(name, wanted, got, chosen):
    if len(got) != len(wanted) or chosen not in got:
        yield name, sorted(wanted), sorted(got)
        return
    last = min(entry["logprob"] for token, entry in wanted.items() if token != chosen or len(wanted) == 1)
    near_last = lambda value: abs(value - last) <= 2 * TOLERANCE
    for token, entry in wanted.items():
        if token in got:
            yield from compare_number(f"{name}[{token}]", entry["logprob"], got[token]["logprob"], TOLERANCE)
        elif not near_last(entry["logprob"]):
            yield name, f"token {token} among them", sorted(got)
    for token, entry in got.items():
        if token not in wanted and not near_last(entry["logprob"]):
            yield name, sorted(wanted), f"token {token} among them"
    if not rank_fits(wanted, wanted[chosen], got[chosen].get("rank")):
        yield f"{name}[{chosen}].rank", wanted[chosen]["rank"], got[chosen].get("rank")


def rank_fits(entries, wanted, rank):
    """Equal, but for neighbours within the tolerance: those that are listed are counted, unlisted ones estimated."""
    if not isinstance(rank, int):
        return False
    ties = sum(abs(entry["logprob"] - wanted["logprob"]) <= 2 * TOLERANCE for entry in entries.values()) - 1
    unlisted = 1 + wanted["rank"] // 32 if wanted["rank"] > len(entries) else 0
    return abs(rank - wanted["rank"]) <= ties + unlisted
