#!/bin/sh
# Transcribes files by a server, each to FILE.FORMAT: transcribe.sh http://127.0.0.1:8000 srt FILE...
# A full queue (429) and a server that is loading (503) are tried again, as long as Retry-After says.
set -eu
address=$1 format=$2
shift 2
for file in "$@"; do
  curl --silent --show-error --fail-with-body --retry 5 --output "$file.$format" "$address/v1/audio/transcriptions" \
    --form file=@"$file" --form response_format="$format"
done
