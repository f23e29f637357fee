#!/usr/bin/env python3
"""Renders chat templates with transformers, a case a line, in an environment that has it.

    oracle.py < CASES.jsonl        {"template": .., "messages": .., "variables": ..} to {"text": ..} or {"error": ..}
"""
import json
import logging
import signal
import sys
import warnings

SECONDS = 10  # a template that takes longer is an error


def render(case):
    from transformers.utils.chat_template_utils import render_jinja_template
    # As apply_chat_template of tokenizers does it, before it renders.
    messages = [{key: value for key, value in message.items() if value is not None} for message in case["messages"]]
    rendered, _ = render_jinja_template(conversations=[messages], chat_template=case["template"], **case["variables"])
    rendered[0].encode()  # half a character is no text
    return rendered[0]


def answer(case):
    signal.alarm(SECONDS)
    try:
        return {"text": render(case)}
    except (Exception, TimeoutError) as why:
        return {"error": f"{type(why).__name__}: {why}"[:500]}
    finally:
        signal.alarm(0)


def stop(*_):
    raise TimeoutError("too slow")


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, stop)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
