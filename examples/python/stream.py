"""Prints an answer as it is generated: stream.py MODEL PROMPT"""

import asyncio
import sys

from transept import AsyncLLM, RequestOutputKind, SamplingParams


async def main() -> None:
    llm = AsyncLLM(sys.argv[1])
    async for output in llm.generate(sys.argv[2], SamplingParams(output_kind=RequestOutputKind.DELTA), "first"):
        print(output.outputs[0].text, end="", flush=True)
    print()


asyncio.run(main())
