"""deploy/kubernetes/servers: overlays of servers that answer whole requests. Rendered by kubectl, checked by kubernetes-validate, and the container's command
started as the manifest has it: probes, answers, and an end that finishes what was taken."""
import contextlib
import os
import signal
import tempfile
import threading
from pathlib import Path

from epd_fleet import free_port, is_alive
from manifests import KUBERNETES, allowed, becomes_ready, check_pods_of, check_schemas, child, drain_seconds, kustomized, need_modules, of_kind, resolved

import front
import wire
from ranks_test import children
from serving import ROOT, TEXT_MODEL, wait_until

OVERLAYS = KUBERNETES / "servers" / "overlays"
NAMES = ("text", "speech", "tensor-parallel")
RANKS_MODEL = ROOT / "tests" / "models" / "t5-float32"  # which two ranks divide
GONE_WITHIN = 5  # s: a container whose rank has died


def rendered(name):
    return kustomized(OVERLAYS / name)


def objects(name):
    need_modules("yaml")
    import yaml

    return [one for one in yaml.safe_load_all(rendered(name)) if one]


def every_overlay_is_tried(setup):
    assert {path.name for path in OVERLAYS.iterdir()} == set(NAMES)


def overlays_have_the_schemas_of_kubernetes(setup):
    for name in NAMES:
        text = rendered(name)
        setup.say(f"{name}: {check_schemas(text)} objects")
        for right, wrong in (("terminationGracePeriodSeconds:", "terminationGracePeriod:"), ("maxUnavailable: 1", "maxUnavailible: 1")):
            assert right in text
            with contextlib.suppress(AssertionError):
                check_schemas(text.replace(right, wrong, 1))
                raise ValueError(f"{wrong} is found right")


def overlays_drain_probe_and_give_no_rights(setup):
    for name in NAMES:
        found = objects(name)
        assert {one["metadata"].get("namespace", f"transept-{name}") for one in found} == {f"transept-{name}"}
        ((deployment_name, deployment),) = of_kind(found, "Deployment").items()
        check_pods_of(deployment_name, deployment, found)
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert all(one["readOnly"] for one in container["volumeMounts"] if one["name"] == "models"), name
        resources = container["resources"]
        assert resources["requests"] == resources["limits"] and resources["limits"]["cpu"].isdigit(), f"{name}: {resources}: no processors of its own"
        (scaler,) = of_kind(found, "HorizontalPodAutoscaler").values()
        assert scaler["spec"]["scaleTargetRef"]["name"] == deployment_name and "replicas" not in deployment["spec"]
        assert [one["pods"]["metric"]["name"] for one in scaler["spec"]["metrics"]] == ["transept:num_requests_waiting"]
        policies = of_kind(found, "NetworkPolicy").values()
        assert not any(allowed(policies, "server", target, port) for target in ("server", "other") for port in (53, 443, 8000)), "a server asks somebody"
        assert allowed(policies, "other", "server", 8000) and not allowed(policies, "other", "server", 22)


def command(setup, name, model, port):
    """The container's, but for its port and the model's place; and its environment."""
    (deployment,) = of_kind(objects(name), "Deployment").values()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    plain = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    words = resolved(container["args"], {**plain, "MODEL": str(model)})
    assert f"--port={8000}" in words and "--host=0.0.0.0" in words
    return [setup.binary, *(word.replace("8000", str(port)).replace("0.0.0.0", "127.0.0.1") for word in words)], plain, container


@contextlib.contextmanager
def overlay(setup, name, model):
    """The container of an overlay, ready: (port, process, log, its manifest), and what one process answers in its place."""
    port = free_port()
    words, environment, container = command(setup, name, model, port)
    quantization = [word for word in words if str(word).startswith("--quantization")]
    with setup.serve(model, *quantization) as plain:
        wanted = plain.complete("overlay").json()["choices"]
    with child(words, environment) as (process, log):
        becomes_ready(port, process, log)
        assert wire.ask(port, wire.get(container["livenessProbe"]["httpGet"]["path"])).status == 200
        assert wire.ask(port, wire.post("/v1/completions", {"prompt": "overlay"})).json()["choices"] == wanted
        yield port, process, log, container


def ends_as_it_says(port, process, log, container):
    """A request that was taken before SIGTERM is answered; the pod is not ready meanwhile, and its end is well within its grace."""
    answers = []
    body = {"prompt": "overlay", "n": 16, "temperature": 1.0, "ignore_eos": True, "max_tokens": 48}
    asking = [threading.Thread(target=lambda: answers.append(wire.ask(port, wire.post("/v1/completions", body)).status)) for _ in range(16)]
    for thread in asking:
        thread.start()

    def has_taken_all():
        running = wire.ask(port, wire.get("/metrics")).body.decode().splitlines()
        found = [float(line.split()[-1]) for line in running if line.startswith(("transept:num_requests_running", "transept:num_requests_waiting"))]
        return sum(found) > 0 or len(answers) == len(asking)

    assert wait_until(has_taken_all, 20, 0.002) is not None
    process.send_signal(signal.SIGTERM)
    for thread in asking:
        thread.join()
    process.wait(drain_seconds(container))
    assert process.returncode == 0, log()
    # Those that came after the signal are refused by name and asked elsewhere: never cut off.
    assert set(answers) <= {200, 503} and 200 in answers, answers


def the_text_overlay_answers_and_ends_as_it_says(setup):
    with overlay(setup, "text", TEXT_MODEL) as started:
        ends_as_it_says(*started)


def the_tensor_parallel_overlay_is_two_ranks_and_ends_as_it_says(setup):
    """One container, whose processes live and die together: the kubelet starts it again when either has died."""
    with overlay(setup, "tensor-parallel", RANKS_MODEL) as started:
        process = started[1]
        (rank,) = children(process.pid)
        ends_as_it_says(*started)
        assert not is_alive(rank)
    with overlay(setup, "tensor-parallel", RANKS_MODEL) as (_, process, log, _):
        (rank,) = children(process.pid)
        os.kill(rank, signal.SIGKILL)
        assert process.wait(GONE_WITHIN) == 2 and f"(pid {rank}) was ended by signal 9" in log(), log()


def the_speech_overlay_transcribes(setup):
    front.need("bash")
    import batches

    with tempfile.TemporaryDirectory() as name:
        model, audio = batches.make_speech_model(Path(name))
        port = free_port()
        words, environment, _ = command(setup, "speech", model, port)
        clip = (audio / "3.wav").read_bytes()
        form = wire.form("/v1/audio/transcriptions", [("model", Path(model).name), ("language", "en")], clip)
        with setup.serve(model, "--quantization=int8") as plain:
            wanted = plain.ask(form)
            assert wanted.status == 200, wanted.body
        with child(words, environment) as (process, log):
            becomes_ready(port, process, log)
            got = wire.ask(port, form)
            assert got.status == 200 and got.json()["text"] == wanted.json()["text"], got.body


CASES = (every_overlay_is_tried, overlays_have_the_schemas_of_kubernetes, overlays_drain_probe_and_give_no_rights,
         the_text_overlay_answers_and_ends_as_it_says, the_tensor_parallel_overlay_is_two_ranks_and_ends_as_it_says, the_speech_overlay_transcribes)
