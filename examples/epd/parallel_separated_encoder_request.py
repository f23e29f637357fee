#!/usr/bin/env python3
"""Requests to separated encoders, in parallel and without a proxy: each input goes to the encode instance, which answers when its rows are at the
decode instance; then the request goes to the decode instance, which only decodes. launch_epd_serve.sh starts both.

    python3 examples/epd/parallel_separated_encoder_request.py --port_encode 19534 --port_prefill_decode 19535 --model_path g2p --text "encoder"
    python3 examples/epd/parallel_separated_encoder_request.py --model_path openai/whisper-tiny --audio_path talk.mp3 --num_requests 8
    python3 examples/epd/parallel_separated_encoder_request.py --model_path microsoft/trocr-base-printed --image_path line.png --num_requests 8

Audio goes to the decode instance at once: where a window of it begins is known when the window before is decoded, so the decode instance has
windows encoded itself. So does a picture, as a chat: the decode instance knows what the model makes of one, and has it encoded. Clients that want one address talk to the proxy instead. Needs openai, else the standard library alone.
"""
import argparse
import base64
import json
import mimetypes
import os
import re
import socket
import sys
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor

try:
    import openai
except ImportError:
    sys.exit("this needs the official client: pip install openai")

TEXT = "encoder decoder"
# What a model takes -> the flag for that, and what messages call it.
TAKES = {"image": ("--image_path", "images"), "audio": ("--audio_path", "audio"), "text": ("--text", "text")}


class Failed(Exception):
    """What cannot go on, in words for people."""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port_encode", type=int, default=19534)
    parser.add_argument("--port_prefill_decode", type=int, default=19535)
    parser.add_argument("--model_path", required=True, help="what the instances were started with")
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument("--text", help=f"for models of text (default: {TEXT!r})")
    inputs.add_argument("--audio_path", help="for models of speech")
    inputs.add_argument("--image_path", help="for models of images")
    parser.add_argument("--num_requests", type=int, default=1, help="in parallel (default: 1)")
    parser.add_argument("--consumer", help="the decode instance's --instance-name (default: its default, decode-HOST-PORT)")
    options = parser.parse_args()
    if options.num_requests < 1:
        parser.error(f"--num_requests {options.num_requests}: at least 1")
    return options


def default_name(port):
    """Of a decode instance on this machine: as the binary makes it."""
    return f"decode-{re.sub('[^A-Za-z0-9.-]', '-', socket.gethostname())[:48]}-{port}"


def served_name(path):
    """The name under which a server has a folder or a model of the hub."""
    return os.path.basename(os.path.normpath(path))


def served_model(api, options):
    """(name, what it takes) of the decode instance's model, which must be the one named."""
    try:
        models = list(api.models.list())
    except openai.APIConnectionError:
        raise Failed(f"nothing answers at {api.base_url}; examples/epd/launch_epd_serve.sh starts the instances")
    named = [one for one in models if one.id in (options.model_path, served_name(options.model_path))]
    if not named:
        raise Failed(f"--model_path {options.model_path}: the decode instance serves {', '.join(one.id for one in models)}")
    modalities = (named[0].model_extra or {}).get("transept", {}).get("modalities") or ["text"]  # of media: none is text
    return named[0].id, next((one for one in TAKES if one in modalities), modalities[0])


def check_input(options, name, takes):
    """The input has to be what the model takes. Returns it."""
    given = "image" if options.image_path else "audio" if options.audio_path else "text"
    if given != takes:
        flag, word = TAKES.get(takes, ("none of this client", takes))
        raise Failed(f"the instances serve {name}, a model that takes no {TAKES[given][1]}; it takes {word}: {flag}")
    path = options.image_path or options.audio_path
    if path and not os.path.isfile(path):
        raise Failed(f"{path}: no such file")
    return given


def encode(options, prompt, request_id):
    """Asks the encode instance, which answers when the rows are at the decode instance. Its seconds."""
    consumer = options.consumer or default_name(options.port_prefill_decode)
    body = json.dumps({"prompt": prompt, "consumer": consumer, "request_id": request_id}).encode()
    url = f"http://{options.host}:{options.port_encode}/v1/encode"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return sum(item["seconds"] for item in json.load(reply)["items"])
    except urllib.error.HTTPError as error:
        raise Failed(f"{url}: {error.code}: {error.read().decode(errors='replace')}")
    except OSError as error:
        raise Failed(f"{url}: {error}")


def complete(api, options, name, index):
    """(text, words about its time) of one request of text."""
    request_id = f"epd-{uuid.uuid4().hex}"
    prompt = options.text or TEXT
    begin = time.monotonic()
    seconds = encode(options, prompt, request_id)
    injected = time.monotonic()
    answer = api.completions.create(model=name, prompt=prompt, extra_headers={"X-Request-Id": request_id})
    return answer.choices[0].text, f"encoded in {1000 * seconds:.1f} ms, there after {1000 * (injected - begin):.1f} ms"


def transcribe(api, options, name, index):
    with open(options.audio_path, "rb") as file:
        answer = api.audio.transcriptions.create(model=name, file=file)
    return answer.text.strip(), "the decode instance had it encoded"


def describe(api, options, name, index):
    """What the model says of a picture, which is sent within the request."""
    with open(options.image_path, "rb") as file:
        content = base64.b64encode(file.read()).decode()
    kind = mimetypes.guess_type(options.image_path)[0] or "application/octet-stream"
    picture = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{content}"}}
    answer = api.chat.completions.create(model=name, messages=[{"role": "user", "content": [picture]}])
    return answer.choices[0].message.content or "", "the decode instance had it encoded"


ASK = {"text": complete, "audio": transcribe, "image": describe}


def main():
    options = parse_arguments()
    api = openai.OpenAI(base_url=f"http://{options.host}:{options.port_prefill_decode}/v1", api_key="none", max_retries=0, timeout=600)
    name, takes = served_model(api, options)
    ask = ASK[check_input(options, name, takes)]

    def run(index):
        begin = time.monotonic()
        try:
            text, words = ask(api, options, name, index)
        except (Failed, openai.OpenAIError) as error:
            return f"request {index}: FAILED: {error}", False
        return f"request {index}: {text!r} in {1000 * (time.monotonic() - begin):.1f} ms ({words})", True

    begin, num_failed = time.monotonic(), 0
    with ThreadPoolExecutor(options.num_requests) as pool:
        for line, is_right in pool.map(run, range(options.num_requests)):
            print(line, flush=True)
            num_failed += not is_right
    print(f"{options.num_requests - num_failed} of {options.num_requests} answered in {time.monotonic() - begin:.2f} s")
    return 1 if num_failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"parallel_separated_encoder_request.py: {error}")
