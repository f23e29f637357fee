"""huggingface_hub's part of differential.py, in an environment that has it: one call, its result as JSON."""
import json
import os
import sys

import huggingface_hub
from huggingface_hub import constants


def main(what, *arguments):
    if what == "download":
        name, revision, *patterns = arguments
        return huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=patterns or None)
    if what == "local":
        name, revision, *patterns = arguments
        return huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=patterns or None, local_files_only=True)
    if what == "files":  # as transformers does: one by one, those that are not there as well
        name, *files = arguments
        found = []
        for file in files:
            try:
                found.append(huggingface_hub.hf_hub_download(name, file))
            except huggingface_hub.errors.EntryNotFoundError:
                found.append(None)
        return found
    if what == "settings":
        return {"cache": os.path.realpath(constants.HF_HUB_CACHE), "offline": constants.HF_HUB_OFFLINE, "endpoint": constants.ENDPOINT}
    if what == "scan":
        info = huggingface_hub.scan_cache_dir()
        return {repo.repo_id: {"bytes": repo.size_on_disk, "revisions": {r.commit_hash: [r.size_on_disk, sorted(r.refs)] for r in repo.revisions}}
                for repo in info.repos}
    if what == "delete":
        huggingface_hub.scan_cache_dir().delete_revisions(*arguments).execute()
        return None
    raise SystemExit(f"{what}: no such call")


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
