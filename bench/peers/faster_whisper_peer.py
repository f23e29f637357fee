"""faster-whisper as a peer (run.py): from file to text, loading apart, temperature 0."""
import faster_whisper

import ctranslate2_peer


def version():
    return f"faster-whisper {faster_whisper.__version__}, {ctranslate2_peer.version()}"


dtype, prepare = ctranslate2_peer.dtype, ctranslate2_peer.prepare


def load(folder, work, shape, options):
    return FasterWhisper(folder, work, options)


class FasterWhisper:
    def __init__(self, folder, work, options):
        self.model = faster_whisper.WhisperModel(str(folder), device=ctranslate2_peer.DEVICE, compute_type=options.dtype, cpu_threads=options.threads)
        self.options = {"language": "en", "beam_size": work["beam"], "temperature": 0}
        if work["batch"] > 1:
            self.model = faster_whisper.BatchedInferencePipeline(self.model)
            self.options["batch_size"] = work["batch"]

    def transcribe(self, audio):
        segments, _ = self.model.transcribe(str(audio), **self.options)
        return " ".join(segment.text.strip() for segment in segments)  # a generator: the work is done here
