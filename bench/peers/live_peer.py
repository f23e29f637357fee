#!/usr/bin/env python3
"""faster-whisper under whisper_streaming's policy as a peer of live sessions (bench/live.py): prints one JSON line, as `transept bench live --json`.

    .venv/bin/python bench/peers/live_peer.py MODEL --audio FILE... [--sessions 1] [--seconds 60] [--threads 2] [--dtype int8] [--chunk 1]

MODEL: a Hugging Face folder of Whisper, converted once. Each session hears the files in real time, one after another, a second of silence behind each.
Source of the policy: Machacek, Dabre and Bojar, "Turning Whisper into Real-Time Transcription System" (2023), and the defaults of its program: a
hypothesis over the open audio for each `chunk` of new audio, with word times; words on which two in a row agree are told; behind 15 s the audio is cut
at the last told segment. One process serves one speaker there; here the sessions of a process take turns, the one whose audio is oldest first.
In the sessions' favour: they are told where a file ends, and half a second later, when a detector would have ended the turn, hear it out once more.
"""
import argparse
import heapq
import json
import statistics
import sys
import time
from difflib import SequenceMatcher
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

RATE = 16000
PAUSE = 1.0  # seconds behind each file
END_SILENCE = 0.5  # that ends a turn
TRIM = 15.0  # seconds of open audio
PROMPT = 200  # characters
LATE = 0.5


class Agreement:
    """HypothesisBuffer: (begin, end, word) in seconds of the turn."""

    def __init__(self):
        self.committed, self.buffer = [], []
        self.last_time, self.last_word = 0.0, None

    def take(self, words):
        """Returns the words that the last two hypotheses agree on."""
        new = [word for word in words if word[0] > self.last_time - 0.1]
        if new and abs(new[0][0] - self.last_time) < 1 and self.committed:
            for count in range(1, min(len(self.committed), len(new), 5) + 1):  # told words that are heard again
                if [word for _, _, word in self.committed[-count:]] == [word for _, _, word in new[:count]]:
                    del new[:count]
                    break
        agreed = []
        for old, word in zip(self.buffer, new):
            if old[2] != word[2]:
                break
            agreed.append(word)
        self.buffer = new[len(agreed):]
        self.committed += agreed
        if agreed:
            self.last_time = agreed[-1][1]
        return agreed


class Turn:
    """OnlineASRProcessor: one file as it is heard."""

    def __init__(self, model, language, beams, begin):
        self.model, self.options, self.begin = model, {"language": language, "beam_size": beams, "word_timestamps": True, "condition_on_previous_text": True}, begin
        self.offset, self.agreement = 0.0, Agreement()

    def prompt(self):
        told = [word for _, end, word in self.agreement.committed if end <= self.offset]
        return "".join(told)[-PROMPT:]

    def hear_out(self, audio):
        """Takes all audio of the turn so far. Returns how many words are told by it."""
        rest = audio[int(self.offset * RATE):]
        segments, _ = self.model.transcribe(rest, initial_prompt=self.prompt() or None, **self.options)
        segments = list(segments)
        words = [(word.start + self.offset, word.end + self.offset, word.word) for segment in segments if segment.no_speech_prob <= 0.9 for word in segment.words]
        agreed = self.agreement.take(words)
        if len(rest) / RATE > TRIM:
            ends = [segment.end + self.offset for segment in segments[:-1]]
            told = [end for end in ends if end <= self.agreement.last_time]
            if told:
                self.offset = told[-1]
        return len(agreed)

    def finish(self):
        return "".join(word for _, _, word in self.agreement.committed + self.agreement.buffer).strip()


