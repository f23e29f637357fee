"""The suites of --slow: one list for ./dev test and ./dev check."""
from dataclasses import dataclass
from typing import Callable

import device_suites
import suites


@dataclass(frozen=True)
class SlowSuite:
    name: str
    run: Callable  # of (binary, log, filter of names) -> Result
    has_filter: bool = False  # others run only if no filter is given
    release_only: bool = False  # times things, or is of what the release installs


# A sanitized server has less load and shorter faults.
SANITIZED_SCALE = 0.1


def server(binary, log, _):
    scale = 1.0 if binary == suites.binary_of("release") else SANITIZED_SCALE
    return suites.server_tests(binary, log, scale)


SLOW_SUITES = (
    SlowSuite("official clients through --epd 1E1D", lambda binary, log, words: suites.client_tests(binary, log, words, "epd"), has_filter=True),
    SlowSuite("official clients through transept proxy", lambda binary, log, words: suites.client_tests(binary, log, words, "proxy"), has_filter=True),
    SlowSuite("files of torch", suites.torch_files, has_filter=True),
    SlowSuite("quantised files of libraries", suites.quantized_files, has_filter=True),
    SlowSuite("huggingface_hub", suites.hub_tests, has_filter=True),
    SlowSuite("chat templates", suites.chat_templates, has_filter=True),
    SlowSuite("images of Pillow", suites.image_tests, has_filter=True),
    SlowSuite("WebSockets", suites.websocket_tests, has_filter=True),
    SlowSuite("running server", server),
    SlowSuite("histories of transfers", lambda binary, log, _: suites.transfer_histories(binary, log), release_only=True),
    SlowSuite("answers of fleets", lambda binary, log, _: suites.fleet_answers(binary, log)),
    SlowSuite("answers of ranks", suites.rank_answers, has_filter=True, release_only=True),
    SlowSuite("faults of a fleet", lambda binary, log, _: suites.fleet_faults(binary, log), release_only=True),
    SlowSuite("deployment of a fleet", lambda binary, log, _: suites.deployment(binary, log), release_only=True),
    SlowSuite("deaths of ranks", lambda binary, log, _: suites.rank_deaths(binary, log), release_only=True),
    SlowSuite("memory of a device", lambda binary, log, _: device_suites.memory_after_many(log), release_only=True),
    SlowSuite("page", lambda binary, log, _: suites.page_tests(log)),
    SlowSuite("library", lambda binary, log, _: suites.library_tests(binary, log), release_only=True),
    SlowSuite("releases of FFmpeg", lambda binary, log, _: suites.ffmpeg_tests(binary, log), release_only=True),
    SlowSuite("Python package", suites.python_package_tests, has_filter=True, release_only=True),
    SlowSuite("packages", lambda binary, log, _: suites.package_tests(log), release_only=True),
    SlowSuite("documentation", lambda binary, log, _: suites.documentation(binary, log), release_only=True),
    SlowSuite("instructions", lambda binary, log, _: suites.instruction_counts(log), release_only=True),
)
