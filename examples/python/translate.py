"""Translates lines, as tokens: translate.py MODEL LINE..."""

import sys

from transept import Translator

translator = Translator(sys.argv[1])
tokenizer = translator.get_tokenizer()
sources = [tokenizer.tokenize(line, add_special_tokens=True) for line in sys.argv[2:]]
for result in translator.translate_batch(sources, beam_size=4):
    print(tokenizer.decode(tokenizer.convert_tokens_to_ids(result.hypotheses[0]), skip_special_tokens=True))
