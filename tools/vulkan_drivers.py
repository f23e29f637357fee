"""Vulkan drivers that compute on the processor, and how a program of this tree runs over each.

The one that is installed; newer Mesa of Debian's archive with every library that it needs, unpacked into
.cache/vulkan_drivers and run with the loader of its own C library; SwiftShader out of Debian's Chromium, the library alone.
"""
import json
from dataclasses import dataclass, field
from pathlib import Path

import debian_archive
from repo import ROOT

CACHE = ROOT / ".cache" / "vulkan_drivers"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
INSTALLED = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
MESA = ["mesa-vulkan-drivers", "libvulkan1", "vulkan-validationlayers", "libstdc++6"]
# Newer layers look at what shaders access only if they are told to.
WATCHES_SHADERS = {"VK_KHRONOS_VALIDATION_SYNCVAL_SHADER_ACCESSES_HEURISTIC": "true"}
WIDTHS = (128, 256, 512)  # bits of a vector of Mesa's: subgroups of 4, 8 and 16
MATRIX_WIDTHS = (256,)    # of Mesa 26.1: at 512 it ends the process in them


@dataclass(frozen=True)
class Driver:
    name: str
    device: str                # what --device takes
    environment: dict = field(default_factory=dict)
    before: tuple = ()         # what a command begins with
    widths: tuple = WIDTHS     # of LP_NATIVE_VECTOR_WIDTH; (0,): the driver has no such choice
    matrices: tuple = ()       # the widths at which it has matrices, and tests of these must not be skipped

    def environment_of(self, width):
        width_text = {"LP_NATIVE_VECTOR_WIDTH": str(width)} if width else {}
        return {**self.environment, **width_text, **({"TRANSEPT_TEST_MATRICES": "1"} if width in self.matrices else {})}


def installed():
    if not INSTALLED.exists():
        raise debian_archive.FetchError(f"{INSTALLED} is not there: mesa-vulkan-drivers is not installed")
    return Driver("Mesa, installed", "vulkan:lavapipe", {"VK_ICD_FILENAMES": str(INSTALLED)})


def write_driver(folder, library):
    """A file that names the library to Vulkan's loader."""
    path = folder / "icd.json"
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": str(library), "api_version": "1.2.0"}}))
    return path


def unpacked_loader(root):
    """The words that run a program with the C library under `root`, and this system's libraries where that has none."""
    libraries = root / LIBRARIES
    return (str(libraries / "ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:/{LIBRARIES}")


def mesa(name, suites, target=None, matrices=()):
    folder = CACHE / name
    debian_archive.fetch(folder, suites, MESA, target)
    root = folder / "root"
    library = root / LIBRARIES / "libvulkan_lvp.so"
    if not library.exists():
        raise debian_archive.FetchError(f"{name}: there is no {library.name} among what was unpacked")
    layers = root / "usr/share/vulkan/explicit_layer.d"
    return Driver(f"Mesa {debian_archive.version(folder, 'mesa-vulkan-drivers')}", "vulkan:lavapipe",
                  {"VK_ICD_FILENAMES": str(write_driver(folder, library)), "VK_LAYER_PATH": str(layers), **WATCHES_SHADERS}, unpacked_loader(root),
                  matrices=matrices)


def swiftshader():
    folder = CACHE / "swiftshader"
    debian_archive.fetch(folder, ["bookworm"], ["chromium-common"], alone=True)
    library = folder / "root/usr/lib/chromium/libvk_swiftshader.so"
    if not library.exists():
        raise debian_archive.FetchError("Debian's chromium-common has no libvk_swiftshader.so")
    return Driver(f"SwiftShader of Chromium {debian_archive.version(folder, 'chromium-common')}", "vulkan:SwiftShader",
                  {"VK_ICD_FILENAMES": str(write_driver(folder, library))}, widths=(0,))


# Each with what makes it.
SOURCES = {"installed": installed,
           "trixie": lambda: mesa("trixie", ["trixie"]),
           "trixie-backports": lambda: mesa("trixie-backports", ["trixie", "trixie-backports"], "trixie-backports", MATRIX_WIDTHS),
           "swiftshader": swiftshader}


def drivers(names=()):
    """(drivers, {name: why it could not be had})."""
    found, missing = [], {}
    for name, make in SOURCES.items():
        if names and name not in names:
            continue
        try:
            found.append(make())
        except (debian_archive.FetchError, OSError) as error:
            missing[name] = str(error).strip()
    return found, missing