class Session:
    def __init__(self, number, clips, options):
        self.number, self.clips, self.options = number, clips, options
        self.at, self.origin, self.sent = number % len(clips), 0.0, 0.0  # clip, its begin and what was said before it, in seconds of the session
        self.turn, self.heard, self.last = None, 0.0, None
        self.first, self.completed, self.hops, self.turns = [], [], [], []

    def clip(self):
        return self.clips[self.at]

    def due(self):
        """The session's second at which there is something to be done."""
        length = len(self.clip()) / RATE
        return self.origin + (min(self.heard + self.options.chunk, length + END_SILENCE) if self.heard < length else length + END_SILENCE)

    def work(self, model, now):
        """`now()`: the session's second."""
        if self.turn is None:
            self.turn = Turn(model, self.options.language, self.options.beams, self.origin)
        length, begin = len(self.clip()) / RATE, now()
        is_end = begin - self.origin >= length + END_SILENCE
        self.heard = length if is_end else min(length, begin - self.origin)
        told = self.turn.hear_out(self.clip()[:int(self.heard * RATE)])
        end = now()
        if told and len(self.first) == len(self.turns):
            self.first.append(end - self.origin)
        if self.last is not None:
            self.hops.append(end - self.last)
        self.last = end
        if not is_end:
            return
        if len(self.first) == len(self.turns):
            self.first.append(end - self.origin)
        self.completed.append(end - (self.origin + length + END_SILENCE))
        self.turns.append((self.at, self.turn.finish()))
        self.origin, self.at, self.turn, self.heard, self.last = self.origin + length + PAUSE, (self.at + 1) % len(self.clips), None, 0.0, None


def plain(text):
    return ["".join(c for c in word.lower() if c.isalnum()) for word in text.split()]


def edits(one, other):
    """Words that one is told to have and the other has not, and the other way round."""
    return sum(max(a_end - a, b_end - b) for tag, a, a_end, b, b_end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes() if tag != "equal")


def statistics_of(values):
    """As `bench live --json` has them; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    at = lambda percent: ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
    return {"mean": statistics.mean(ordered), "p50": at(50), "p90": at(90), "p95": at(95), "max": ordered[-1]}


def play(model, clips, options):
    sessions = [Session(number, clips, options) for number in range(options.sessions)]
    queue = [(session.due(), session.number) for session in sessions]
    heapq.heapify(queue)
    start = time.monotonic()
    now = lambda: time.monotonic() - start
    while queue:
        due, number = heapq.heappop(queue)
        session = sessions[number]
        time.sleep(max(0.0, due - now()))
        session.work(model, now)
        if session.turn is not None or session.origin < options.seconds:
            heapq.heappush(queue, (session.due(), number))
    return sessions


def report(sessions, offline, options):
    wrong = sum(edits(plain(text), plain(offline[clip])) for session in sessions for clip, text in session.turns)
    words = sum(len(plain(offline[clip])) for session in sessions for clip, _ in session.turns)
    kept_up = sum(not session.hops or statistics_of(session.hops)["p95"] <= options.chunk + LATE for session in sessions)
    join = lambda name: [value for session in sessions for value in getattr(session, name)]
    return {"bench": "live", "sessions": len(sessions), "failed_sessions": 0, "sessions_that_kept_up": kept_up, "turns": len(join("turns")),
            "first_text_s": statistics_of(join("first")), "completed_s": statistics_of(join("completed")), "hypothesis_interval_s": statistics_of(join("hops")),
            "words_unlike_the_files": wrong / max(words, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--audio", nargs="+", required=True)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", default="int8")
    parser.add_argument("--chunk", type=float, default=1.0, help="new audio before the next hypothesis, seconds")
    parser.add_argument("--beams", type=int, default=5)
    parser.add_argument("--language", default="en")
    parser.add_argument("--cache", type=Path, default=HERE.parent.parent / ".cache" / "bench")
    options = parser.parse_args()
    import ctranslate2
    import faster_whisper
    from ctranslate2_folders import convert
    folder = convert(options.model, options.cache / f"{options.model.name}-ctranslate2-{options.dtype}", None, options.dtype)
    model = faster_whisper.WhisperModel(str(folder), device="cpu", compute_type=options.dtype, cpu_threads=options.threads)
    clips = [faster_whisper.decode_audio(path, sampling_rate=RATE) for path in options.audio]
    offline = ["".join(segment.text for segment in model.transcribe(clip, language=options.language, beam_size=options.beams)[0]) for clip in clips]
    found = report(play(model, clips, options), offline, options)
    print(json.dumps({"version": f"faster-whisper {faster_whisper.__version__}, CTranslate2 {ctranslate2.__version__}", "model": options.model.name, **found}))


if __name__ == "__main__":
    main()
