"""`transept generate`, `tokenize` and `detokenize` as far as tests/golden.py uses them, through the Python package: so
the reference's answers are compared with what Python gives."""
import argparse
import dataclasses
import json
import re
import sys

import transept

IGNORED = ("--debug-poison", "--debug-loopback-plans")
KINDS = {"max_num_seqs": int, "block_size": int, "threads": int}
PARAMETERS = {field.name for field in dataclasses.fields(transept.SamplingParams)}


def engine_arguments(flags):
    """{"block_size": 16} of ["--block-size", "16"]."""
    flags = [flag for flag in flags if flag not in IGNORED]
    named = {flag[2:].replace("-", "_"): value for flag, value in zip(flags[::2], flags[1::2])}
    if "kv_cache_memory" in named:
        named["kv_cache_memory_bytes"] = int(named.pop("kv_cache_memory"))
    if "share_identical_inputs" in named:
        named["share_identical_inputs"] = named["share_identical_inputs"] == "on"
    return {name: KINDS.get(name, lambda value: value)(value) for name, value in named.items()}


def prompt_of(request):
    """With the field decoder_prompt as part of the prompt."""
    if "prompt" not in request:
        raise transept.InvalidArgumentError("prompt is missing", "prompt")
    prompt = request["prompt"]
    if request.get("decoder_prompt") is None:
        return prompt if isinstance(prompt, (str, dict)) else {"encoder_prompt": prompt}
    if isinstance(prompt, dict) and "decoder_prompt" in prompt:
        raise transept.InvalidArgumentError("two decoder prompts", "decoder_prompt")
    if isinstance(prompt, dict) and "encoder_prompt" in prompt:
        return {**prompt, "decoder_prompt": request["decoder_prompt"]}
    return {"encoder_prompt": prompt, "decoder_prompt": request["decoder_prompt"]}


def params_of(request):
    other = ("id", "prompt", "decoder_prompt")
    given = {name: value for name, value in request.items() if name not in other and value is not None}
    if "num_return_sequences" in given:
        given["n"] = given.pop("num_return_sequences")
    for name in list(given):
        if name not in PARAMETERS:  # fields that the binary refuses have no parameter here
            raise transept.UnsupportedError(f"{name} is no parameter", name)
    return transept.SamplingParams(**given)


def logprobs_of(entries):
    return entries and [
        entry and {str(token): {"logprob": e.logprob, "rank": e.rank, "decoded_token": e.decoded_token} for token, e in entry.items()}
        for entry in entries
    ]


def answer_of(output):
    answer = {name: getattr(output, name) for name in ("index", "text", "token_ids", "cumulative_logprob", "finish_reason", "stop_reason")}
    answer["logprobs"] = logprobs_of(output.logprobs)
    if output.alignments is not None:
        answer["alignments"] = output.alignments
    assert output.token_ids == output.token_ids_array.tolist()
    return answer


def result_of(request, output):
    names = ("encoder_prompt", "encoder_prompt_token_ids", "prompt", "prompt_token_ids")
    result = {"id": request["id"], **{name: getattr(output, name, None) for name in names}}
    if isinstance(output, transept.ScoreOutput):
        whole = json.loads(output._result.json())
        return {**result, **whole, "id": request["id"], "score": output.score, "prompt_logprobs": logprobs_of(output.prompt_logprobs)}
    result["outputs"] = [answer_of(answer) for answer in output.outputs]
    if output.prompt_logprobs is not None:
        result["prompt_logprobs"] = logprobs_of(output.prompt_logprobs)
    return result


def error_of(request, error):
    field = getattr(error, "field", "") or re.match(r"\w*", str(error))[0]  # messages begin with the argument
    return {"id": request["id"], "error": {"message": str(error), "type": type(error).__name__, "param": field, "code": None}}


def run(llm, requests, is_score):
    """Requests that are in order go together, so that they share batches; the others give their errors."""
    results, good = [None] * len(requests), []
    for i, request in enumerate(requests):
        try:
            good.append((i, prompt_of(request), params_of(request)))
        except (transept.TranseptError, TypeError) as error:
            results[i] = error_of(request, error)
    try:
        prompts, params = [p for _, p, _ in good], [s for *_, s in good]
        outputs = llm.score(prompts, sampling_params=params) if is_score else llm.generate(prompts, params)
        for (i, *_), output in zip(good, outputs):
            results[i] = result_of(requests[i], output)
    except (transept.TranseptError, TypeError, ValueError):
        for i, prompt, params in good:  # one by one, to see whose error it is
            try:
                output = (llm.score([prompt], sampling_params=params) if is_score else llm.generate([prompt], params))[0]
                results[i] = result_of(requests[i], output)
            except (transept.TranseptError, TypeError, ValueError) as error:
                results[i] = error_of(requests[i], error)
    return results


def tokens_of(llm, request, verb):
    tokenizer = llm.get_tokenizer()
    if verb == "detokenize":
        return {"text": tokenizer.decode(request["token_ids"], request.get("skip_special_tokens", True))}
    is_decoder = request.get("side") == "decoder"
    languages = {name: request.get(name) or "" for name in ("source_lang", "target_lang")}
    ids = tokenizer.encode(request["text"], request.get("add_special_tokens", True), decoder_side=is_decoder, **languages)
    return {"token_ids": ids, "tokens": tokenizer.convert_ids_to_tokens(ids, decoder_side=is_decoder)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb")
    parser.add_argument("model")
    parser.add_argument("--input", required=True)
    parser.add_argument("--output")
    parser.add_argument("--score", action="store_true")
    options, flags = parser.parse_known_args()
    with open(options.input, encoding="utf-8") as source:
        requests = [json.loads(line) for line in source if line.strip()]
    with transept.LLM(options.model, **engine_arguments(flags)) as llm:
        if options.verb == "generate":
            results = run(llm, requests, options.score)
        else:
            results = [{"id": request["id"], **tokens_of(llm, request, options.verb)} for request in requests]
    lines = "".join(json.dumps(result) + "\n" for result in results)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as sink:
            sink.write(lines)
    else:
        sys.stdout.write(lines)
    sys.exit(int(any("error" in result for result in results)))


main()
