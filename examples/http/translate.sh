#!/bin/sh
# Translates lines of standard input by a server: translate.sh http://127.0.0.1:8000 source_lang=en target_lang=fr < in.txt
# All lines go in one request; the answer is JSON, which Python writes as lines.
set -eu
address=$1
shift
python3 -c '
import json, sys
fields = dict(field.split("=", 1) for field in sys.argv[1:])
print(json.dumps({**fields, "text": sys.stdin.read().splitlines()}))' "$@" |
  curl --silent --show-error --fail-with-body "$address/v1/translate" --header "Content-Type: application/json" --data-binary @- |
  python3 -c '
import json, sys
for translation in json.load(sys.stdin)["translations"]: print(translation["text"])'
