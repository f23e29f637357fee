"""Answers prompts: generate.py MODEL PROMPT..."""

import sys

from transept import LLM, SamplingParams

llm = LLM(sys.argv[1])
for output in llm.generate(sys.argv[2:], SamplingParams(max_tokens=12)):
    print(output.outputs[0].text)
